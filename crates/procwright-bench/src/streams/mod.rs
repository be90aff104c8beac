//! The streams of children that a caller holds: how fast they are read, what a
//! stage in between does, what a close costs, what a slow reader costs the child.

mod close;
mod read;
mod slow;
mod stage;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::report::Report;
use crate::round::{Effort, Entry, Outcome};
use crate::tools::Tools;

/// Every case; `save` is called after each, for they take minutes.
///
/// # Errors
/// What `save` fails with, and when there is no place for a small file.
pub fn run(
    tools: &Tools,
    effort: Effort,
    report: &mut Report,
    mut save: impl FnMut(&Report) -> io::Result<()>,
) -> io::Result<()> {
    let notes = Notes::new(&tools.dir)?;
    let parts: [Part; 9] = [
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
    for part in parts {
        part(tools, effort, &notes, report);
        save(report)?;
    }
    Ok(())
}

type Part = fn(&Tools, Effort, &Notes, &mut Report);

/// A place for what children write down. In memory where that can be had, so that
/// no disk has a say.
struct Notes(PathBuf);

impl Notes {
    fn new(dir: &Path) -> io::Result<Notes> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory } else { dir };
        let path = place.join(format!("procwright-bench-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        // Whoever cannot write there says so now.
        File::create(path.join("any"))?;
        Ok(Notes(path))
    }

    /// One for a subject. It is there, and empty until a child has written it.
    fn of(&self, name: &str) -> PathBuf {
        let path = self.0.join(name.replace('/', "-"));
        // Whether that is possible was asked at the start.
        let _ = File::create(&path);
        path
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A subject: its name, its program, and the words before those of the case. A
/// program that ends in `.py` or `.rb` is a script among the peers.
type Subject = (&'static str, &'static str, &'static [&'static str]);

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

fn entries(tools: &Tools, subjects: &[Subject]) -> Vec<Entry> {
    let all = subjects.iter();
    all.map(|subject| entry(tools, subject)).collect()
}

/// The words of a case.
fn words<const N: usize>(words: [&dyn ToString; N]) -> Vec<OsString> {
    words.map(|word| word.to_string().into()).into()
}

/// A row of each subject that has the figure: key, metric, unit, and by how much
/// to divide.
fn rows(
    report: &mut Report,
    case: &str,
    entries: &[Entry],
    outcome: &Outcome,
    figures: &[(&str, &str, &str, f64)],
) {
    for (key, metric, unit, divisor) in figures {
        for Entry { name, .. } in entries {
            let known = outcome.known(name, key);
            let known: Vec<f64> = known.iter().map(|figure| figure / divisor).collect();
            report.row(case, name, metric, unit, &known);
        }
    }
    report.missing.extend(outcome.missing.clone());
}

/// Ours over each of theirs, pair by pair.
fn ratios(
    report: &mut Report,
    case: &str,
    ours: &[&str],
    theirs: &[&str],
    outcome: &Outcome,
    figure: [&str; 2],
) {
    let [key, metric] = figure;
    for ours in ours {
        for theirs in theirs {
            let pairs = outcome.ratios(ours, theirs, key);
            report.ratio(case, metric, ours, theirs, &pairs);
        }
    }
}
