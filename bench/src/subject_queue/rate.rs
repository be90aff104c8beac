//! One way, as fast as it goes.

use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::{Plan, Rx, Tx, Way, party, payload};

/// The first word of a message: its sender, then its number.
const SENDER: u32 = 48;
/// The last message of a sender.
const LAST: u64 = 1 << 47;

/// What came out.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// All messages.
    pub messages: u64,
    /// From the word to begin until the last was received.
    pub seconds: f64,
    /// Those of the sender that sent least, as a part of what each would have if all
    /// sent the same.
    pub least_share: f64,
}

/// Every sender sends for that time; all that they sent is received, each one's in
/// its order.
///
/// # Errors
/// Why it cannot be had.
///
/// # Panics
/// When something was lost, doubled, or out of order.
pub fn measure<W: Way>(plan: Plan, time: Duration) -> Result<Rate, String> {
    let common = W::common(&plan)?;
    let sender = |number: usize, door: UnixStream| {
        let mut tx = W::sender(&common, &plan, number, &door);
        party::tell(&door, 1);
        party::hear(&door);
        send(&mut tx, &plan, number, time);
        // What is on its way is lost with who sent it, with some of them.
        party::hear(&door);
    };
    Ok(party::run(
        W::IS_OF_THREADS,
        plan.senders,
        sender,
        |doors| {
            let mut rx = W::receiver(&common, &plan, &doors);
            doors.iter().for_each(|door| _ = party::hear(door));
            doors.iter().for_each(|door| party::tell(door, 1));
            let began = Instant::now();
            let counts = receive(&mut rx, &plan);
            let seconds = began.elapsed().as_secs_f64();
            doors.iter().for_each(|door| party::tell(door, 0));
            let messages: u64 = counts.iter().sum();
            let least = counts.iter().min().copied().unwrap_or(0);
            Rate {
                messages,
                seconds,
                least_share: least as f64 * counts.len() as f64 / messages as f64,
            }
        },
    ))
}

/// So many at once, where that is possible: as many as take some microseconds.
fn chunk(length: usize) -> u64 {
    (8192 / length as u64).clamp(1, 32)
}

fn send(tx: &mut impl Tx, plan: &Plan, number: usize, time: Duration) {
    let mut sent = (number as u64) << SENDER;
    let end = Instant::now() + time;
    let chunk = chunk(plan.length);
    while Instant::now() < end {
        tx.send_many(chunk, plan.length, |more, bytes| {
            payload::fill(bytes, sent + more);
        });
        sent += chunk;
    }
    tx.send(plan.length, |bytes| payload::fill(bytes, sent | LAST));
}

/// How many came from each.
fn receive(rx: &mut impl Rx, plan: &Plan) -> Vec<u64> {
    let mut counts = vec![0; plan.senders];
    let mut are_left = plan.senders;
    while are_left > 0 {
        rx.recv(|bytes| {
            let word = payload::check(bytes, plan.length);
            let count = &mut counts[(word >> SENDER) as usize];
            let number = word & ((1 << SENDER) - 1) & !LAST;
            assert_eq!(number, *count, "another message should have come");
            *count += 1;
            are_left -= usize::from(word & LAST != 0);
        });
    }
    counts
}
