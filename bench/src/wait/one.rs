//! Waiting for one process.

use std::time::Duration;

use super::{Slots, entries, latencies, rows};
use crate::report::Report;
use crate::round::{self, Effort, Rounds};
use crate::tools::Tools;

const FLOORS: [&str; 2] = ["floor-waitpid", "floor-pidfd"];

/// Who waits without a limit, or with one that is not met.
const LATENCY: [&str; 13] = [
    "floor-waitpid",
    "floor-pidfd",
    "procwright-rust-process",
    "procwright-rust-set",
    "procwright-python-process",
    "procwright-python-wait",
    "procwright-python-async",
    "subprocess-wait",
    "subprocess-wait-timeout",
    "asyncio-wait",
    "psutil-wait",
    "psutil-wait-procs",
    "tokio-wait",
];

/// Whole commands. They take long for each exit, so there are fewer.
const COMMANDS: [&str; 3] = ["procwright-wait", "waitpid-command", "tail-pid"];

/// Who can wait with a limit; the commands besides, one of which has none.
const HOLD: [&str; 11] = [
    "floor-pidfd",
    "procwright-rust-process",
    "procwright-rust-set",
    "procwright-python-process",
    "procwright-python-wait",
    "procwright-python-async",
    "subprocess-wait-timeout",
    "asyncio-wait",
    "psutil-wait",
    "psutil-wait-procs",
    "tokio-wait",
];

/// How long a process lives, in µs. Long enough for CPython's sleeps to grow to
/// 16 or 32 ms, which go on to 50 ms: nearly its best case.
const LIFE: [u64; 2] = [20_000, 40_000];

/// For a command that looks once a second all points of that second are alike.
const LONG_LIFE: [u64; 2] = [200_000, 1_200_000];

/// From a process's end to the return of the wait for it.
pub(super) fn latency(tools: &Tools, effort: Effort, slots: &Slots, report: &mut Report) {
    let rounds = effort.rounds(Rounds {
        least: 1,
        most: 1,
        budget: Duration::ZERO,
    });
    let quick = effort.is_quick();
    let exits = if quick { [40, 3] } else { [300, 10] };
    let groups = [
        ("one child", &LATENCY[..], exits[0], LIFE),
        ("one child, whole command", &COMMANDS, exits[1], LONG_LIFE),
    ];
    for (what, names, exits, [least, most]) in groups {
        let entries = entries(tools, names);
        let args = slots.args(tools, "one", &[exits, least, most]);
        let outcome = round::go(tools, &entries, &args, &[], rounds);
        let case = format!("exit to return, {what}, {exits} exits a round");
        latencies(report, &case, &entries, &outcome, &FLOORS);
    }
}

/// A wait that nothing ends.
pub(super) fn hold(tools: &Tools, effort: Effort, slots: &Slots, report: &mut Report) {
    let (seconds, rounds) = match effort {
        Effort::Quick => (3, 1),
        Effort::Rounds(n) => (10, n.min(5)),
    };
    let names: Vec<&str> = HOLD.into_iter().chain(COMMANDS).collect();
    let entries = entries(tools, &names);
    let args = slots.args(tools, "hold", &[seconds]);
    let outcome = round::together(tools, &entries, &args, rounds);
    let case = format!("a wait of {seconds} s that nothing ends");
    let figures = [("switches", "switches", "count"), ("cpu_ms", "cpu", "ms")];
    rows(report, &case, &entries, &outcome, &figures);
}
