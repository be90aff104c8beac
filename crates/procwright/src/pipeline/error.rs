//! The errors of a pipeline.

use std::io;

use super::report::PipelineOutput;
use crate::error::{BoxError, Invalid, SpawnError};
use crate::run::Foreign;
use crate::stream::Stalled;

/// Why a pipeline has no result, or one that must not be overlooked.
///
/// Stages count from 0 in fields, as in a slice, and from 1 in texts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that cannot be used. Nothing was started.
    #[error("{}{source}", of_stage(*stage))]
    Invalid {
        /// The stage whose value it is; none for one of the whole.
        stage: Option<usize>,
        /// The value, and what is wrong with it.
        source: Invalid,
    },
    /// A stage could not be started. Of the others nothing is left: those behind it may have
    /// been started, and have got nothing to read before they were killed.
    #[error("cannot run stage {} of {of}, {command}: {source}", stage + 1)]
    Spawn {
        /// The stage.
        stage: usize,
        /// How many stages there are.
        of: usize,
        /// Its command as a shell takes it; of a long one the beginning and the end.
        command: String,
        /// The step that failed.
        source: SpawnError,
    },
    /// It was cancelled before a program was started, so none was.
    #[error("{command} was cancelled before it was started")]
    Cancelled {
        /// The commands as a shell takes them.
        command: String,
    },
    /// A hook of the caller's, on its thread, has forked and returned in the fork, where this
    /// is the result. The pipeline goes on in the parent.
    #[error("{command} is run by the process that this one was forked from meanwhile")]
    Forked {
        /// The commands as a shell takes them.
        command: String,
    },
    /// Nothing more can be known of a spawned one: the thread that looked after it has panicked,
    /// and its programs were killed.
    #[error("{command} was given up: the thread that looked after it has panicked")]
    Lost {
        /// The commands as a shell takes them.
        command: String,
    },
    /// The programs of a spawned one cannot go on: an output is full and not read.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// A stream of a spawned one could not be read or written.
    #[error("a stream of {command} failed: {source}")]
    Stream {
        /// The commands as a shell takes them.
        command: String,
        /// The error of the read or write.
        source: io::Error,
    },
    /// The patience of a wait has been interrupted. The wait may be taken up again.
    #[error("interrupted while waiting for {command}")]
    Interrupted {
        /// The commands as a shell takes them.
        command: String,
    },
    /// All had to be stopped: by a limit or a cancel. The report's reason says which.
    #[error("{}", .0.explain())]
    Stopped(Box<PipelineOutput>),
    /// It failed, and [`check`](super::Pipeline::check) was asked for.
    #[error("{}", .0.explain())]
    Failed(Box<PipelineOutput>),
    /// The producer of stdin, a callback or a hook failed. All were stopped.
    #[error("{what} of {command} failed: {source}")]
    Foreign {
        /// The code that failed.
        what: Foreign,
        /// The stage that it belongs to; none for a hook of the whole.
        stage: Option<usize>,
        /// The command of the stage, or the commands of all.
        command: String,
        /// The error itself.
        source: BoxError,
        /// The result as far as it had come.
        output: Box<PipelineOutput>,
    },
    /// The system failed us while the programs ran. All were stopped.
    #[error("reading the output of {command} failed: {source}")]
    Io {
        /// The stage whose output it was; none where that cannot be said.
        stage: Option<usize>,
        /// Its command, or the commands of all.
        command: String,
        /// The system's answer.
        source: io::Error,
        /// The result as far as it had come.
        output: Box<PipelineOutput>,
    },
}

impl Error {
    /// The result as far as it had come, if programs were started.
    pub fn output(&self) -> Option<&PipelineOutput> {
        match self {
            Error::Invalid { .. }
            | Error::Spawn { .. }
            | Error::Cancelled { .. }
            | Error::Forked { .. }
            | Error::Lost { .. }
            | Error::Stalled(_)
            | Error::Stream { .. }
            | Error::Interrupted { .. } => None,
            Error::Stopped(output)
            | Error::Failed(output)
            | Error::Foreign { output, .. }
            | Error::Io { output, .. } => Some(output),
        }
    }
}

fn of_stage(stage: Option<usize>) -> String {
    stage.map_or_else(String::new, |place| format!("stage {}: ", place + 1))
}
