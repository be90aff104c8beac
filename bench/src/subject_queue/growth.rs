//! Much is sent before anything is received.

use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::{Plan, Rx, Tx, Way, party, payload};

/// What came out.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Until all was sent.
    pub fill_s: f64,
    /// Until all was received, from then.
    pub drain_s: f64,
    /// Bytes of memory that the queue has: at first, when it is full, and when it is
    /// empty again. None where it cannot be told.
    pub held: Option<[u64; 3]>,
}

/// `plan.room` bytes into an empty queue, and out again.
///
/// # Errors
/// Why it cannot be had.
pub fn measure<W: Way>(plan: Plan) -> Result<Growth, String> {
    let messages = (plan.room / plan.length) as u64;
    let common = W::common(&plan)?;
    let sender = |_, door: UnixStream| {
        let mut tx = W::sender(&common, &plan, 0, &door);
        party::tell(&door, 0);
        party::hear(&door);
        let began = Instant::now();
        for number in 0..messages {
            tx.send(plan.length, |bytes| payload::fill(bytes, number));
        }
        party::tell(&door, began.elapsed().as_nanos() as u64);
        party::hear(&door);
    };
    Ok(party::run(W::IS_OF_THREADS, 1, sender, |doors| {
        let mut rx = W::receiver(&common, &plan, &doors);
        party::hear(&doors[0]);
        rx.meet();
        let empty = rx.held();
        party::tell(&doors[0], 0);
        let fill_s = party::hear(&doors[0]) as f64 / 1e9;
        let full = rx.held();
        let began = Instant::now();
        let mut expected = 0;
        while expected < messages {
            rx.recv(|bytes| {
                assert_eq!(payload::check(bytes, plan.length), expected, "out of order");
                expected += 1;
            });
        }
        let drain_s = began.elapsed().as_secs_f64();
        rx.rest();
        let held = [empty, full, rx.held()];
        party::tell(&doors[0], 0);
        Growth {
            fill_s,
            drain_s,
            held: match held {
                [Some(empty), Some(full), Some(after)] => Some([empty, full, after]),
                _ => None,
            },
        }
    }))
}
