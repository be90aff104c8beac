//! Something of the caller's that a run looks after while it waits.

use std::os::fd::BorrowedFd;

use crate::drain::Flow;
use crate::error::BoxError;

/// Something of the caller's that may happen while a run goes on: a signal, a
/// message, the end of another process. The run polls its descriptor beside its
/// own, so that neither a thread nor an interrupted system call is needed to
/// learn of it, and nothing that happens just before the wait is missed.
///
/// Added with [`Command::watch`](crate::Command::watch).
pub trait Watch {
    /// Readable when something has happened.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Takes away what has happened, so that the descriptor is no longer readable, and
    /// says what the run shall do. Must not block.
    ///
    /// # Errors
    /// An error stops the run and comes through; while the run is being stopped
    /// it ends the grace.
    fn ready(&mut self, moment: Moment<'_>) -> Result<Demand, BoxError>;
}

impl<W: Watch + ?Sized> Watch for &mut W {
    fn fd(&self) -> BorrowedFd<'_> {
        (**self).fd()
    }

    fn ready(&mut self, moment: Moment<'_>) -> Result<Demand, BoxError> {
        (**self).ready(moment)
    }
}

/// How far a run is, for a [`Watch`] that is asked and for the hook of the clock
/// ([`Command::every`](crate::Command::every)).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Moment<'a> {
    /// The program's process number. It stays the program's until the run is
    /// over, also after its exit.
    pub pid: i32,
    /// True if the run is being stopped already, for whatever reason.
    pub stopping: bool,
    /// True if what is left of the run is being killed, which begins by SIGSTOP to each
    /// of its processes. A stop of the program that is seen now may be that one; a
    /// SIGCONT would let it fork once more.
    pub killing: bool,
    /// True if the program was there when it happened, as far as can be told: a
    /// signal to its group that comes before its start, or after its end, has
    /// not reached it.
    pub running: bool,
    /// Progress of stdout; none where no pipe was put between.
    pub stdout: Option<Flow>,
    /// Progress of stderr; none where no pipe was put between.
    pub stderr: Option<Flow>,
    /// The terminal on which the program runs, if it has one of its own
    /// ([`Command::pty`](crate::Command::pty)), to say how large it is; none once
    /// that is closed. Not to be read from or written to.
    pub pty: Option<BorrowedFd<'a>>,
}

/// The wish of a [`Watch`] for its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing: go on.
    Nothing,
    /// Stop it, as a cancel does. Nothing more if it is being stopped.
    Stop,
    /// Stop it without more grace.
    Kill,
    /// Give the caller a turn, if it takes them
    /// ([`Ongoing::proceed`](crate::Ongoing::proceed)).
    Pause,
}
