//! How long an operation may block.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::sys::poll::{self, Fd, Flags};
use crate::time::{Deadline, Timeout};

/// How long an operation may block, and what else may end its wait.
///
/// ```
/// use procwright::stream::Patience;
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
    /// Until it is done, however long that takes.
    pub const NEVER_ENDING: Patience<'static> = Patience {
        deadline: Deadline::NEVER,
        interrupt: None,
    };

    /// Until then.
    pub const fn until(deadline: Deadline) -> Patience<'a> {
        Patience {
            deadline,
            interrupt: None,
        }
    }

    /// Until this descriptor is readable, if that comes first. The operation then
    /// fails with [`Interrupted`](std::io::ErrorKind::Interrupted) and may be taken
    /// up again. For hosts with signal handlers of their own.
    #[must_use]
    pub const fn or_readable(self, interrupt: BorrowedFd<'a>) -> Patience<'a> {
        Patience {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// The same, but at most until then.
    pub(crate) fn no_later_than(self, deadline: Deadline) -> Patience<'a> {
        Patience {
            deadline: self.deadline.min(deadline),
            ..self
        }
    }

    /// When it is over.
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// What else ends it.
    pub const fn interrupt(&self) -> Option<BorrowedFd<'a>> {
        self.interrupt
    }

    /// Whether it has ended. For loops that go on as long as there is something: what
    /// never waits learns of it by no wait.
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

    /// The same for a loop whose steps are short: to be asked before each.
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

/// A look costs as much as a short read.
const STEPS: u32 = 16;

impl Paced<'_> {
    /// Looks whether the patience has ended once in 16 times, and not the first time: so
    /// one that was over before it began brings what needs no wait.
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
