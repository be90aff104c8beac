//! Starting a program: a clone, an ordered list of actions in the child, exec.
//!
//! Contract of the platform files: `spawn(plan)` starts the program of `plan`
//! and returns once its exec has succeeded, or says which step failed. Nothing
//! is left behind after a failure, no zombie either.

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

pub(crate) use imp::{resource_number, spawn, system_niceness};

/// One thing that the child does before exec. All memory is prepared by the
/// parent: the child may not allocate, since it shares the parent's heap.
#[derive(Debug)]
pub(crate) enum Action {
    Setsid,
    /// Makes a terminal the one that controls the new session.
    ControllingTerminal(RawFd),
    /// Joins the group, 0 for a new one of its own.
    Setpgid(i32),
    /// Puts our own group into the foreground of this terminal, if this one is
    /// there. Otherwise, and if the terminal is gone, nothing happens.
    Foreground {
        terminal: RawFd,
        from: i32,
    },
    Rlimit {
        resource: u32,
        soft: u64,
        hard: u64,
    },
    /// The nice value, absolute.
    Nice(i32),
    Setgroups(Vec<u32>),
    Setgid(u32),
    Setuid(u32),
    /// The signal to get when the parent's spawning thread ends, and the
    /// parent, which may have ended before the request was made.
    DieWithParent {
        signal: i32,
        parent: i32,
    },
    Chdir(CString),
    Umask(u32),
    /// Marks everything from this descriptor on as close-on-exec.
    CloseFrom(RawFd),
    /// A copy of `from` that lies above all targets, so that a later action
    /// cannot overwrite it. The copy's number goes into the slot.
    Park {
        from: RawFd,
        above: RawFd,
        slot: usize,
    },
    /// `from` or the parked copy becomes `to`.
    Place {
        from: Where,
        to: RawFd,
    },
    /// Back to the default: the mask, and signals that the parent ignores but
    /// a fresh program does not expect to be ignored.
    ResetSignals,
}

/// Where the source of a descriptor is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Where {
    Fd(RawFd),
    Slot(usize),
}

/// How many descriptors may have to be moved out of the way.
pub(crate) const SLOTS: usize = 64;

/// A variable that ends with the number of the process that it is given to. The
/// child itself writes that down: its parent learns the number too late.
#[derive(Debug)]
pub(crate) struct Signed(Box<[AtomicU8]>);

impl Signed {
    /// How long such a number is, with zeros in front.
    pub(crate) const DIGITS: usize = 10;

    /// `text` is `NAME=value` up to the number, and has no NUL.
    pub(crate) fn new(text: &str) -> Signed {
        let bytes = text.bytes().chain([b'0'; Signed::DIGITS]).chain([0]);
        Signed(bytes.map(AtomicU8::new).collect())
    }

    /// Only stores: it is called between clone and exec.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    fn sign(&self, mut number: u32) {
        for digit in self.0.iter().rev().skip(1).take(Signed::DIGITS) {
            digit.store(b'0' + (number % 10) as u8, Ordering::Relaxed);
            number /= 10;
        }
    }

    /// For the kernel, which reads it at the exec.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    fn as_ptr(&self) -> *const std::ffi::c_char {
        self.0.as_ptr().cast()
    }
}

/// All that the child needs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) actions: Vec<Action>,
    /// The files to try, in the order of `PATH`.
    pub(crate) programs: Vec<CString>,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    /// Beside it.
    pub(crate) signed: Vec<Signed>,
    /// Whether the actions change user or group. Such a child gets a copy of
    /// the memory instead of sharing it.
    pub(crate) changes_credentials: bool,
}

/// A process that runs its program.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// The most memory that this process had occupied until then, in bytes. The
    /// kernel counts it as the child's, which began in our memory: a peak of
    /// the child that is not larger says nothing.
    pub(crate) parent_peak: u64,
}

/// The step that failed.
#[derive(Debug)]
pub(crate) enum Failed {
    Clone(io::Error),
    Action(usize, io::Error),
    Exec(io::Error),
}
