//! Why a journal cannot be used.

use std::io;
use std::path::{Path, PathBuf};

/// Why the journal of a map cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The file cannot be opened, read or written.
    #[error("cannot {what} the journal {:?}: {source}", path.display())]
    Io {
        /// What was tried: `open`, `read`, `write`, `lock`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is a journal already, and nobody said that the map goes on with it.
    #[error(
        "the journal {:?} is not empty\n  hint: resume it, so that nothing is done twice, or name \
         another file",
        path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another map is using it.
    #[error("the journal {:?} is being written by another map\n  hint: wait for its end", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// It is a pipe, a terminal or another thing that no lines can be read from again.
    #[error(
        "the journal {:?} is not a regular file\n  hint: a later map reads in it what was done: name a \
         file that keeps it",
        path.display()
    )]
    NotRegular {
        /// The file.
        path: PathBuf,
    },
    /// The joblog is a FIFO, of which the opening for writing would wait for its reader.
    #[error("nobody reads the FIFO {:?}\n  hint: start its reader first", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
    },
    /// It is not a journal of a map, or not one that this version understands.
    #[error("line {line} of {:?} is not of a journal that this version can read: {problem}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// It was begun in another directory, where the names of files mean others.
    #[error(
        "the journal {:?} was begun in {:?}, and this is {:?}\n  hint: its commands mean files there; \
         go there to resume it",
        path.display(), begun.display(), here.display()
    )]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// The directory in which it was begun.
        begun: PathBuf,
        /// The directory of this process.
        here: PathBuf,
    },
    /// A command that cannot be written as text cannot be known again.
    #[error("{command} cannot be written down: {source}")]
    Nameless {
        /// The command as a shell takes it.
        command: String,
        /// What cannot be written.
        source: serde_json::Error,
    },
}

impl JournalError {
    pub(super) fn io(what: &'static str, path: &Path, source: io::Error) -> JournalError {
        let path = path.to_owned();
        JournalError::Io { what, path, source }
    }
}
