//! A fan in the place of the pipe between a run and several others, each of which gets all.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::elastic::refused;
use super::next_pipe::NextPipe;
use super::passing_thread::{PassingThread, new_wake};
use crate::buffer::{Fan, FanFailure, Figures, WayView};
use crate::child::Unstarted;
use crate::error::{SpawnError, Step};
use crate::spool::Overflow;
use procwright_os::fork::CloseOnFork;

/// A fan between a pipe and several others, with its threads.
///
/// It closes its input as soon as the last reader has left, and not before: so the program before
/// it is told of an end as by one pipe, and who of several leaves first is no matter for it.
pub(super) struct FanJoint {
    thread: PassingThread<Result<(), FanFailure>>,
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
        let cut = new_wake()?;
        let fan = Fan::begin(overflow, writes, &cut);
        let fan = fan.map_err(|error| refused(error, Step::Thread))?;
        let readers = pipes.into_iter().zip(fan.views()).collect();
        let joint = FanJoint {
            thread: PassingThread::start(cut, move || fan.read(input))?,
            unfinished: Vec::new(),
            readers,
        };
        Ok((joint, reads))
    }

    /// The thread that reads.
    pub(super) fn thread(&self) -> &PassingThread<Result<(), FanFailure>> {
        &self.thread
    }

    /// The pipe to one of the runs behind, and whether something is still written to it.
    pub(super) fn next(&self, reader: usize) -> Option<(&NextPipe, bool)> {
        let (next, view) = self.readers.get(reader)?;
        Some((next, self.thread.passes_on() && !view.is_over()))
    }

    /// Takes note of its end.
    ///
    /// # Errors
    /// What kept a byte from being passed on.
    pub(super) fn note_end(&mut self) -> io::Result<()> {
        match self.thread.end("fan").transpose()? {
            None | Some(Ok(())) => Ok(()),
            Some(Err(FanFailure { error, outputs })) => {
                self.unfinished = outputs;
                Err(io::Error::other(error))
            }
        }
    }

    /// Figures of what was passed on to one of the runs behind.
    pub(super) fn figures(&self, reader: usize) -> Option<Figures> {
        let (_, view) = self.readers.get(reader)?;
        Some(view.monitor.figures())
    }
}
