//! The streams of children that a caller holds: how fast they are read, what a
//! stage in between does, what a close costs, what a slow reader costs the child.

mod close;
mod read;
pub(crate) mod slow;
mod stage;

pub(crate) use close::room;

use std::io;
use std::path::PathBuf;

use crate::report::Report;
use crate::round::{Effort, Entry};
use crate::suite::{self, Notes, Part, ratios, rows, words};
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
    let parts: [Part<Notes>; 9] = [
        read::chunks,
        read::lines,
        stage::throughput,
        stage::bursts,
        close::others,
        close::waiters,
        close::epipe,
        slow::reader,
        slow::many,
    ];
    suite::run(&parts, tools, effort, &notes, report, save)
}

/// A subject: its name, its program, and the words before those of the case. A
/// program that ends in `.py` or `.rb` is a script among the peers.
pub(crate) type Subject = (&'static str, &'static str, &'static [&'static str]);

/// How a subject is started.
fn entry(tools: &Tools, (name, program, words): &Subject) -> Entry {
    let mut argv = match program.rsplit_once('.') {
        Some((_, "py")) => tools.script("python", program),
        Some((_, "rb")) => tools.script("ruby", program),
        Some((_, "class")) => {
            let classes = tools.built("java");
            vec!["java".into(), "-Xss256k".into(), "-cp".into(), classes]
        }
        // A command of the system.
        Some((command, "command")) => vec![command.into()],
        _ => vec![tools.built(program)],
    };
    argv.extend(words.iter().map(PathBuf::from));
    Entry {
        name: (*name).to_owned(),
        argv,
    }
}

pub(crate) fn entries(tools: &Tools, subjects: &[Subject]) -> Vec<Entry> {
    let all = subjects.iter();
    all.map(|subject| entry(tools, subject)).collect()
}
