//! Which commands are run: what the journal tells, and what is written before a start.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::entry::{Entry, NotedEnd, now};
use super::error::JournalError;
use super::file::JournalFile;
use super::identity::Key;
use super::joblog::Joblog;
use super::line::{self, Line, Nth};
use crate::map::ended::Outcome;
use crate::map::past::Past;
use crate::spec::Spec;
use crate::spool::Memory;
use procwright_os::sync::Mutex;

/// A file by which a later map knows what has been done, in lines of JSON.
///
/// Before a command is started, a line says so, and another one when it has ended. So a map that
/// was killed in the middle of its work can be taken up again: what has ended is not run again
/// ([`Outcome::Before`]), what a cancel, the deadline or the failure of others had stopped is, and what was started without an end being known is told of
/// ([`Outcome::Unknown`]) and not run, unless [`Journal::rerun_unknown`] says so.
///
/// A command is known by a hash of its [`Spec`]: program, arguments, directory, variables,
/// stdin, user, and the files that its output goes to; not its timeouts, its stop and what is
/// kept of the output. Equal commands are counted, and as many are run as the input has. So the
/// input of the later map may have another order, and more or fewer commands.
///
/// A line is one `write(2)`: it survives the death of this process, also by SIGKILL. That it
/// survives a power failure is had by [`Journal::synced`].
///
/// ```
/// use procwright::Spec;
/// use procwright::map::{Journal, Map, Outcome};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("journal");
/// let commands = || ["a", "b"].map(|name| Spec::new(["echo", name]));
/// for ended in Map::new(commands()).journal(Journal::create(&path)?).start()? {
///     assert!(ended?.success());
/// }
/// for ended in Map::new(commands()).journal(Journal::resume(&path)?).start()? {
///     assert!(matches!(ended?.outcome, Outcome::Before(_))); // nothing is run again
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Journal {
    file: JournalFile,
    joblog: Option<Joblog>,
    reruns_failed: bool,
    reruns_unknown: bool,
    /// What the file tells.
    past: HashMap<Nth, Past>,
    /// How many commands of each key the input has had.
    seen: Mutex<HashMap<Key, u64>>,
}

/// What is to be done about a command.
pub(in crate::map) enum Admission {
    /// It is run, and was written down.
    Run(Entry),
    /// It was done before.
    Before(Past),
    /// It was started before, and more is not known.
    Unknown(Past),
}

