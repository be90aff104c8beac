//! The Ruby library beside Ruby's own: captures, streams, closing, starting.
//!
//! The subjects that have a twin in the standard library are one script, which is told
//! whose `Open3` to take.

mod capture;
mod close;
mod spawn;
mod streams;

use std::io;

use crate::report::Report;
use crate::round::{Effort, Outcome};
use crate::suite::{self, Notes, Part};
use crate::tools::Tools;

/// Every case; `save` is called after each, for they take minutes.
///
/// # Errors
/// What `save` fails with, and when there is no place for a small file.
pub fn run(
    tools: &Tools,
    effort: Effort,
    report: &mut Report,
    save: impl FnMut(&Report) -> io::Result<()>,
) -> io::Result<()> {
    let notes = Notes::new(&tools.dir)?;
    let parts: [Part<Notes>; 6] = [
        capture::by_ruby,
        capture::by_c,
        close::others,
        streams::slow,
        streams::lines,
        spawn::rate,
    ];
    suite::run(&parts, tools, effort, &notes, report, save)
}

/// Who could not be measured: a line for each, whatever the size.
fn note_missing(report: &mut Report, outcome: Outcome) {
    for (name, reason) in outcome.missing {
        let name = name.split('/').next().unwrap_or(&name).to_owned();
        report.missing.insert(name, reason);
    }
}
