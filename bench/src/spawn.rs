//! How many times a second `/bin/true` can be run, from a small parent and from
//! one with 4 GiB resident, with and without changes to the child's state.

use std::path::PathBuf;
use std::time::Duration;

use crate::report::Report;
use crate::round::{self, Effort, Entry, Rounds};
use crate::tools::Tools;

const FLOOR: &str = "floor-spawn";
const SUBPROCESS: &str = "python-subprocess-spawn";
const OURS: [&str; 2] = ["procwright-rust-spawn", "procwright-python-spawn"];

/// Sizes of the parent.
const SIZES: [(&str, u64); 2] = [("small", 0), ("large", 4 << 30)];

/// Runs a batch, and those of a large parent that has to fork for a limit: it
/// pays for its size every time.
const COUNT: u32 = 300;
const COUNT_FORKING: u32 = 15;

const KINDS: [(&str, &str); 2] = [
    ("plain", "plain_per_s"),
    ("umask, limit, session, directory", "changed_per_s"),
];

/// All four cases.
pub fn run(tools: &Tools, effort: Effort, report: &mut Report) {
    let rounds = effort.rounds(Rounds {
        least: 1,
        most: 2,
        budget: Duration::from_secs(8),
    });
    let subjects = [
        (FLOOR, vec![tools.built("spawn")]),
        (SUBPROCESS, tools.script("python", "subprocess_spawn.py")),
        (OURS[0], vec![tools.built("bench-rust-spawn")]),
        (OURS[1], tools.script("python", "procwright_spawn.py")),
    ];
    let mut entries = Vec::new();
    for (name, argv) in &subjects {
        for (size, bytes) in SIZES {
            let forks = *name == SUBPROCESS && size == "large";
            let changed = if forks { COUNT_FORKING } else { COUNT };
            let batches = if effort.is_quick() { 1 } else { 3 };
            let words = [
                COUNT.to_string(),
                batches.to_string(),
                bytes.to_string(),
                changed.to_string(),
            ];
            let mut argv = argv.clone();
            argv.extend(words.map(PathBuf::from));
            entries.push(Entry {
                name: format!("{name}/{size}"),
                argv,
            });
        }
    }
    let outcome = round::go(tools, &entries, &[], &[], rounds);
    for (kind, key) in KINDS {
        for (size, _) in SIZES {
            let case = format!("spawn, {kind}, {size} parent");
            for (name, _) in &subjects {
                let rate = outcome.known(&format!("{name}/{size}"), key);
                report.row(&case, name, "rate", "1/s", &rate);
            }
            for ours in OURS {
                for other in [FLOOR, SUBPROCESS] {
                    let pairs =
                        outcome.ratios(&format!("{ours}/{size}"), &format!("{other}/{size}"), key);
                    report.ratio(&case, "rate", ours, other, &pairs);
                }
            }
        }
        for (name, _) in &subjects {
            let [large, small] = ["large", "small"].map(|size| format!("{name}/{size}"));
            let pairs = outcome.ratios(&large, &small, key);
            let case = format!("spawn, {kind}: large parent against small");
            report.ratio(&case, "rate", &large, &small, &pairs);
        }
    }
    // One line a subject, whatever the size.
    for (name, reason) in outcome.missing {
        let name = name.split('/').next().unwrap_or(&name).to_owned();
        report.missing.insert(name, reason);
    }
}