impl Journal {
    /// A new journal. The file is made, or was empty.
    ///
    /// # Errors
    /// [`JournalError::Exists`] if there is something in it, [`JournalError::Busy`] if another map has
    /// it open, [`JournalError::Io`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Journal, JournalError> {
        let journal = Journal::open(path.into())?;
        match journal.past.is_empty() {
            true => Ok(journal),
            false => Err(JournalError::Exists {
                path: journal.file.path().to_owned(),
            }),
        }
    }

    /// A journal that is taken up again. One that is not there, or is empty, is begun.
    ///
    /// # Errors
    /// [`JournalError::Foreign`] if it is no journal of a map, [`JournalError::Elsewhere`] if it was begun in
    /// another directory, [`JournalError::Busy`] if another map has it open, [`JournalError::Io`].
    pub fn resume(path: impl Into<PathBuf>) -> Result<Journal, JournalError> {
        Journal::open(path.into())
    }

    /// Runs commands again that the journal says have failed, by a limit of their own, too. Those
    /// that the end of their map had stopped are run again in any case.
    #[must_use]
    pub fn rerun_failed(mut self) -> Journal {
        self.reruns_failed = true;
        self
    }

    /// Runs commands again of which the journal says that they were started, and not how they ended.
    /// They may have done their work, or a part of it, and may even still be running.
    #[must_use]
    pub fn rerun_unknown(mut self) -> Journal {
        self.reruns_unknown = true;
        self
    }

    /// Has each line on the disk before anything follows from it, by `fdatasync(2)`: the journal is
    /// right after a power failure, too. Each command waits for the disk twice.
    #[doc(alias = "fsync")]
    #[must_use]
    pub fn synced(mut self) -> Journal {
        self.file.is_synced = true;
        self
    }

    /// Writes a [`Joblog`] besides.
    #[must_use]
    pub fn joblog(mut self, joblog: Joblog) -> Journal {
        self.joblog = Some(joblog);
        self
    }

    fn open(path: PathBuf) -> Result<Journal, JournalError> {
        let file = JournalFile::open(path)?;
        let io = |source| JournalError::Io {
            what: "begin",
            path: file.path().to_owned(),
            source,
        };
        let here = std::env::current_dir().map_err(io)?;
        let mut past: HashMap<Nth, Past> = HashMap::new();
        let mut has_begun = false;
        let extent = file.read(|line| {
            match line {
                Line::Map { cwd } if cwd == here => has_begun = true,
                Line::Map { cwd } => {
                    return Err(JournalError::Elsewhere {
                        path: file.path().to_owned(),
                        begun: cwd,
                        here: here.clone(),
                    });
                }
                // A later line is of a later attempt.
                Line::Started { nth, at } => {
                    let end = None;
                    past.insert(
                        nth,
                        Past {
                            started_at: at,
                            end,
                        },
                    );
                }
                Line::Ended { nth, end } => {
                    if let Some(past) = past.get_mut(&nth) {
                        past.end = Some(end);
                    }
                }
            }
            Ok(())
        })?;
        if extent.whole + extent.torn > 0 && !has_begun {
            return Err(JournalError::Foreign {
                path: file.path().to_owned(),
                line: 1,
                problem: "it does not say that a map begins".to_owned(),
            });
        }
        file.cut(extent)?;
        Ok(Journal {
            file,
            joblog: None,
            reruns_failed: false,
            reruns_unknown: false,
            past,
            seen: Mutex::default(),
        })
    }

    /// Says in the file that a map begins.
    pub(in crate::map) fn begin(&self) -> Result<(), JournalError> {
        let here = std::env::current_dir().map_err(|source| JournalError::Io {
            what: "begin",
            path: self.file.path().to_owned(),
            source,
        })?;
        self.file.append(&line::map(&here, now()))
    }

    /// Gives the file up for other maps. Nothing is written any more.
    pub(in crate::map) fn end(&self) {
        self.file.unlock();
    }

    /// Decides about a command, and writes down that it is started, if it is.
    pub(in crate::map) fn admit(
        &self,
        index: u64,
        spec: &Arc<Spec>,
    ) -> Result<Admission, JournalError> {
        let key = Key::of(spec)?;
        let number = {
            let mut seen = self.seen.lock();
            let number = seen.entry(key).or_default();
            *number += 1;
            *number
        };
        let nth = Nth { key, number };
        match self.past.get(&nth) {
            Some(past) if past.end.is_none() && !self.reruns_unknown => {
                return Ok(Admission::Unknown(past.clone()));
            }
            // What the end of a map has stopped is taken up again, as what it had not come to.
            Some(past) if past.was_stopped() => {}
            Some(past) if past.success() || (past.end.is_some() && !self.reruns_failed) => {
                return Ok(Admission::Before(past.clone()));
            }
            _ => {}
        }
        let started_at = now();
        let started = line::started(nth, index, &spec.argv, started_at);
        self.file.append(&started)?;
        Ok(Admission::Run(Entry {
            nth,
            index,
            argv: spec.argv.clone(),
            started_at,
        }))
    }

    /// Writes down what became of a command, and whether the end of the map has stopped it.
    pub(in crate::map) fn ended<M: Memory>(
        &self,
        entry: &Entry,
        outcome: &Outcome<M>,
        was_stopped: bool,
    ) -> Result<(), JournalError> {
        let Some(end) = NotedEnd::of(outcome, was_stopped) else {
            return Ok(());
        };
        self.file.append(&end.line(entry))?;
        match &self.joblog {
            Some(joblog) => joblog.append(entry, &end),
            None => Ok(()),
        }
    }
}
