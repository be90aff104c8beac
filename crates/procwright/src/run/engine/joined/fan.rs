//! A fan in the place of the pipe between a run and several others, each of which gets all.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::elastic::refused;
use super::next_pipe::{NextPipe, RingOnDrop};
use crate::buffer::{Fan, FanFailure, Figures, WayView};
use crate::child::Unstarted;
use crate::error::{SpawnError, Step};
use crate::spool::Overflow;
use procwright_os::fork::CloseOnFork;
use procwright_os::thread;
use procwright_os::wake::Wake;

/// A fan between a pipe and several others, with its threads. Dropped, it is cut.
///
/// Its threads are there before the programs are, as those of an elastic buffer. It closes its
/// input as soon as the last reader has left, and not before: so the program before it is told of
/// an end as by one pipe, and who of several leaves first is no matter for it.
pub(super) struct FanJoint {
    /// Rung when nothing more is to be passed on.
    cut: Arc<Wake>,
    /// Rung when nothing more is passed on.
    done: Arc<Wake>,
    /// None once its end was seen.
    thread: Option<JoinHandle<Result<(), FanFailure>>>,
    /// The ends to write of the pipes to those that have not got all: who reads must not take a
    /// part for all of it, and is stopped before it sees an end.
    unfinished: Vec<Arc<CloseOnFork>>,
    readers: Vec<(NextPipe, WayView)>,
}

impl FanJoint {
    /// A fan that reads `input`. Returns the pipes to be read by so many runs, too.
    ///
    /// # Errors
    /// No descriptor or thread is left, or the directory of the files cannot be used.
    pub(super) fn new(
        overflow: Overflow,
        input: OwnedFd,
        readers: usize,
    ) -> Result<(FanJoint, Vec<OwnedFd>), Unstarted> {
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let mut pipes = Vec::with_capacity(readers);
        let mut reads = Vec::with_capacity(readers);
        let mut writes = Vec::with_capacity(readers);
        for _ in 0..readers {
            let (next, read, write) = NextPipe::new().map_err(no_descriptor)?;
            pipes.push(next);
            reads.push(read);
            writes.push(write);
        }
        let cut = Arc::new(Wake::new().map_err(no_descriptor)?);
        let done = Arc::new(Wake::new().map_err(no_descriptor)?);
        let fan = Fan::begin(overflow, writes, &cut);
        let fan = fan.map_err(|error| refused(error, Step::Thread))?;
        let readers = pipes.into_iter().zip(fan.views()).collect();
        let rung_at_end = RingOnDrop(Arc::clone(&done));
        let pass_on = move || {
            let _rung_at_end = rung_at_end;
            fan.read(input)
        };
        let thread = thread::spawn_quiet("procwright-in", pass_on)
            .map_err(|error| SpawnError::new(Step::Thread, "", error))?;
        let joint = FanJoint {
            cut,
            done,
            thread: Some(thread),
            unfinished: Vec::new(),
            readers,
        };
        Ok((joint, reads))
    }

    /// Readable once it passes nothing more on; none when that was seen.
    pub(super) fn awaited_fd(&self) -> Option<BorrowedFd<'_>> {
        self.thread.as_ref().map(|_| self.done.as_fd())
    }

    /// The pipe to one of the runs behind, and whether something is still written to it.
    pub(super) fn next(&self, reader: usize) -> Option<(&NextPipe, bool)> {
        let (next, view) = self.readers.get(reader)?;
        Some((next, self.thread.is_some() && !view.is_over()))
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
            Ok(Ok(())) => Ok(()),
            Ok(Err(FanFailure { error, outputs })) => {
                self.unfinished = outputs;
                Err(io::Error::other(error))
            }
            Err(_) => Err(io::Error::other("the thread of the fan has panicked")),
        }
    }

    /// Has it pass nothing more on: all its pipes are closed soon.
    pub(super) fn cut(&self) {
        self.cut.ring();
    }

    /// Figures of what was passed on to one of the runs behind.
    pub(super) fn figures(&self, reader: usize) -> Option<Figures> {
        let (_, view) = self.readers.get(reader)?;
        Some(view.monitor.figures())
    }
}

impl Drop for FanJoint {
    fn drop(&mut self) {
        self.cut();
    }
}
