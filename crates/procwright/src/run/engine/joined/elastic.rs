//! An elastic buffer in the place of the pipe between two runs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::next_pipe::{NextPipe, RingOnDrop};
use crate::buffer::{Buffer, Error, Figures, Monitor, Outcome};
use crate::child::Unstarted;
use crate::error::{SpawnError, Step};
use crate::spool::Overflow;
use procwright_os::fork::CloseOnFork;
use procwright_os::thread;
use procwright_os::wake::Wake;

/// A buffer between two pipes, with its two threads. Dropped, it is cut.
///
/// Its threads are there before the programs are, as whatever else may be refused. None of them
/// sees an end before one has been there: what has not been started yet keeps its end of the
/// pipe open.
pub(super) struct ElasticJoint {
    monitor: Monitor,
    /// Rung when nothing more is to be passed on.
    cut: Arc<Wake>,
    /// Rung when nothing more is passed on.
    done: Arc<Wake>,
    /// None once its end was seen.
    thread: Option<JoinHandle<PassedOn>>,
    /// The end to write of the pipe to the run behind, if not all was passed on: who reads must
    /// not take a part for all of it, and is stopped before it sees an end.
    unfinished: Option<Arc<CloseOnFork>>,
    next: NextPipe,
}

/// What came of a buffer; with its output, if that has not got all.
type PassedOn = Result<Outcome, (Error, Arc<CloseOnFork>)>;

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
        let cut = Arc::new(Wake::new().map_err(no_descriptor)?);
        let done = Arc::new(Wake::new().map_err(no_descriptor)?);
        let buffer = Buffer::new(overflow).map_err(|error| refused(error, Step::Pipe))?;
        let monitor = buffer.monitor();
        let begun = buffer.begin(write, Some(Arc::clone(&cut)));
        let begun = begun.map_err(|error| refused(error, Step::Thread))?;
        let rung_at_end = RingOnDrop(Arc::clone(&done));
        let pass_on = move || {
            let _rung_at_end = rung_at_end;
            let output = begun.output();
            begun.read(input).map_err(|error| (error, output))
        };
        let thread = thread::spawn_quiet("procwright-in", pass_on)
            .map_err(|error| SpawnError::new(Step::Thread, "", error))?;
        let joint = ElasticJoint {
            monitor,
            cut,
            done,
            thread: Some(thread),
            unfinished: None,
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
            Ok(Ok(_)) => Ok(()),
            Ok(Err((error, output))) => {
                self.unfinished = Some(output);
                Err(io::Error::other(error))
            }
            Err(_) => Err(io::Error::other("the thread of the buffer has panicked")),
        }
    }

    /// Has it pass nothing more on: both its pipes are closed soon.
    pub(super) fn cut(&self) {
        self.cut.ring();
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

impl Drop for ElasticJoint {
    fn drop(&mut self) {
        self.cut();
    }
}
