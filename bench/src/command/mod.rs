//! What stands in front of a command: how much later it starts, how much slower
//! its output comes, and what is there meanwhile.

mod held;
mod output;
mod start;

use std::io;
use std::path::PathBuf;

use crate::report::Report;
use crate::round::{Effort, Entry};
use crate::suite::{self, Notes, Part};
use crate::tools::Tools;

/// Every case; `save` is called after each.
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
    let parts: [Part<Notes>; 5] = [
        start::run,
        output::to_null,
        output::through_a_pipe,
        output::on_a_terminal,
        held::run,
    ];
    suite::run(&parts, tools, effort, &notes, report, save)
}

/// A subject: its name, the name of its process, and the words in front of the
/// program. `PROCWRIGHT` is ours, `FILE` a file for a copy of the output, `LINE`
/// the program as a line for a shell; without a `LINE` the program stands last.
type Subject = (&'static str, &'static str, &'static [&'static str]);

const BARE: Subject = ("bare", "", &[]);
const TIMEOUT: Subject = ("timeout", "timeout", &["timeout", "1h"]);
const SCRIPT: Subject = (
    "script",
    "script",
    &["script", "-q", "-e", "-c", "LINE", "/dev/null"],
);
const SCRIPT_FILE: Subject = (
    "script-file",
    "script",
    &["script", "-q", "-e", "-c", "LINE", "FILE"],
);
const TEE: Subject = ("tee", "tee", &["sh", "-c", "\"$@\" | tee FILE", "sh"]);
const RUN: Subject = ("procwright-run", "procwright", &["PROCWRIGHT", "run", "--"]);
const RUN_TIMEOUT: Subject = (
    "procwright-run-timeout",
    "procwright",
    &["PROCWRIGHT", "run", "--timeout", "1h", "--"],
);
const RUN_RELAY: Subject = (
    "procwright-run-relay",
    "procwright",
    &["PROCWRIGHT", "run", "--idle-timeout", "1h", "--"],
);
const RUN_LOG: Subject = (
    "procwright-run-log",
    "procwright",
    &["PROCWRIGHT", "run", "--log", "FILE", "--"],
);
const RUN_PTY: Subject = (
    "procwright-run-pty",
    "procwright",
    &["PROCWRIGHT", "run", "--pty", "--"],
);
const RUN_PTY_LOG: Subject = (
    "procwright-run-pty-log",
    "procwright",
    &["PROCWRIGHT", "run", "--pty", "--log", "FILE", "--"],
);

/// How they are started, by `src/bin/command.rs`.
fn entries(tools: &Tools, notes: &Notes, subjects: &[Subject]) -> Vec<Entry> {
    let entry = |(name, process, words): &Subject| {
        // Absolute, so that it is seen to be missing.
        let ours = tools.built("procwright");
        let word = |word: &&str| match *word {
            "PROCWRIGHT" => ours.clone(),
            word => PathBuf::from(word),
        };
        let mut argv = vec![
            tools.built("bench-command"),
            PathBuf::from(process),
            notes.of(name),
        ];
        argv.extend(words.iter().map(word));
        Entry {
            name: (*name).to_owned(),
            argv,
        }
    };
    subjects.iter().map(entry).collect()
}

/// The names of ours among them, and of the others.
fn sides(subjects: &[Subject]) -> (Vec<&'static str>, Vec<&'static str>) {
    let names = subjects.iter().map(|(name, ..)| *name);
    names.partition(|name| name.starts_with("procwright"))
}
