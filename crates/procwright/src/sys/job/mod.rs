//! Job control: signals that are held back and read from a descriptor, stops of
//! ours and of a child, and whose the terminal is.
//!
//! Contract of the platform files:
//! - `Held::new(signals)`: from now on these are blocked in the calling thread
//!   and in those that it starts, and wait to be read from a descriptor, which
//!   tells of each with its origin. Blocked they are kept whatever their action
//!   is. A drop puts the thread's mask back.
//! - `stop_self(signal)`: the default action of a stop signal, with no other
//!   signal delivered, and whether it has stopped us.
//! - `take_stop(pid)`: the signal that a child of ours has been stopped by, once
//!   for each stop. Its end is left alone.
//! - `discard(signals)`: takes away those that are blocked and pending.
//! - `without(signal, work)`: has it blocked for this thread meanwhile.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use super::signal::SIGTTOU;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

pub(crate) use imp::{Held, discard, stop_self, take_stop, without};

/// A signal that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) number: i32,
    /// Sent by the kernel itself, as the terminal's keys are.
    pub(crate) by_kernel: bool,
}

/// The terminal that controls this process; none if there is none.
pub(crate) fn open_terminal() -> Option<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()
}

/// The group in the foreground of a terminal; none if there is none any more.
pub(crate) fn foreground(terminal: impl AsFd) -> Option<i32> {
    // Not by rustix, here and below: in a pid namespace a group or session of
    // outside has the number 0, which it takes for impossible.
    //
    // SAFETY: no memory is handed over.
    let group = unsafe { libc::tcgetpgrp(terminal.as_fd().as_raw_fd()) };
    (group > 0).then_some(group)
}

/// The process group of a process; 0 if it is one outside of our pid namespace.
pub(crate) fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: no memory is handed over.
    let group = unsafe { libc::getpgid(pid) };
    (group >= 0).then_some(group)
}

/// Our own process group; 0 as above.
pub(crate) fn own_group() -> i32 {
    group_of(0).unwrap_or(0)
}

/// Whether a terminal controls our session.
pub(crate) fn controls_us(terminal: impl AsFd) -> bool {
    // SAFETY: no memory is handed over.
    let (own, its) = unsafe {
        let terminal = terminal.as_fd().as_raw_fd();
        (libc::getsid(0), libc::tcgetsid(terminal))
    };
    own > 0 && own == its
}

/// Puts a group of our session into the foreground, also from the background.
pub(crate) fn put_in_front(terminal: impl AsFd, group: i32) -> io::Result<()> {
    let group = Pid::from_raw(group).ok_or(io::ErrorKind::InvalidInput)?;
    // Who does this in the background is sent SIGTTOU and has to be asked
    // whether it wants to stop for that; blocked, it is allowed.
    without(SIGTTOU, || Ok(rustix::termios::tcsetpgrp(terminal, group)?))
}
