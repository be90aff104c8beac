//! What may stand in the place of the pipe between two runs, with threads of its own.

use std::os::fd::{BorrowedFd, OwnedFd};

use super::elastic::ElasticJoint;
use super::fan::FanJoint;
use super::function::{FunctionJoint, StageFunction};
use super::merge::MergeJoint;
use super::next_pipe::NextPipe;
use crate::buffer::{Figures, LongLine};
use crate::child::Unstarted;
use crate::run::collected::Failure;
use crate::run::error::Foreign;
use crate::spool::Overflow;
use procwright_process::holders::RunPipe;

/// What is to stand between a run and the next one.
pub(crate) enum Behind {
    /// An elastic buffer with this policy.
    Elastic(Overflow),
    /// A function of the caller's.
    Function(StageFunction),
    /// A queue with this policy for each of several runs behind.
    Fan(Overflow),
}

/// What stands there, and passes on.
pub(super) enum Between {
    Elastic(ElasticJoint),
    Function(FunctionJoint),
    Fan(FanJoint),
    Merge(MergeJoint),
}

impl Between {
    /// One that reads `input`. Returns the pipes to be read by so many runs behind, too: one, but
    /// for a fan.
    ///
    /// # Errors
    /// No descriptor or thread is left, or the directory of a buffer's files cannot be used.
    pub(super) fn new(
        behind: Behind,
        input: OwnedFd,
        readers: usize,
    ) -> Result<(Between, Vec<OwnedFd>), Unstarted> {
        Ok(match behind {
            Behind::Elastic(overflow) => {
                let (joint, read) = ElasticJoint::new(overflow, input)?;
                (Between::Elastic(joint), vec![read])
            }
            Behind::Function(function) => {
                let (joint, read) = FunctionJoint::new(function, input)?;
                (Between::Function(joint), vec![read])
            }
            Behind::Fan(overflow) => {
                let (joint, reads) = FanJoint::new(overflow, input, readers)?;
                (Between::Fan(joint), reads)
            }
        })
    }

    /// One that reads all of `inputs`, by lines. Returns the pipe to be read by the run behind, too.
    ///
    /// # Errors
    /// No descriptor or thread is left.
    pub(super) fn merge(
        inputs: Vec<OwnedFd>,
        long: LongLine,
    ) -> Result<(Between, OwnedFd), Unstarted> {
        let (joint, read) = MergeJoint::new(inputs, long)?;
        Ok((Between::Merge(joint), read))
    }

    /// Notes that all programs have been started.
    pub(super) fn begin(&mut self) {
        if let Between::Function(joint) = self {
            joint.begin();
        }
    }

    /// Readable once it passes nothing more on; none when that was seen.
    pub(super) fn awaited_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Between::Elastic(joint) => joint.thread().awaited_fd(),
            Between::Function(joint) => joint.awaited_fd(),
            Between::Fan(joint) => joint.thread().awaited_fd(),
            Between::Merge(joint) => joint.thread().awaited_fd(),
        }
    }

    /// The pipe to a run behind, by which of its readers that is, and whether something is still
    /// passed on to it.
    fn next(&self, reader: usize) -> Option<(&NextPipe, bool)> {
        let passes_on = self.awaited_fd().is_some();
        match self {
            Between::Elastic(joint) => Some((joint.next(), passes_on)),
            Between::Function(joint) => Some((joint.next(), passes_on)),
            Between::Fan(joint) => joint.next(reader),
            Between::Merge(joint) => Some((joint.next(), passes_on)),
        }
    }

    /// True if this run behind waits for more, false if that is not known.
    pub(super) fn is_empty(&self, reader: usize) -> bool {
        self.next(reader).is_some_and(|(next, _)| next.is_empty())
    }

    /// The end that the program of this run behind reads, and whoever has it from that program;
    /// none if nothing more is passed on to it.
    pub(super) fn read_end(&self, reader: usize) -> Option<RunPipe> {
        let (next, passes_on) = self.next(reader)?;
        passes_on.then(|| next.read_end())?
    }

    /// Takes note of its end.
    ///
    /// # Errors
    /// What kept a byte from being passed on.
    pub(super) fn note_end(&mut self) -> Result<(), Failure> {
        match self {
            Between::Elastic(joint) => joint.note_end().map_err(Failure::Io),
            Between::Function(joint) => joint
                .note_end()
                .map_err(|error| Failure::Foreign(Foreign::Function, error)),
            Between::Fan(joint) => joint.note_end().map_err(Failure::Io),
            Between::Merge(joint) => joint.note_end().map_err(Failure::Io),
        }
    }

    /// Notes that all are being stopped. `has_input` says that it has something to read.
    pub(super) fn note_stop(&mut self, has_input: bool) {
        if let Between::Function(joint) = self {
            joint.note_stop(has_input);
        }
    }

    /// Has it pass nothing more on.
    pub(super) fn cut(&self) {
        match self {
            Between::Elastic(joint) => joint.thread().cut(),
            Between::Function(joint) => joint.cut(),
            Between::Fan(joint) => joint.thread().cut(),
            Between::Merge(joint) => joint.thread().cut(),
        }
    }

    /// Waits no more for a function, which may go on for ever. All else comes out by itself.
    pub(super) fn give_up(&mut self) {
        if let Between::Function(joint) = self {
            joint.give_up();
        }
    }

    /// Figures of a buffer.
    pub(super) fn figures(&self) -> Option<Figures> {
        match self {
            Between::Elastic(joint) => Some(joint.figures()),
            Between::Function(_) | Between::Fan(_) | Between::Merge(_) => None,
        }
    }

    /// Figures of what a fan has passed on to a run behind.
    pub(super) fn fan_figures(&self, reader: usize) -> Option<Figures> {
        match self {
            Between::Fan(joint) => joint.figures(reader),
            Between::Elastic(_) | Between::Function(_) | Between::Merge(_) => None,
        }
    }

    pub(super) fn function(&self) -> Option<&FunctionJoint> {
        match self {
            Between::Elastic(_) | Between::Fan(_) | Between::Merge(_) => None,
            Between::Function(joint) => Some(joint),
        }
    }
}
