//! A merge in the place of the pipes between several runs and the next one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::next_pipe::NextPipe;
use super::passing_thread::{PassingThread, new_wake};
use crate::buffer::{Error, LongLine, Merge};
use crate::child::Unstarted;
use crate::error::{SpawnError, Step};
use procwright_os::fork::CloseOnFork;

/// A merge of several pipes into one, with its thread.
pub(super) struct MergeJoint {
    thread: PassingThread<Result<(), Error>>,
    /// The end to write, until it is known that all was passed on: who reads must not take a part
    /// for all of it, and is stopped before it sees an end.
    output: Option<Arc<CloseOnFork>>,
    next: NextPipe,
}

impl MergeJoint {
    /// A merge that reads `inputs`. Returns the pipe to be read by the run behind, too.
    ///
    /// # Errors
    /// No descriptor or thread is left.
    pub(super) fn new(
        inputs: Vec<OwnedFd>,
        long: LongLine,
    ) -> Result<(MergeJoint, OwnedFd), Unstarted> {
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let (next, read, write) = NextPipe::new().map_err(no_descriptor)?;
        let cut = new_wake()?;
        let output = Arc::new(CloseOnFork::new(write));
        let merge = Merge::new(inputs, long, Arc::clone(&output), Arc::clone(&cut));
        let joint = MergeJoint {
            thread: PassingThread::start(cut, || merge.run())?,
            output: Some(output),
            next,
        };
        Ok((joint, read))
    }

    pub(super) fn thread(&self) -> &PassingThread<Result<(), Error>> {
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
        match self.thread.end("merge").transpose()? {
            None => Ok(()),
            Some(Ok(())) => {
                self.output = None;
                Ok(())
            }
            Some(Err(error)) => Err(io::Error::other(error)),
        }
    }
}
