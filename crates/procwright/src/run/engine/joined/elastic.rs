//! An elastic buffer in the place of the pipe between two runs.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::next_pipe::NextPipe;
use super::passing_thread::{PassingThread, new_wake};
use crate::buffer::{Buffer, Error, Figures, Monitor, Outcome};
use crate::child::Unstarted;
use crate::error::{SpawnError, Step};
use crate::spool::Overflow;
use procwright_os::fork::CloseOnFork;

/// A buffer between two pipes, with its two threads.
pub(super) struct ElasticJoint {
    thread: PassingThread<PassedOn>,
    monitor: Monitor,
    /// The end to write of the pipe to the run behind, if not all was passed on: who reads must
    /// not take a part for all of it, and is stopped before it sees an end.
    unfinished: Option<Arc<CloseOnFork>>,
    next: NextPipe,
}

/// What came of a buffer; with its output, if that has not got all.
pub(super) type PassedOn = Result<Outcome, (Error, Arc<CloseOnFork>)>;

impl ElasticJoint {
    /// A buffer that reads `input`. Returns the pipe to be read by the run behind, too.
    ///
    /// # Errors
    /// No descriptor or thread is left, or the directory of the files cannot be used.
    pub(super) fn new(
        overflow: Overflow,
        input: OwnedFd,
    ) -> Result<(ElasticJoint, OwnedFd), Unstarted> {
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let (next, read, write) = NextPipe::new().map_err(no_descriptor)?;
        let cut = new_wake()?;
        let buffer = Buffer::new(overflow).map_err(|error| refused(error, Step::Pipe))?;
        let monitor = buffer.monitor();
        let begun = buffer.begin(write, Some(Arc::clone(&cut)));
        let begun = begun.map_err(|error| refused(error, Step::Thread))?;
        let thread = PassingThread::start(cut, move || {
            let output = begun.output();
            begun.read(input).map_err(|error| (error, output))
        })?;
        let joint = ElasticJoint {
            thread,
            monitor,
            unfinished: None,
            next,
        };
        Ok((joint, read))
    }

    /// The thread that reads.
    pub(super) fn thread(&self) -> &PassingThread<PassedOn> {
        &self.thread
    }

    /// The pipe to the run behind.
    pub(super) fn next(&self) -> &NextPipe {
        &self.next
    }

    /// Takes note of its end.
    ///
    /// # Errors
    /// What kept a byte from being passed on.
    pub(super) fn note_end(&mut self) -> io::Result<()> {
        match self.thread.end("buffer").transpose()? {
            None | Some(Ok(_)) => Ok(()),
            Some(Err((error, output))) => {
                self.unfinished = Some(output);
                Err(io::Error::other(error))
            }
        }
    }

    pub(super) fn figures(&self) -> Figures {
        self.monitor.figures()
    }
}

/// The refusal of a start that is told of by a buffer.
pub(super) fn refused(error: Error, step: Step) -> Unstarted {
    match error {
        Error::Invalid(error) => Unstarted::Invalid(error),
        Error::Setup(error) => SpawnError::new(step, "", error).into(),
        other => SpawnError::new(step, "", io::Error::other(other)).into(),
    }
}
