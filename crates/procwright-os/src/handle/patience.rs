//! The time that an operation may block.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::poll::{self, Fd, Flags};
use crate::time::{Deadline, Timeout};

/// The time that an operation may block, and what else may end its wait.
///
/// ```
/// use procwright_os::handle::Patience;
/// use std::time::Duration;
///
/// let forever = Patience::NEVER_ENDING;
/// let short = Patience::from(Duration::from_millis(20));
/// assert_ne!(short.deadline(), forever.deadline());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience<'a> {
    deadline: Deadline,
    interrupt: Option<BorrowedFd<'a>>,
}

impl<'a> Patience<'a> {
    /// Patience without end.
    pub const NEVER_ENDING: Patience<'static> = Patience {
        deadline: Deadline::NEVER,
        interrupt: None,
    };

    /// Patience until `deadline`.
    pub const fn until(deadline: Deadline) -> Patience<'a> {
        Patience {
            deadline,
            interrupt: None,
        }
    }

    /// Patience that also ends when this descriptor is readable. The operation then
    /// fails with [`Interrupted`](std::io::ErrorKind::Interrupted) and may be taken
    /// up again. For hosts with signal handlers of their own.
    #[must_use]
    pub const fn or_readable(self, interrupt: BorrowedFd<'a>) -> Patience<'a> {
        Patience {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// Patience that ends at `deadline` at the latest.
    pub fn no_later_than(self, deadline: Deadline) -> Patience<'a> {
        Patience {
            deadline: self.deadline.min(deadline),
            ..self
        }
    }

    /// The time when it ends.
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The descriptor that ends it too.
    pub const fn interrupt(&self) -> Option<BorrowedFd<'a>> {
        self.interrupt
    }

    /// Fails if the patience has ended. For loops that go on as long as there is
    /// something to do: a loop that never waits would not learn of it.
    ///
    /// # Errors
    /// `Interrupted`, `TimedOut`.
    pub fn check(&self) -> io::Result<()> {
        if let Some(fd) = self.interrupt {
            let mut fds = [Fd::from_borrowed_fd(fd, Flags::IN)];
            if poll::poll(&mut fds, Deadline::at(Instant::now())).is_ok_and(|ready| ready > 0) {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        match self.deadline.reached(Instant::now()) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }

    /// Patience for a loop with short steps, to be asked before each.
    pub const fn paced(self) -> Paced<'a> {
        Paced {
            patience: self,
            steps: 0,
        }
    }
}

/// A loop's [patience](Patience::paced).
#[derive(Clone, Copy, Debug)]
pub struct Paced<'a> {
    patience: Patience<'a>,
    steps: u32,
}

/// Steps between two checks, each of which costs as much as a short read.
const STEPS: u32 = 16;

impl Paced<'_> {
    /// Checks once in 16 steps whether the patience has ended, and not at the first: so
    /// a patience that was over before the loop began brings what needs no wait.
    ///
    /// # Errors
    /// `Interrupted`, `TimedOut`.
    pub fn step(&mut self) -> io::Result<()> {
        if self.steps == STEPS {
            self.steps = 0;
            self.patience.check()?;
        }
        self.steps += 1;
        Ok(())
    }
}

impl<T: Into<Timeout>> From<T> for Patience<'_> {
    fn from(timeout: T) -> Self {
        Patience::until(timeout.into().starting(Instant::now()))
    }
}
