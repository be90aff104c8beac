//! `bench-queue-tight [BATCHES [LENGTH [BATCH_US]]]`: a round trip of ours against
//! two words in shared memory, between the same two processes, in turn. For work on
//! the hot path.
//!
//! On a machine that does other things many batches are disturbed. The least figures
//! and the tenth part from below are of those that were not; the quotient of
//! neighbours is for a quiet machine.

use std::io::Write as _;

use procwright_bench::stats::{self, Interval};
use procwright_bench::subject_queue::floor::Words;
use procwright_bench::subject_queue::ours::{Reserved, Sent};
use procwright_bench::subject_queue::trip::{Both, END, STOP, Side};
use procwright_bench::subject_queue::{Plan, Way, party};

const NAMES: [&str; 3] = ["two words", "send, recv_view", "reserve, recv_view"];

fn number(at: usize, usual: u64) -> u64 {
    let word = std::env::args().nth(1 + at);
    word.map_or(usual, |word| word.parse().expect("a number"))
}

fn main() {
    let [batches, length, batch_us] = [number(0, 1_001), number(1, 16), number(2, 200)];
    let plan = Plan {
        length: length as usize,
        senders: 1,
        is_spinning: true,
        room: 0,
    };
    let floor: Both<Words> = Both::new(plan).expect("the floor");
    let sent: Both<Sent> = Both::new(plan).expect("ours");
    let reserved: Both<Reserved> = Both::new(plan).expect("ours");
    let answer = |_, door| {
        party::keep_to(plan, 1);
        let mut floor = floor.answerer(&door);
        let mut sent = sent.answerer(&door);
        let mut reserved = reserved.answerer(&door);
        // In the caller's order; nothing else has to be said.
        while floor.answer() != END {
            sent.answer();
            reserved.answer();
        }
        party::hear(&door);
    };
    let found = party::run(false, 1, answer, |doors| {
        party::keep_to(plan, 0);
        let mut floor = floor.caller(&doors[0]);
        let mut sent = sent.caller(&doors[0]);
        let mut reserved = reserved.caller(&doors[0]);
        let found = {
            let mut ways: [&mut dyn Call; 3] = [&mut floor, &mut sent, &mut reserved];
            measure(&mut ways, batches, batch_us)
        };
        floor.trip(END);
        party::tell(&doors[0], 0);
        found
    });
    print(
        &found,
        &format!("{length} bytes, {batches} of {batch_us} µs"),
    );
}

/// The nanoseconds of each batch.
fn measure(ways: &mut [&mut dyn Call; 3], batches: u64, batch_us: u64) -> [Vec<f64>; 3] {
    let mut trips = [10_000; 3];
    // The first time is for warmth.
    for _ in 0..2 {
        for (way, trips) in ways.iter_mut().zip(&mut trips) {
            let ns = way.call_them(*trips);
            *trips = ((batch_us as f64 * 1e3 / ns) as u64).max(1);
        }
    }
    let mut found = [const { Vec::new() }; 3];
    for _ in 0..batches {
        for ((way, trips), found) in ways.iter_mut().zip(trips).zip(&mut found) {
            found.push(way.call_them(trips));
        }
    }
    found
}

fn print(found: &[Vec<f64>; 3], head: &str) {
    let low = |ns: &[f64]| [0.0, 0.1, 0.5].map(|share| stats::quantile(ns, share).expect("ns"));
    let floor = low(&found[0]);
    let mut text = format!("{head}; least, a tenth from below, middle: ns (of the floor's)\n");
    for (name, ns) in NAMES.iter().zip(found) {
        text += &format!("{name:<20}");
        for (ns, floor) in low(ns).iter().zip(floor) {
            text += &format!("{ns:9.1} ({:.3})", ns / floor);
        }
        let pairs: Vec<f64> = ns.iter().zip(&found[0]).map(|(a, b)| a / b).collect();
        let Interval {
            median, low, high, ..
        } = stats::interval(&pairs).expect("figures");
        text += &format!("   neighbours {median:.3} ({low:.3} to {high:.3})\n");
    }
    let out = std::io::stdout().lock().write_all(text.as_bytes());
    out.expect("stdout");
}

/// A caller, whatever carries its messages.
trait Call {
    fn call_them(&mut self, trips: u64) -> f64;
}

impl<W: Way> Call for Side<W> {
    fn call_them(&mut self, trips: u64) -> f64 {
        self.call(trips, STOP)
    }
}
