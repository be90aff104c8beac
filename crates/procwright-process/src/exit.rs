//! How a process ended.

use std::fmt;

use super::signal::Signal;
use procwright_os::wait::RawExit;

/// How a process ended. It is never guessed: what cannot be known is
/// [`Exit::Unknown`] with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ExitStatus")]
#[doc(alias = "returncode")]
#[doc(alias = "WEXITSTATUS")]
#[non_exhaustive]
pub enum Exit {
    /// The process exited with this code, 0 to 255.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal.
        signal: Signal,
        /// Whether a core was dumped.
        core: bool,
    },
    /// The process has ended, or may have, and the system does not tell how.
    Unknown(Unknown),
}

/// The reason why an [`Exit`] is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    /// Other code in this process took the status: a `waitpid(-1)`, or a host that
    /// ignores SIGCHLD, on a kernel before 6.15 (later ones remember the status for
    /// holders of a pidfd). Or a sandbox refuses `waitid(2)` altogether.
    ReapedElsewhere,
    /// The process is a zombie that this user may not look at. Once its parent has
    /// collected the status, kernels since 6.15 tell.
    NotReaped,
    /// The child of another process was reaped, and this kernel (before 6.15) tells the
    /// status to its parent alone; or no pidfd of it could be had.
    NotTold,
    /// The process could not be killed and may still run. It is among the survivors,
    /// and is reaped in the background when it ends.
    StillRunning,
}

impl Exit {
    /// Whether the process exited with code 0.
    pub fn success(self) -> bool {
        self == Exit::Code(0)
    }

    /// The exit code, none after a signal or when unknown.
    pub fn code(self) -> Option<i32> {
        match self {
            Exit::Code(code) => Some(code),
            _ => None,
        }
    }

    /// The signal that ended it, if one did.
    pub fn signal(self) -> Option<Signal> {
        match self {
            Exit::Signal { signal, .. } => Some(signal),
            _ => None,
        }
    }
}

impl From<RawExit> for Exit {
    fn from(raw: RawExit) -> Exit {
        match raw {
            RawExit::Code(code) => Exit::Code(code),
            #[cfg(procwright_fault)]
            RawExit::Signal { .. } if procwright_os::fault::is_on("signal") => Exit::Code(0),
            RawExit::Signal { number, core } => Exit::Signal {
                signal: Signal::reported(number),
                core,
            },
        }
    }
}

impl Unknown {
    /// All of them.
    #[cfg(feature = "serde")]
    pub(crate) const ALL: [Unknown; 4] = [
        Unknown::ReapedElsewhere,
        Unknown::NotReaped,
        Unknown::NotTold,
        Unknown::StillRunning,
    ];

    /// The name that stands in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Unknown::ReapedElsewhere => "reaped_elsewhere",
            Unknown::NotReaped => "not_reaped",
            Unknown::NotTold => "not_told",
            Unknown::StillRunning => "still_running",
        }
    }

    /// The reason in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Unknown::ReapedElsewhere => {
                "somebody else in this process took the exit status \
                 (waitpid(-1), or SIGCHLD is ignored), or a sandbox refuses waitid(2)"
            }
            Unknown::NotReaped => {
                "it was not our child, and its parent has not collected its status yet"
            }
            Unknown::NotTold => {
                "it was not our child, and the system tells its status only to its parent \
                 (Linux before 6.15, or no pidfd could be had)"
            }
            Unknown::StillRunning => "it could not be killed and may still run",
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited with code {code}"),
            Exit::Signal { signal, core } => {
                write!(f, "killed by {signal}")?;
                if *core {
                    f.write_str(" (core dumped)")?;
                }
                Ok(())
            }
            Exit::Unknown(why) => write!(f, "ended in an unknown way: {}", why.reason()),
        }
    }
}
