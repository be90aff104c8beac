//! A process to wait for, with its name.

use std::fmt::{self, Display};

use procwright::Process;
use procwright::wait::{Awaits, Waitable};

/// A process and the name that it had when the wait began.
#[derive(Debug)]
pub(super) struct NamedProcess {
    pub(super) process: Process,
    first_name: Option<String>,
}

impl NamedProcess {
    pub(super) fn new(process: Process) -> NamedProcess {
        let first_name = process.name().ok();
        NamedProcess {
            process,
            first_name,
        }
    }

    /// Present name of the process, which a zombie still has, or else its first one.
    /// The first one alone would be wrong after `job & procwright wait $!`: until its
    /// exec the job has the name of the shell.
    pub(super) fn name(&self) -> Option<String> {
        self.process.name().ok().or_else(|| self.first_name.clone())
    }
}

impl Waitable for NamedProcess {
    fn awaits(&self) -> Awaits<'_> {
        self.process.awaits()
    }
}

/// `PID NAME`
impl Display for NamedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let name = name.as_deref().unwrap_or("?");
        write!(f, "{} {name}", self.process.pid())
    }
}
