//! Job control: signals read from a descriptor, stops of ours and of a child, and the
//! foreground of the terminal.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use crate::signal::SIGTTOU;
use crate::signal::mask::BlockedMask;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

pub use imp::SignalFd;
/// Takes away those of `signals` that are blocked and pending.
#[doc(alias = "sigtimedwait")]
pub use imp::discard_pending;
/// Takes the default action of a stop signal, with no other signal delivered, and
/// tells whether it has stopped this process.
///
/// # Errors
/// `Unsupported` elsewhere than on Linux.
#[doc(alias = "SIGTSTP")]
pub use imp::stop_self;
/// The signal that a child of ours has been stopped by, told once for each stop. Its
/// end is left alone.
#[doc(alias = "waitid")]
#[doc(alias = "WSTOPPED")]
pub use imp::take_child_stop;

/// A signal that was read from a [`SignalFd`].
#[doc(alias = "signalfd_siginfo")]
#[derive(Clone, Copy, Debug)]
pub struct SignalInfo {
    /// Number of the signal.
    pub number: i32,
    /// True if the kernel itself sent it, as for the terminal's keys (`SI_KERNEL`).
    pub by_kernel: bool,
}

/// Opens the terminal that controls this process; `None` if there is none.
#[doc(alias = "/dev/tty")]
pub fn open_terminal() -> Option<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open("/dev/tty", flags, Mode::empty()).ok()
}

/// The process group in the foreground of a terminal; `None` if there is none any
/// more.
#[doc(alias = "tcgetpgrp")]
pub fn foreground_group(terminal: impl AsFd) -> Option<i32> {
    // libc and not rustix, here and below: in a pid namespace a group or session of
    // outside has the number 0, which rustix takes for impossible.
    //
    // SAFETY: no memory is handed over.
    let group = unsafe { libc::tcgetpgrp(terminal.as_fd().as_raw_fd()) };
    (group > 0).then_some(group)
}

/// The process group of a process; 0 if it is one outside of our pid namespace.
#[doc(alias = "getpgid")]
pub fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: no memory is handed over.
    let group = unsafe { libc::getpgid(pid) };
    (group >= 0).then_some(group)
}

/// Our own process group; 0 as above.
#[doc(alias = "getpgrp")]
pub fn own_group() -> i32 {
    group_of(0).unwrap_or(0)
}

/// The session of a process, 0 if it is one outside of our pid namespace; none if that cannot
/// be asked.
#[doc(alias = "getsid")]
pub fn session_of(pid: i32) -> Option<i32> {
    // SAFETY: no memory is handed over.
    let session = unsafe { libc::getsid(pid) };
    (session >= 0).then_some(session)
}

/// Our own session; as above.
pub fn own_session() -> Option<i32> {
    session_of(0)
}

/// True if a terminal controls our session.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
#[doc(alias = "tcgetsid")]
pub(crate) fn is_controlling(terminal: impl AsFd) -> bool {
    // SAFETY: no memory is handed over.
    let (own, its) = unsafe {
        let terminal = terminal.as_fd().as_raw_fd();
        (libc::getsid(0), libc::tcgetsid(terminal))
    };
    own > 0 && own == its
}

/// Puts a group of our session into the foreground, also from the background.
///
/// # Errors
/// Those of `tcsetpgrp(3)`.
#[doc(alias = "tcsetpgrp")]
pub fn set_foreground(terminal: impl AsFd, group: i32) -> io::Result<()> {
    let group = Pid::from_raw(group).ok_or(io::ErrorKind::InvalidInput)?;
    // A caller in the background is sent SIGTTOU, which would stop it; blocked, the call
    // is allowed.
    let _blocked = BlockedMask::of(&[SIGTTOU]);
    Ok(rustix::termios::tcsetpgrp(terminal, group)?)
}
