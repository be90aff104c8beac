//! One way, with one sender and with many.

use super::{LENGTHS, OURS, PEERS, THREADS, WAITS, args, entry, is_of_use, length, rounds};
use crate::report::Report;
use crate::round::Effort;
use crate::tools::Tools;

/// Each way, at each length, with so many senders.
pub(super) fn run(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let (many, ms): (&[u64], u64) = match effort {
        Effort::Quick => (&[1, 4], 15),
        Effort::Rounds(_) => (&[1, 2, 4, 12], 100),
    };
    for (wait, waiting) in WAITS {
        for bytes in LENGTHS {
            for senders in many {
                let bounds: &[&str] = if wait == "spin" { &[THREADS] } else { &[] };
                let names = OURS.iter().chain(bounds).chain(&PEERS);
                let entries: Vec<_> = names
                    .filter(|name| is_of_use(name, bytes, true))
                    .map(|name| entry(tools, name))
                    .collect();
                let plural = if *senders == 1 { "" } else { "s" };
                let case = format!(
                    "one way, {}, {senders} sender{plural}, {waiting}",
                    length(bytes)
                );
                let args = args("rate", wait, [bytes as u64, *senders, ms, 0, 0]);
                let mut figures = vec![("per_s", "rate", "messages/ms", 1e3)];
                if *senders > 1 {
                    figures.push(("least_share", "least share", "of an equal one", 1.0));
                }
                let rounds = rounds(effort);
                super::measure(tools, report, &case, &entries, &args, rounds, &figures);
            }
        }
    }
}
