//! What is counted and not timed: system calls and instructions.

use super::{ONCE, OURS, PEERS, THREADS, args, entry, is_of_use};
use crate::report::Report;
use crate::round::{Effort, Entry, Rounds};
use crate::tools::Tools;

const BYTES: usize = 16;

/// Long enough to be asleep.
const REST_MS: u64 = 30;

fn entries<'a>(tools: &Tools, names: impl Iterator<Item = &'a &'a str>) -> Vec<Entry> {
    let names = names.filter(|name| is_of_use(name, BYTES, false));
    names.map(|name| entry(tools, name)).collect()
}

fn often(effort: Effort) -> Rounds {
    match effort {
        Effort::Quick => ONCE,
        // They differ little.
        Effort::Rounds(n) => Rounds {
            least: n.min(3),
            most: n.min(3),
            ..ONCE
        },
    }
}

/// While both are awake, and to wake who sleeps.
pub(super) fn calls(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let rounds = often(effort);
    let messages = match effort {
        Effort::Quick => 1 << 13,
        Effort::Rounds(_) => 1 << 16,
    };
    let entries = entries(tools, OURS.iter().chain(&PEERS));
    let awake = args("awake", "spin", [BYTES as u64, 1, messages, 0, 0]);
    let case = "system calls while the receiver is awake";
    let thousand = messages as f64 / 1e3;
    let figures = [
        ("send", "sender's", "for 1,000 messages", thousand),
        ("receive", "receiver's", "for 1,000 messages", thousand),
    ];
    super::measure(tools, report, case, &entries, &awake, rounds, &figures);
    // One: how often a receiver falls asleep again during more of them depends on how
    // long each call is held up to be counted.
    let one = args("calls", "sleep", [BYTES as u64, 1, 1, 9, REST_MS]);
    let case = "system calls to send a message to a receiver that sleeps";
    let figures = [("calls", "calls", "for a message", 1.0)];
    super::measure(tools, report, case, &entries, &one, rounds, &figures);
}

/// Both ends in one process, a few messages at a time.
pub(super) fn instructions(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let names = OURS.iter().chain(&PEERS).chain([&THREADS]);
    let entries = entries(tools, names);
    let args = args("instructions", "spin", [BYTES as u64, 1, 8, 24, 0]);
    let figures = [
        ("send", "to send", "instructions", 1.0),
        ("receive", "to receive", "instructions", 1.0),
    ];
    let case = "instructions of a message of 16 B";
    super::measure(
        tools,
        report,
        case,
        &entries,
        &args,
        often(effort),
        &figures,
    );
}
