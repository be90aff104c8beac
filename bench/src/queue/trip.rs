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
