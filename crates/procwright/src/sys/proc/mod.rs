//! What the system tells about other processes.
//!
//! Contract of every platform file. Each function asks anew, holds nothing
//! open and allocates nothing in the heap unless its result does. A process
//! that is not there, or goes while it is asked about, is
//! [`io::ErrorKind::NotFound`]; one that may not be looked at is
//! [`io::ErrorKind::PermissionDenied`]. Where nothing can be told of any process,
//! that is [`io::ErrorKind::Unsupported`].
//!
//! - `now_ticks()`: the clock that [`Stat::start_ticks`] is read from.
//! - `boot()`: a number that this boot has and no other, if that can be known.
//! - `pid_namespace()`: one that the numbers of processes here have in common and no
//!   others of this boot, if that can be known.
//! - `inherits_orphans()`: whether this process gets the children of its
//!   descendants that end: it is a sub-reaper or its namespace's process 1.
//! - `each_pid(found)`: every process that can be seen, in ascending order; no
//!   snapshot: processes come and go meanwhile. `found` is told the number and
//!   whether it may have been given away since the scan began, and says how to
//!   go on.
//! - `stat(pid)`: see [`Stat`].
//! - `leads(pid)`: whether this is the number of a process, and not of a thread of
//!   one that is not its first.
//! - `exe(pid)`: the program's file, as a path with " (deleted)" behind it if it
//!   is not there any more.
//! - `status_of_zombie(pid)`: the status of a process that has ended and was not
//!   reaped, in the format of `wait(2)`; none unless it is certain.
//! - `at(start_ticks)`: what that was by the clock on the wall.
//! - `each_pipe(pid, wanted, found)`: calls `found` for each descriptor of the
//!   process that is an end of a pipe, or a terminal, in `wanted`.
//! - `threads_stopped(pid)`: whether all threads are stopped (or ending).
//! - `each_call(pid, found)`: what each thread waits in; `found` returns false
//!   to see no more.

use std::fmt;
#[cfg(doc)]
use std::io;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use imp::check;
#[allow(unused_imports)]
pub(crate) use imp::{
    at, boot, each_call, each_pid, each_pipe, exe, inherits_orphans, leads, now_ticks,
    pid_namespace, stat, status_of_zombie, threads_stopped,
};

/// How a scan of all processes goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// With the next.
    On,
    /// With the next but a thousand numbers. While others fork faster than the
    /// scan gets on, it would go after them for ever and not come to the older
    /// processes that lie above since the numbers went around.
    Ahead,
    /// Not at all.
    #[allow(dead_code)]
    End,
}

/// The name that a process goes by: its program's, at most 15 bytes, unless it
/// gave itself another. Any bytes at all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    bytes: [u8; Name::MAX],
    len: u8,
}

impl Name {
    const MAX: usize = 31;

    /// Longer ones (only kernel threads have any) are cut.
    pub(crate) fn new(name: &[u8]) -> Name {
        let len = name.len().min(Name::MAX);
        let mut bytes = [0; Name::MAX];
        bytes[..len].copy_from_slice(&name[..len]);
        Name {
            bytes,
            len: len as u8,
        }
    }

    /// The bytes of the name.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for Name {
    /// Safe for a terminal: what is not printable comes out escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in String::from_utf8_lossy(self.as_bytes()).chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_default())?;
            } else {
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// One process as `/proc/PID/stat` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Its number.
    pub(crate) pid: i32,
    /// Its name.
    pub(crate) name: Name,
    /// The state letter of its first thread, see [`Stat::is_gone`].
    pub(crate) state: char,
    /// The parent, 0 if it is outside our pid namespace.
    pub(crate) ppid: i32,
    /// The process group.
    pub(crate) pgrp: i32,
    /// The session.
    pub(crate) session: i32,
    /// Whether the kernel runs it for itself.
    pub(crate) kernel_thread: bool,
    /// How many threads it has.
    pub(crate) threads: u32,
    /// When it was started, in clock ticks (1/100 s) since boot; on macOS in
    /// microseconds since 1970.
    pub(crate) start_ticks: u64,
}

impl Stat {
    /// Whether nothing of it runs any more.
    ///
    /// A first thread that has ended while others go on is shown as a zombie
    /// too, so the letter alone does not tell.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }

    /// Whether it is stopped, by a signal or by a debugger.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// What goes from one process to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Conduit {
    /// A pipe, by its inode.
    Pipe(u64),
    /// A terminal, by the file that programs have of it.
    Terminal {
        /// Its file system, which a container may have of its own.
        device: u64,
        /// Its inode there.
        inode: u64,
        /// The number that it goes by.
        number: u32,
    },
}

/// A descriptor of a process that is an end of a pipe, or a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PipeFd {
    /// Its number there.
    pub(crate) fd: i32,
    /// What it is an end of.
    pub(crate) of: Conduit,
    /// Whether it can read from the pipe.
    pub(crate) read: bool,
    /// Whether it can write to the pipe. Both, for one opened through `/proc`. Of
    /// a terminal it is this alone for those who run on it, and the other for
    /// those who show it.
    pub(crate) write: bool,
}

/// What a thread is doing inside the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Nothing: it runs in its own code.
    Running,
    /// A call that reads from this descriptor.
    Read(i32),
    /// A call that writes to this descriptor.
    Write(i32),
    /// A call that waits for several descriptors, or for time.
    Poll,
    /// A call that waits for a child.
    WaitChild,
    /// A lock or a condition.
    Futex,
    /// A sleep.
    Sleep,
    /// Another call, by number.
    Other(i64),
    /// The call may not be seen; this is the kernel's name for where it waits.
    Channel(String),
    /// Nothing may be seen.
    Unknown,
}

/// One thread's call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadCall {
    /// The thread; the first has the process's number.
    pub(crate) tid: i32,
    /// The thread's state letter.
    pub(crate) state: char,
    /// What it does.
    pub(crate) call: Call,
}
