//! How long an operation may block.

use std::os::fd::BorrowedFd;
use std::time::Instant;

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
}

impl<T: Into<Timeout>> From<T> for Patience<'_> {
    fn from(timeout: T) -> Self {
        Patience::until(timeout.into().starting(Instant::now()))
    }
}
