//! A merge in the place of the pipes between several runs and the next one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::next_pipe::{NextPipe, RingOnDrop};
use crate::buffer::{Error, Merge};
use crate::child::Unstarted;
use crate::error::{SpawnError, Step};
use procwright_os::fork::CloseOnFork;
use procwright_os::thread;
use procwright_os::wake::Wake;

/// A merge of several pipes into one, with its thread. Dropped, it is cut.
pub(super) struct MergeJoint {
    /// Rung when nothing more is to be passed on.
    cut: Arc<Wake>,
    /// Rung when nothing more is passed on.
    done: Arc<Wake>,
    /// None once its end was seen.
    thread: Option<JoinHandle<Result<(), Error>>>,
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
    pub(super) fn new(inputs: Vec<OwnedFd>) -> Result<(MergeJoint, OwnedFd), Unstarted> {
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let (next, read, write) = NextPipe::new().map_err(no_descriptor)?;
        let cut = Arc::new(Wake::new().map_err(no_descriptor)?);
        let done = Arc::new(Wake::new().map_err(no_descriptor)?);
        let output = Arc::new(CloseOnFork::new(write));
        let merge = Merge::new(inputs, Arc::clone(&output), Arc::clone(&cut));
        let rung_at_end = RingOnDrop(Arc::clone(&done));
        let pass_on = move || {
            let _rung_at_end = rung_at_end;
            merge.run()
        };
        let thread = thread::spawn_quiet("procwright-in", pass_on)
            .map_err(|error| SpawnError::new(Step::Thread, "", error))?;
        let joint = MergeJoint {
            cut,
            done,
            thread: Some(thread),
            output: Some(output),
            next,
        };
        Ok((joint, read))
    }

    /// Readable once it passes nothing more on; none when that was seen.
    pub(super) fn awaited_fd(&self) -> Option<BorrowedFd<'_>> {
        self.thread.as_ref().map(|_| self.done.as_fd())
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
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        match thread.join() {
            Ok(Ok(())) => {
                self.output = None;
                Ok(())
            }
            Ok(Err(error)) => Err(io::Error::other(error)),
            Err(_) => Err(io::Error::other("the thread of the merge has panicked")),
        }
    }

    /// Has it pass nothing more on: all its pipes are closed soon.
    pub(super) fn cut(&self) {
        self.cut.ring();
    }
}

impl Drop for MergeJoint {
    fn drop(&mut self) {
        self.cut();
    }
}
