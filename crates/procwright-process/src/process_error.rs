//! [`ProcessError`].

use std::io;

use rustix::io::Errno;

use crate::id::Id;
use procwright_os::Invalid;

/// The error of a call about a process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// There is no such process: it has ended, its number may even be another's
    /// by now, or there never was one.
    ///
    /// Without a name if it was to be known by a pidfd: nothing has one any more.
    #[error("{}", gone(.0.as_ref()))]
    Gone(Option<Id>),
    /// The name of a process is not one.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The system refuses: `EPERM` for a signal to another user's process.
    #[error("cannot {what} process {id}: {source}")]
    System {
        /// The thing that was to be done.
        what: &'static str,
        /// The process.
        id: Id,
        /// The system's answer.
        source: io::Error,
    },
}

fn gone(id: Option<&Id>) -> String {
    match id {
        Some(id) => format!(
            "there is no process {id}: it has ended, or never was\n  \
             hint: `ps -p {}` shows who has the number now",
            id.pid()
        ),
        None => "the process of this pidfd has ended and was reaped".into(),
    }
}

impl ProcessError {
    pub(crate) fn new(what: &'static str, id: Id, source: io::Error) -> ProcessError {
        let gone = source.kind() == io::ErrorKind::NotFound
            || source.raw_os_error() == Some(Errno::SRCH.raw_os_error());
        if gone {
            ProcessError::Gone(Some(id))
        } else {
            ProcessError::System { what, id, source }
        }
    }

    /// The `errno` value, 0 if the error is not the system's.
    pub fn errno(&self) -> i32 {
        match self {
            ProcessError::Gone(_) => Errno::SRCH.raw_os_error(),
            ProcessError::Invalid(_) => 0,
            ProcessError::System { source, .. } => source.raw_os_error().unwrap_or(0),
        }
    }
}
