//! Starting a program: a clone, an ordered list of actions in the child, exec.

mod cgroup;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod child;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod report;

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

use std::ffi::CString;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicU8, Ordering};

pub use cgroup::Cgroup;
/// The number of the resource called as in `ulimit`'s and `setrlimit`'s manual,
/// without the prefix: `nofile`, `as`, `core`.
#[doc(alias = "RLIMIT_NOFILE")]
#[doc(alias = "setrlimit")]
pub use imp::resource_number;
/// Starts the program of `plan` and returns once its exec has succeeded.
///
/// # Errors
/// The step that failed. Nothing is left behind then, no zombie either.
///
/// # Blocking
/// Until the exec.
#[doc(alias = "clone")]
#[doc(alias = "vfork")]
#[doc(alias = "execve")]
#[doc(alias = "posix_spawn")]
pub use imp::spawn;
/// The calling process's nice value.
#[doc(alias = "getpriority")]
#[doc(alias = "nice")]
pub use imp::system_niceness;

/// A step of the child before exec. All memory is prepared by the parent: the child
/// may not allocate, since it shares the parent's heap.
#[doc(alias = "posix_spawn_file_actions")]
#[doc(alias = "preexec_fn")]
#[derive(Debug)]
pub enum Action {
    /// Starts a session.
    Setsid,
    /// Makes a terminal the one that controls the new session.
    ControllingTerminal(RawFd),
    /// Joins the group, 0 for a new one of its own.
    Setpgid(i32),
    /// Puts the child's group into the foreground of this terminal, if the group `from`
    /// is there. Otherwise, and if the terminal is gone, nothing happens.
    Foreground {
        /// Terminal.
        terminal: RawFd,
        /// Group that is replaced.
        from: i32,
    },
    /// Sets how readily the kernel kills the process where memory is short. The number
    /// as text, for /proc/self/oom_score_adj.
    OomScoreAdj(String),
    /// Sets a resource limit.
    Rlimit {
        /// Number of the resource, see [`resource_number`].
        resource: u32,
        /// Soft limit.
        soft: u64,
        /// Hard limit.
        hard: u64,
    },
    /// Sets the nice value, absolute.
    Nice(i32),
    /// Sets policy and priority of scheduling, by the numbers of sched_setscheduler(2).
    SchedPolicy {
        /// Policy.
        policy: i32,
        /// Priority, 0 where the policy has none.
        priority: i32,
    },
    /// Sets class and level of input and output, by the number of ioprio_set(2).
    IoPriority(i32),
    /// Sets the processors to run on, a bit each. Fails unless the process may run on all
    /// of them: the kernel would leave out the others without a word.
    CpuAffinity(Vec<u64>),
    /// Changes the root directory and goes there.
    Chroot(CString),
    /// Sets the supplementary groups.
    Setgroups(Vec<u32>),
    /// Sets the real, effective and saved group.
    Setgid(u32),
    /// Sets the real, effective and saved user.
    Setuid(u32),
    /// Joins a new keyring of the session's kind, which nobody else has.
    NewKeyring,
    /// Asks for a signal when the parent's spawning thread ends (`PR_SET_PDEATHSIG`).
    DieWithParent {
        /// Signal.
        signal: i32,
        /// Parent, which may have ended before the request was made.
        parent: i32,
    },
    /// Changes the working directory.
    Chdir(CString),
    /// Sets the file mode creation mask.
    Umask(u32),
    /// Marks everything from this descriptor on as close-on-exec.
    CloseFrom(RawFd),
    /// Copies `from` to a number above all targets, so that a later action cannot
    /// overwrite it. The copy's number goes into the slot.
    Park {
        /// Descriptor.
        from: RawFd,
        /// Lowest number of the copy.
        above: RawFd,
        /// Index of the slot, below [`MAX_PARKED`].
        slot: usize,
    },
    /// Makes `to` a copy of `from`, or of the parked copy of it (`dup2`).
    Place {
        /// Source.
        from: FdSource,
        /// Number that the program finds it under.
        to: RawFd,
    },
    /// Restores the defaults: the mask, and signals that the parent ignores but
    /// a fresh program does not expect to be ignored.
    ResetSignals {
        /// Signals that the program ignores all the same.
        ignored: Vec<i32>,
        /// Signals that get their default action whatever the parent does with them.
        default: Vec<i32>,
        /// The mask: a bit each, that of signal 1 first.
        blocked: u64,
    },
    /// Has no exec give more rights than there are, for good.
    NoNewPrivs,
}

/// The source of a descriptor that the child gets.
#[derive(Clone, Copy, Debug)]
pub enum FdSource {
    /// The descriptor of this number.
    Fd(RawFd),
    /// The copy that an [`Action::Park`] has put into this slot.
    Slot(usize),
}

/// One more than the greatest number of a processor.
pub const MOST_PROCESSORS: usize = 8192;

/// The most descriptors that may have to be moved out of the way.
pub const MAX_PARKED: usize = 64;

/// An environment variable that ends with the pid of the process that it is given to.
/// The child itself writes the pid: its parent learns it too late.
#[derive(Debug)]
pub struct PidVariable(Box<[AtomicU8]>);

impl PidVariable {
    /// Length of such a pid, with zeros in front.
    pub const DIGITS: usize = 10;

    /// A variable from `NAME=value` up to the pid, without a NUL.
    pub fn new(text: &str) -> PidVariable {
        let bytes = text.bytes().chain([b'0'; PidVariable::DIGITS]).chain([0]);
        PidVariable(bytes.map(AtomicU8::new).collect())
    }

    /// Writes the pid. Only stores: called between clone and exec. Relaxed: the kernel
    /// reads them at the exec, on this thread.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    fn write_pid(&self, mut number: u32) {
        for digit in self.0.iter().rev().skip(1).take(PidVariable::DIGITS) {
            digit.store(b'0' + (number % 10) as u8, Ordering::Relaxed);
            number /= 10;
        }
    }

    /// The variable for the kernel, which reads it at the exec.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    fn as_ptr(&self) -> *const std::ffi::c_char {
        self.0.as_ptr().cast()
    }
}

/// A program to start, with all that the child needs.
#[derive(Debug)]
pub struct Plan {
    /// Steps before the exec, in order.
    pub actions: Vec<Action>,
    /// The cgroup that the child is in before the first step.
    pub cgroup: Option<Cgroup>,
    /// The files to try, in the order of `PATH`.
    pub programs: Vec<CString>,
    /// Arguments, the program's name first.
    pub argv: Vec<CString>,
    /// Environment, `NAME=value` each.
    pub env: Vec<CString>,
    /// Variables beside those of `env`.
    pub signed: Vec<PidVariable>,
    /// True if the actions change user or group. Such a child gets a copy of the memory
    /// instead of sharing it.
    pub changes_credentials: bool,
}

/// A process that runs its program.
#[derive(Debug)]
pub struct Spawned {
    /// Pid of the process, a child of this one.
    pub pid: i32,
    /// Descriptor of the process.
    pub pidfd: OwnedFd,
    /// Peak of memory that this process had occupied until then, in bytes. The
    /// kernel counts it as the child's, which began in our memory: a peak of
    /// the child that is not larger says nothing.
    pub parent_peak: u64,
}

/// The step of a start that failed.
#[derive(Debug)]
pub enum FailedStep {
    /// The clone: there is no child.
    Clone(io::Error),
    /// Being in the cgroup.
    Cgroup(io::Error),
    /// The action of this index.
    Action(usize, io::Error),
    /// The exec.
    Exec(io::Error),
}
