//! The first capture of a fresh process, on a machine that has rested.
//!
//! Free memory may have gone back to a hypervisor by then, and has to be had from there
//! anew. Each run is the first after a rest, so no subject warms the memory for another.
//! The processor time is that of the subject and its child, the start of an interpreter
//! included: what remains of a comparison on a machine that does other things.

use std::ffi::OsString;
use std::io;
use std::time::Duration;

use crate::capture;
use crate::report::Report;
use crate::round::{self, Effort, Entry, Rounds};
use crate::suite::{ratios, rows};
use crate::tools::Tools;

const MIB: u64 = 1 << 20;

const OURS: [&str; 2] = ["procwright-rust", "procwright-python"];

/// Plain readers, a thread for each stream.
const PEERS: [&str; 3] = ["floor-threads", "python-threads", "duct"];

/// MiB in all, half of them on each stream.
const SIZES: [u64; 6] = [1, 4, 32, 128, 512, 2048];
const QUICK_SIZES: [u64; 3] = [1, 32, 128];

/// Long enough for all that the machine gives back.
const REST: Duration = Duration::from_secs(15);
const QUICK_REST: Duration = Duration::from_secs(3);

/// Every size; `save` is called after each, for they take minutes.
///
/// # Errors
/// What `save` fails with.
pub fn run(
    tools: &Tools,
    effort: Effort,
    report: &mut Report,
    mut save: impl FnMut(&Report) -> io::Result<()>,
) -> io::Result<()> {
    let (sizes, rest) = match effort {
        Effort::Quick => (&QUICK_SIZES[..], QUICK_REST),
        Effort::Rounds(_) => (&SIZES[..], REST),
    };
    let rounds = effort.rounds(Rounds {
        least: 2,
        most: 2,
        budget: Duration::ZERO,
    });
    let names = PEERS.iter().chain(&OURS);
    let entries: Vec<Entry> = names
        .map(|name| Entry {
            name: (*name).to_owned(),
            argv: capture::argv(tools, name),
        })
        .collect();
    for mib in sizes {
        let each = mib * MIB / 2;
        let args: Vec<OsString> = capture::flood(tools, 2, each, 4 << 10);
        let expect = [("bytes_out", each), ("bytes_err", each)];
        let outcome = round::go_after(rest, tools, &entries, &args, &expect, rounds);
        let case = format!("cold, {mib} MiB on two streams in 4 KiB writes");
        let figures = [
            ("seconds", "time", "ms", 1e-3),
            ("processor_s", "processor time", "ms", 1e-3),
            ("faults", "page faults", "", 1.0),
            ("switches", "context switches", "", 1.0),
        ];
        rows(report, &case, &entries, &outcome, &figures);
        for figure in [["seconds", "time"], ["processor_s", "processor time"]] {
            ratios(report, &case, &OURS, &PEERS, &outcome, figure);
        }
        save(report)?;
    }
    Ok(())
}
