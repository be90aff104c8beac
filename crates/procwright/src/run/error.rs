//! The errors of a run.

use std::io;

use super::output::Output;
use crate::child::Unstarted;
use crate::error::BoxError;
use crate::error::{Invalid, SpawnError};
use crate::quote::quote;
use crate::spec::Spec;

/// Why a run has no result, or one that must not be overlooked.
///
/// The whole [`Output`] is attached where a program has run: nothing that was
/// read is lost because of an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that cannot be used. Nothing was started.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The program could not be started. Nothing is left of it.
    #[error("cannot run {command}: {source}")]
    Spawn {
        /// The command as a shell takes it; of a long one the beginning and the end.
        command: String,
        /// The step that failed.
        source: SpawnError,
    },
    /// The run was cancelled before its program was started, so nothing was.
    #[error("{command} was cancelled before it was started")]
    Cancelled {
        /// The command as a shell takes it; of a long one the beginning and the end.
        command: String,
    },
    /// Code of the caller's that runs on its thread, a [`Watch`](crate::Watch) or the hook of
    /// the clock, has forked and returned in the fork, where this is the result. The run goes
    /// on in the parent.
    #[doc(alias = "pthread_atfork")]
    #[error("{command} is run by the process that this one was forked from meanwhile")]
    Forked {
        /// The command as a shell takes it.
        command: String,
        /// The error that the watch has returned in the fork.
        source: Option<BoxError>,
    },
    /// The run was stopped: by a timeout, an output limit or a cancel. The
    /// report's reason says which.
    #[doc(alias = "TimeoutExpired")]
    #[error("{}", .0.explain())]
    Stopped(Box<Output>),
    /// The program failed, and [`check`] was asked for.
    ///
    /// [`check`]: crate::Command::check
    #[doc(alias = "CalledProcessError")]
    #[error("{}", .0.explain())]
    Failed(Box<Output>),
    /// The producer of stdin, a callback or a hook failed. The run was stopped.
    #[error("{what} of {command} failed: {source}")]
    Foreign {
        /// The code that failed.
        what: Foreign,
        /// The command as a shell takes it; of a long one the beginning and the end.
        command: String,
        /// The error itself.
        source: BoxError,
        /// The result as far as the run had come.
        output: Box<Output>,
    },
    /// The system failed us while the program ran. The run was stopped.
    #[error("reading the output of {command} failed: {source}")]
    Io {
        /// The command as a shell takes it; of a long one the beginning and the end.
        command: String,
        /// The system's answer.
        source: io::Error,
        /// The result as far as the run had come.
        output: Box<Output>,
    },
}

impl Error {
    /// The result as far as the run had come, if a program was started.
    pub fn output(&self) -> Option<&Output> {
        match self {
            Error::Invalid(_)
            | Error::Spawn { .. }
            | Error::Cancelled { .. }
            | Error::Forked { .. } => None,
            Error::Stopped(output)
            | Error::Failed(output)
            | Error::Foreign { output, .. }
            | Error::Io { output, .. } => Some(output),
        }
    }

    pub(crate) fn unstarted(unstarted: Unstarted, spec: &Spec) -> Error {
        match unstarted {
            Unstarted::Invalid(invalid) => Error::Invalid(invalid),
            Unstarted::Spawn(source) => Error::Spawn {
                command: quote(&spec.argv),
                source,
            },
            Unstarted::Cancelled => Error::Cancelled {
                command: quote(&spec.argv),
            },
        }
    }
}

/// Code that is not ours and takes part in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// The iterator or reader that stdin comes from.
    Stdin,
    /// A callback that gets output.
    Callback,
    /// The copy of a stream to the caller's own.
    Relay,
    /// The hook that gets events.
    Event,
    /// The watch over a descriptor of the caller's.
    Watch,
    /// The function between a stage of a pipeline and the next one.
    Function,
}

impl std::fmt::Display for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Foreign::Stdin => "the stdin iterator",
            Foreign::Callback => "the output callback",
            Foreign::Relay => "passing on the output",
            Foreign::Event => "the event hook",
            Foreign::Watch => "the watch",
            Foreign::Function => "the function for the output",
        })
    }
}
