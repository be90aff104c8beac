//! The errors of everything below `run`.

use std::fmt;
use std::io;

pub use procwright_os::Invalid;

/// An error of code that takes part in a run: an iterator, a callback.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The hint for a FIFO that would have to be waited for.
pub(crate) const UNREAD_FIFO: &str = "nobody reads this FIFO: start its reader first";

/// The step of starting a program that failed.
///
/// The steps up to [`Step::Clone`] are the caller's, the others happen in the
/// child between the clone and the exec. Their order here is the order in
/// which they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Opening a file that becomes one of the child's descriptors.
    Open,
    /// Making a pipe.
    Pipe,
    /// Making a terminal.
    Pty,
    /// Making the queue between the child and its parent.
    Channel,
    /// Making a thread that the start, or what comes of it, needs.
    Thread,
    /// Making the process.
    Clone,
    /// Being in a cgroup.
    Cgroup,
    /// Starting a session of its own.
    Setsid,
    /// Making its terminal the one that controls it.
    ControllingTerminal,
    /// Joining or making a process group.
    Setpgid,
    /// Closing what the child shall not inherit.
    CloseRange,
    /// Putting a descriptor in its place.
    Dup,
    /// Saying how readily it is killed where memory is short.
    OomScoreAdj,
    /// Setting a resource limit.
    Rlimit,
    /// Setting the nice value.
    Nice,
    /// Setting the policy of scheduling.
    SchedPolicy,
    /// Setting class and level of input and output.
    IoPriority,
    /// Setting the processors.
    CpuAffinity,
    /// Changing the root directory.
    Chroot,
    /// Setting the supplementary groups.
    Setgroups,
    /// Changing the group.
    Setgid,
    /// Changing the user.
    Setuid,
    /// Making a session keyring.
    NewKeyring,
    /// Asking to be killed with the parent.
    DieWithParent,
    /// Changing the working directory.
    Chdir,
    /// Setting the file mode creation mask, which cannot fail.
    Umask,
    /// Resetting signals.
    Signals,
    /// Having no exec give more rights.
    NoNewPrivs,
    /// Starting the program itself.
    Exec,
}

impl Step {
    /// The system call's usual name, as it stands in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Open => "open",
            Step::Pipe => "pipe",
            Step::Pty => "openpt",
            Step::Channel => "queue",
            Step::Thread => "pthread_create",
            Step::Clone => "clone",
            Step::Cgroup => "cgroup.procs",
            Step::Setsid => "setsid",
            Step::ControllingTerminal => "ioctl(TIOCSCTTY)",
            Step::Setpgid => "setpgid",
            Step::Rlimit => "setrlimit",
            Step::Nice => "setpriority",
            Step::OomScoreAdj => "oom_score_adj",
            Step::SchedPolicy => "sched_setscheduler",
            Step::IoPriority => "ioprio_set",
            Step::CpuAffinity => "sched_setaffinity",
            Step::Chroot => "chroot",
            Step::Setgroups => "setgroups",
            Step::Setgid => "setgid",
            Step::Setuid => "setuid",
            Step::NewKeyring => "keyctl(KEYCTL_JOIN_SESSION_KEYRING)",
            Step::DieWithParent => "prctl(PR_SET_PDEATHSIG)",
            Step::Chdir => "chdir",
            Step::CloseRange => "close_range",
            Step::Dup => "dup",
            Step::Umask => "umask",
            Step::Signals => "sigaction",
            Step::NoNewPrivs => "prctl(PR_SET_NO_NEW_PRIVS)",
            Step::Exec => "exec",
        }
    }
}

/// A program that could not be started. Nothing of it is left running.
#[derive(Debug)]
pub struct SpawnError {
    /// The step that failed.
    pub step: Step,
    /// Object of the step: the program for `exec`, the directory for
    /// `chdir`, empty where the step says it all.
    pub object: String,
    /// The system's answer.
    pub source: io::Error,
    /// Advice, where there is some.
    pub hint: Option<String>,
}

impl SpawnError {
    /// An error of `step` on `object`.
    pub fn new(step: Step, object: impl Into<String>, source: io::Error) -> SpawnError {
        SpawnError {
            step,
            object: object.into(),
            source,
            hint: None,
        }
    }

    /// Adds advice.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> SpawnError {
        self.hint = Some(hint.into());
        self
    }

    /// The `errno` value, 0 if the error is not the system's.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.step.name())?;
        if !self.object.is_empty() {
            write!(f, " {:?}", self.object)?;
        }
        write!(f, ": {}", self.source)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
