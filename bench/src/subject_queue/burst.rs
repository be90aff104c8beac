//! A burst for a receiver that sleeps.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{Plan, Rx, Tx, Way, party, payload};
use crate::subject_wait::now_ns;

/// What came out of each burst.
#[derive(Clone, Debug, Default)]
pub struct Burst {
    /// Microseconds from just before the first was sent until it was received.
    pub first_us: Vec<f64>,
    /// The same, until the last was.
    pub last_us: Vec<f64>,
}

/// So many bursts of so many messages, with so long a rest before each.
///
/// # Errors
/// Why it cannot be had.
///
/// # Panics
/// When something else came.
pub fn measure<W: Way>(
    plan: Plan,
    messages: u64,
    bursts: u64,
    rest: Duration,
    mark: impl Fn(bool) + Sync,
) -> Result<Burst, String> {
    if plan.is_spinning {
        return Err("it does not sleep".into());
    }
    let common = W::common(&plan)?;
    let sender = |_, door: UnixStream| {
        let mut tx = W::sender(&common, &plan, 0, &door);
        for burst in 0..bursts {
            party::hear(&door);
            sleep(rest);
            mark(true);
            let began = now_ns();
            tx.send_many(messages, plan.length, |number, bytes| {
                payload::fill(bytes, burst * messages + number);
            });
            mark(false);
            party::tell(&door, began);
        }
        party::hear(&door);
    };
    Ok(party::run(W::IS_OF_THREADS, 1, sender, |doors| {
        let mut rx = W::receiver(&common, &plan, &doors);
        let mut found = Burst::default();
        for burst in 0..bursts {
            party::tell(&doors[0], 0);
            let [first, last] = receive(&mut rx, &plan, burst * messages, messages);
            let began = party::hear(&doors[0]);
            found.first_us.push((first - began) as f64 / 1e3);
            found.last_us.push((last - began) as f64 / 1e3);
        }
        party::tell(&doors[0], 0);
        found
    }))
}

/// When the first of them had come, and when the last.
fn receive(rx: &mut impl Rx, plan: &Plan, first: u64, messages: u64) -> [u64; 2] {
    let (mut expected, mut came) = (first, 0);
    while expected < first + messages {
        rx.recv(|bytes| {
            assert_eq!(payload::check(bytes, plan.length), expected, "out of order");
            if expected == first {
                came = now_ns();
            }
            expected += 1;
        });
    }
    [came, now_ns()]
}

#[expect(clippy::disallowed_methods, reason = "to be idle is the case")]
fn sleep(rest: Duration) {
    std::thread::sleep(rest);
}
