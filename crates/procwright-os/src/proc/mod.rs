//! Facts that the system tells about other processes: `/proc`.
//!
//! Each function asks anew, holds nothing open and allocates nothing in the heap
//! unless its result does. Errors of all: a process that is not there, or goes while
//! it is asked about, is [`io::ErrorKind::NotFound`]; one that may not be looked at
//! is [`io::ErrorKind::PermissionDenied`]. Where nothing can be told of any process,
//! that is [`io::ErrorKind::Unsupported`].

use std::fmt;
#[cfg(doc)]
use std::io;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod files;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod namespace;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod stat_file;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod syscalls;

/// Number of this boot that no other boot has, if that can be known.
#[doc(alias = "/proc/sys/kernel/random/boot_id")]
pub use imp::boot_id;
/// Fails unless the numbers in `/proc` are those that system calls here take.
///
/// # Errors
/// `Unsupported` if `/proc` is not mounted, or is that of another pid namespace.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use imp::check;
/// Calls `found` with the system call of each thread until that returns false.
///
/// # Errors
/// Those of the module.
#[doc(alias = "/proc/PID/task/TID/syscall")]
#[doc(alias = "/proc/PID/task/TID/wchan")]
pub use imp::each_call;
/// Calls `found` with every process that can be seen, in ascending order; no snapshot:
/// processes come and go meanwhile. `found` is told the number and whether it is above the
/// last one that was given when the scan began, and says how to go on. One above was given
/// since, or is old, from before the numbers went around: [`ProcStat::start_ticks`] tells.
///
/// # Errors
/// Those of the module.
#[doc(alias = "/proc")]
pub use imp::each_pid;
/// Calls `found` for each descriptor of the process that is an end of a pipe, or a
/// terminal, in `wanted`.
///
/// # Errors
/// Those of the module.
#[doc(alias = "/proc/PID/fd")]
pub use imp::each_pipe;
/// The program's file, as a path with " (deleted)" behind it if it is not there any
/// more.
///
/// # Errors
/// Those of the module.
#[doc(alias = "/proc/PID/exe")]
pub use imp::exe;
/// True if this process gets the children of its descendants that end: it is a
/// sub-reaper or process 1 of its namespace.
#[doc(alias = "PR_GET_CHILD_SUBREAPER")]
pub use imp::inherits_orphans;
/// True if processes could be listed on this system, and cannot here: `/proc` is not
/// mounted, or is that of another pid namespace.
#[doc(alias = "/proc")]
pub use imp::is_missing;
/// True if this is the number of a process, and not of a later thread of one.
///
/// # Errors
/// Those of the module.
#[doc(alias = "Tgid")]
pub use imp::is_process;
/// The last number that was given to a process or thread. Numbers are given out upwards
/// and begin again at the lowest when the highest was given.
#[doc(alias = "/proc/loadavg")]
#[doc(alias = "ns_last_pid")]
pub use imp::last_pid;
/// The time now, on the clock of [`ProcStat::start_ticks`].
#[doc(alias = "CLOCK_BOOTTIME")]
pub use imp::now_ticks;
/// Number of the pid namespace that this process is in, if that can be known.
#[doc(alias = "/proc/self/ns/pid")]
pub use imp::pid_namespace;
/// Reads what the system tells about one process.
///
/// # Errors
/// Those of the module.
#[doc(alias = "/proc/PID/stat")]
#[doc(alias = "proc_pidinfo")]
pub use imp::stat;
/// The status of a process that has ended and was not reaped, in the format of
/// `wait(2)`; none unless it is certain.
#[doc(alias = "/proc/PID/stat")]
pub use imp::status_of_zombie;
/// True if all threads of the process are stopped (or ending).
///
/// # Errors
/// Those of the module.
#[doc(alias = "/proc/PID/task")]
pub use imp::threads_stopped;
/// A start time on the wall clock.
pub use imp::wall_clock_start;

/// The answer that tells a scan of all processes how to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// Continue with the next process.
    Next,
    /// Continue a thousand numbers ahead. While others fork faster than the scan gets
    /// on, it would go after them for ever and not come to the older processes that
    /// lie above since the numbers went around.
    Skip,
    /// Stop.
    Stop,
}

/// The name that a process goes by: its program's, at most 15 bytes, unless it
/// gave itself another. Any bytes at all.
#[doc(alias = "/proc/PID/comm")]
#[doc(alias = "TASK_COMM_LEN")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Comm {
    bytes: [u8; Comm::MAX],
    len: u8,
}

impl Comm {
    const MAX: usize = 31;

    /// The name, cut to 31 bytes: only kernel threads have longer ones.
    pub fn new(name: &[u8]) -> Comm {
        let len = name.len().min(Comm::MAX);
        let mut bytes = [0; Comm::MAX];
        bytes[..len].copy_from_slice(&name[..len]);
        Comm {
            bytes,
            len: len as u8,
        }
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for Comm {
    /// Writes the name safe for a terminal: control characters come out escaped.
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

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// One process as `/proc/PID/stat` has it.
#[doc(alias = "/proc/PID/stat")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcStat {
    /// Number of the process.
    pub pid: i32,
    /// Name of the process.
    pub name: Comm,
    /// State letter of its first thread, see [`ProcStat::is_gone`].
    pub state: char,
    /// Parent, 0 if it is outside our pid namespace.
    pub ppid: i32,
    /// Process group.
    pub pgrp: i32,
    /// Session.
    pub session: i32,
    /// True for a thread of the kernel's own.
    pub kernel_thread: bool,
    /// Number of its threads.
    pub threads: u32,
    /// Start time, in clock ticks (1/100 s) since boot; on macOS in microseconds since
    /// 1970.
    pub start_ticks: u64,
}

impl ProcStat {
    /// True if nothing of it runs any more.
    ///
    /// A first thread that has ended while others go on is shown as a zombie too, so
    /// the letter alone does not tell.
    pub fn is_gone(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }

    /// True if it is stopped, by a signal or by a debugger.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// A pipe or a terminal between processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conduit {
    /// A pipe, by its inode.
    Pipe(u64),
    /// A terminal, by the file that programs have of it.
    Terminal {
        /// File system of the terminal, which a container may have of its own.
        device: u64,
        /// Inode in that file system.
        inode: u64,
        /// Number that the terminal goes by.
        number: u32,
    },
}

/// A descriptor of a process that is an end of a pipe, or a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeFd {
    /// Number of the descriptor.
    pub fd: i32,
    /// Pipe or terminal that it refers to.
    pub of: Conduit,
    /// True if it can read from the pipe, or is the end that shows the terminal.
    pub read: bool,
    /// True if it can write to the pipe, or is the end of the terminal that programs
    /// have. A pipe that was opened through `/proc` may have both.
    pub write: bool,
}

/// The system call that a thread is in.
#[doc(alias = "/proc/PID/syscall")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// No call: the thread runs in its own code.
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
    /// A call that may not be seen; the text is the kernel's name for where it waits.
    Channel(String),
    /// Nothing may be seen.
    Unknown,
}

/// A thread and its system call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCall {
    /// Thread; the first has the process's number.
    pub tid: i32,
    /// State letter of the thread.
    pub state: char,
    /// System call of the thread.
    pub call: Call,
}
