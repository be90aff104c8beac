//! Whether a peer lives: what it costs to ask, and how late the end is known.

mod check;
mod latency;

use std::ffi::OsString;
use std::io;

use crate::report::Report;
use crate::round::{Effort, Entry};
use crate::suite::{self, Part};
use crate::tools::Tools;

/// Every case; `save` is called after each.
///
/// # Errors
/// What `save` fails with.
pub fn run(
    tools: &Tools,
    effort: Effort,
    report: &mut Report,
    save: impl FnMut(&Report) -> io::Result<()>,
) -> io::Result<()> {
    let parts: [Part<()>; 4] = [
        check::run,
        latency::small,
        latency::large,
        latency::many_waiters,
    ];
    suite::run(&parts, tools, effort, &(), report, save)
}

/// The programs. Each measures several subjects in turn: what they are compared
/// for is less than what differs between two starts of a program.
const OURS: &str = "procwright-rust-liveness";
const FLOOR: &str = "floor-liveness";
const ICEORYX2: &str = "iceoryx2";
const PYTHON: &str = "python-liveness";

fn entry(tools: &Tools, name: &str) -> Entry {
    let argv = match name {
        OURS => vec![tools.built("bench-rust-liveness")],
        ICEORYX2 => vec![tools.built("bench-iceoryx2")],
        PYTHON => tools.script("python", "liveness_python.py"),
        _ => vec![tools.built("liveness")],
    };
    Entry {
        name: name.to_owned(),
        argv,
    }
}

/// `CASE NUMBER…`
fn args(case: &str, numbers: [u64; 2]) -> Vec<OsString> {
    let numbers = numbers.iter().map(|number| number.to_string().into());
    std::iter::once(case.into()).chain(numbers).collect()
}
