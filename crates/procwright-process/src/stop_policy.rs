//! How a program is to be stopped, and what is told of processes that could not be.

use std::time::Duration;

use super::Signal;
use procwright_os::time::Seconds;

/// How a run is ended by a timeout, a limit or a cancel.
///
/// First every process of the scope gets the signal. If one of them is still
/// there when the grace is over, all that are left get SIGKILL. The whole scope
/// counts: a leader that goes at once does not end the wait for its children,
/// and an empty scope ends it early.
///
/// The default is SIGTERM, 5 seconds, [`Scope::Tree`].
///
/// ```
/// use std::time::Duration;
/// use procwright_process::{Scope, Signal, Stop};
///
/// let stop = Stop::new()
///     .with_signal(Signal::INT)
///     .with_grace(Duration::from_millis(500))
///     .with_scope(Scope::Group);
/// assert_eq!(stop.signal(), Signal::INT);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Stop {
    pub(super) signal: Signal,
    pub(super) grace: Duration,
    pub(super) scope: Scope,
}

impl Stop {
    /// SIGTERM, 5 seconds of grace, the whole tree.
    pub const fn new() -> Stop {
        Stop {
            signal: Signal::TERM,
            grace: Duration::from_secs(5),
            scope: Scope::Tree,
        }
    }

    /// SIGKILL at once for the whole tree.
    pub const fn kill() -> Stop {
        Stop::new().with_signal(Signal::KILL)
    }

    /// Changes the first signal. SIGKILL leaves the grace out.
    pub const fn with_signal(mut self, signal: Signal) -> Stop {
        self.signal = signal;
        self
    }

    /// Changes the time between the signal and SIGKILL.
    pub const fn with_grace(mut self, grace: Duration) -> Stop {
        self.grace = grace;
        self
    }

    /// Changes the set of processes.
    pub const fn with_scope(mut self, scope: Scope) -> Stop {
        self.scope = scope;
        self
    }

    /// The first signal.
    pub const fn signal(&self) -> Signal {
        self.signal
    }

    /// The time between the signal and SIGKILL.
    pub const fn grace(&self) -> Duration {
        self.grace
    }

    /// Whom it is for.
    pub const fn scope(&self) -> Scope {
        self.scope
    }
}

impl Default for Stop {
    fn default() -> Stop {
        Stop::new()
    }
}

/// For people: `SIGTERM to the tree, SIGKILL after 5 s`.
impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} to the {}", self.signal, self.scope.name())?;
        match (self.signal == Signal::KILL, self.grace) {
            (true, _) => Ok(()),
            (false, Duration::MAX) => f.write_str(", never SIGKILL"),
            (false, grace) => write!(f, ", SIGKILL after {}", Seconds(grace)),
        }
    }
}

/// The set of processes that a [`Stop`] is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Scope {
    /// The program alone; its children go on.
    Process,
    /// The program's process group, which the run makes for it. A child that
    /// makes a group of its own goes on.
    Group,
    /// The program and everything that it started, also in sessions and groups
    /// of their own.
    ///
    /// On Linux a process that detached itself is found too if it is in a
    /// session or group made by the run or holds one of its pipes. One that did
    /// all of this is not: it was reparented to init, left every group, and
    /// closed every pipe.
    #[default]
    Tree,
}

impl Scope {
    /// The name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Process => "process",
            Scope::Group => "group",
            Scope::Tree => "tree",
        }
    }
}

/// A process that a [`Stop`] could not end, or that nobody can say it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Survivor {
    /// Its number. None stands for all that cannot be seen. Without `/proc` a stop
    /// reaches the program and its group, and who else there is cannot be known; nor is it
    /// known of a program that started processes faster than they could be found.
    pub pid: Option<i32>,
    /// Its name, printable.
    pub name: String,
    /// The system's letter for its state: `D` is an uninterruptible wait, in
    /// which not even SIGKILL reaches it; `S` or `R` is usually another user's.
    ///
    /// `?` is for a process that may belong to the program and may be a stranger's,
    /// which nothing in the system tells. It was not signalled.
    pub state: char,
}

impl Survivor {
    /// The state of who may be left.
    pub(crate) const UNKNOWN: char = '?';

    /// All that cannot be seen, if there are any.
    pub(crate) fn hidden() -> Survivor {
        Survivor {
            pid: None,
            name: String::from("others"),
            state: Survivor::UNKNOWN,
        }
    }

    /// A survivor as one would be told of: for tests of what is done with them.
    #[doc(hidden)]
    pub const fn new(pid: i32, name: String, state: char) -> Survivor {
        let pid = Some(pid);
        Survivor { pid, name, state }
    }
}

impl std::fmt::Display for Survivor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Survivor { pid, name, state } = self;
        match (pid, *state) {
            (None, _) => f.write_str(
                "others, if any: they cannot be seen without /proc, or where processes are \
                 started faster than they are found",
            ),
            (Some(pid), Survivor::UNKNOWN) => write!(
                f,
                "{name} (pid {pid}), which may belong to it or not: not signalled"
            ),
            (Some(pid), state) => write!(f, "{name} (pid {pid}, state {state})"),
        }
    }
}
