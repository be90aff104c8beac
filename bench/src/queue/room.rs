//! Bursts for a receiver that sleeps, and much that waits to be received.

use super::{OURS, PEERS, args, entry, is_of_use, length, rounds};
use crate::report::Report;
use crate::round::Effort;
use crate::tools::Tools;

/// Long enough for a receiver to have given up looking, and for ours to have gone
/// over from its short sleep to its long one.
const REST_MS: u64 = 30;

/// Messages of a burst.
const BURSTS: [u64; 2] = [1, 1_000];

const BYTES: usize = 64;

/// What all who sleep are asked for.
fn sleepers(is_many: bool) -> impl Iterator<Item = &'static str> {
    let all = OURS.into_iter().chain(PEERS);
    all.filter(move |name| is_of_use(name, BYTES, is_many))
}

/// After a rest.
pub(super) fn bursts(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let bursts = match effort {
        Effort::Quick => 3,
        Effort::Rounds(_) => 9,
    };
    for messages in BURSTS {
        let entries: Vec<_> = sleepers(messages > 1)
            .map(|name| entry(tools, name))
            .collect();
        let plural = if messages == 1 { "" } else { "s" };
        let case = format!("burst of {messages} message{plural} of {}", length(BYTES));
        let args = args(
            "burst",
            "sleep",
            [BYTES as u64, 1, messages, bursts, REST_MS],
        );
        let mut figures = vec![("last_us", "last", "µs", 1.0)];
        if messages > 1 {
            figures.push(("first_us", "first", "µs", 1.0));
        }
        let rounds = rounds(effort);
        super::measure(tools, report, &case, &entries, &args, rounds, &figures);
    }
}

const ROOM: u64 = 256 << 20;
const PIECE: usize = 64 << 10;

/// From nothing to 256 MiB. Those that have a fixed size are made with that; the
/// others cannot.
pub(super) fn growth(tools: &Tools, effort: Effort, (): &(), report: &mut Report) {
    let names = ["procwright", "procwright-reserve", "iceoryx2", "cloudtoid"];
    let names = names.into_iter().chain(["floor-memory"]);
    let entries: Vec<_> = names.map(|name| entry(tools, name)).collect();
    let case = format!("{} in pieces of {}", length(ROOM as usize), length(PIECE));
    let args = args("growth", "spin", [PIECE as u64, 1, ROOM, 0, 0]);
    let figures = [
        ("fill", "rate", "MiB/s", 1.0),
        ("drain", "drain", "MiB/s", 1.0),
        ("held_empty", "held before", "MiB", 1.0),
        ("held_full", "held when full", "MiB", 1.0),
        ("held_after", "held afterwards", "MiB", 1.0),
    ];
    let rounds = rounds(effort);
    super::measure(tools, report, &case, &entries, &args, rounds, &figures);
}
