//! There and back between two processes.

use super::{LENGTHS, OURS, PEERS, THREADS, WAITS, args, entry, is_of_use, length, rounds};
use crate::report::Report;
use crate::round::Effort;
use crate::tools::Tools;

/// Each way, at each length.
pub(super) fn run(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let [batches, batch_us] = match effort {
        Effort::Quick => [3, 1_000],
        Effort::Rounds(_) => [11, 3_000],
    };
    for (wait, waiting) in WAITS {
        for bytes in LENGTHS {
            let bounds: &[&str] = match wait {
                "spin" => &["floor-words", THREADS],
                _ => &["floor-futex"],
            };
            let names = OURS.iter().chain(bounds).chain(&PEERS);
            let entries: Vec<_> = names
                .filter(|name| is_of_use(name, bytes, false))
                .map(|name| entry(tools, name))
                .collect();
            let case = format!("round trip, {}, {waiting}", length(bytes));
            let args = args("trip", wait, [bytes as u64, 1, batches, batch_us, 0]);
            let figures = [("trip_ns", "time", "µs", 1e3)];
            let rounds = rounds(effort);
            super::measure(tools, report, &case, &entries, &args, rounds, &figures);
        }
    }
}

/// The first trips of a queue.
const FIRST: u64 = 1_000;

/// Of a fresh queue, long messages: memory that nobody has touched yet.
pub(super) fn first(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    for bytes in [64 << 10, 4 << 20] {
        let names = ["procwright", "procwright-reserve", "iceoryx2", "cloudtoid"];
        let entries: Vec<_> = names.iter().map(|name| entry(tools, name)).collect();
        let trips = match effort {
            Effort::Quick if bytes > 1 << 20 => FIRST / 10,
            _ => FIRST,
        };
        let figures = [
            ("all_ms", "all", "ms", 1.0),
            ("trip_ns", "median", "µs", 1e3),
            ("begin_ns", "the first 32", "µs", 1e3),
            ("system_ms", "system time", "ms", 1.0),
            ("faults", "page faults", "", 1.0),
        ];
        for (word, what) in [
            ("first", ""),
            ("first-alone", ", processor time of both ends in one thread"),
        ] {
            let case = format!("the first {trips} round trips, {}{what}", length(bytes));
            let args = args(word, "spin", [bytes as u64, 1, trips, 0, 0]);
            let rounds = rounds(effort);
            super::measure(tools, report, &case, &entries, &args, rounds, &figures);
        }
    }
}
