//! What suites share: the run of their parts, a place for notes, the words of a case, rows and ratios.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::report::Report;
use crate::round::{Effort, Entry, Outcome};
use crate::tools::Tools;

/// A part of a suite, with a place for notes.
pub(crate) type Part<P> = fn(&Tools, Effort, &P, &mut Report);

/// Runs all parts; `save` is called after each, for they take minutes.
///
/// # Errors
/// What `save` fails with.
pub(crate) fn run<P>(
    parts: &[Part<P>],
    tools: &Tools,
    effort: Effort,
    place: &P,
    report: &mut Report,
    mut save: impl FnMut(&Report) -> io::Result<()>,
) -> io::Result<()> {
    for part in parts {
        part(tools, effort, place, report);
        save(report)?;
    }
    Ok(())
}

/// A place for what children write down. In memory where that can be had, so that
/// no disk has a say.
pub(crate) struct Notes(PathBuf);

impl Notes {
    pub(crate) fn new(dir: &Path) -> io::Result<Notes> {
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory } else { dir };
        let path = place.join(format!("procwright-bench-{}", std::process::id()));
        std::fs::create_dir(&path)?;
        // Whoever cannot write there says so now.
        File::create(path.join("any"))?;
        Ok(Notes(path))
    }

    /// One for a subject. It is there, and empty until a child has written it.
    pub(crate) fn of(&self, name: &str) -> PathBuf {
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

/// The words of a case.
pub(crate) fn words<const N: usize>(words: [&dyn ToString; N]) -> Vec<OsString> {
    words.map(|word| word.to_string().into()).into()
}

/// Key, metric, unit, and by how much to divide.
pub(crate) type Figure<'a> = (&'a str, &'a str, &'a str, f64);

/// A row of each subject that has the figure.
pub(crate) fn rows(
    report: &mut Report,
    case: &str,
    entries: &[Entry],
    outcome: &Outcome,
    figures: &[Figure<'_>],
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
pub(crate) fn ratios(
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
