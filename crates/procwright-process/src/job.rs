//! Job control, for a process that exists to run one program in front of
//! somebody: the `procwright` command, a shell.
//!
//! Ctrl-Z stops a program, `fg` lets it go on, and who waits for the program has
//! to do as it does, or the shell sees only half of its job stop. The pieces:
//! [`Inbox`] holds signals back and hands them out one by one, [`take_stop`]
//! says that the program has stopped, [`stop_self`] follows it, [`Terminal`]
//! says who is in front.
//!
//! What is not there for a library in a host: signals and the terminal are the
//! host's. Linux only; elsewhere [`Inbox::new`] and [`stop_self`] return
//! `Unsupported`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::Signal;
use procwright_os::job_control as sys;
use procwright_os::proc;

/// The signals by which a terminal stops programs.
const STOPS: [Signal; 3] = [Signal::TSTP, Signal::TTIN, Signal::TTOU];

/// Signals that are held back and wait to be taken: blocked in the thread that
/// made it and in all that this starts later. A program that is started gets an
/// empty mask, as ever.
///
/// Dropping it puts the thread's mask back. What has not been taken by then does
/// what it does by default, except stop signals, which are forgotten.
#[derive(Debug)]
pub struct Inbox(sys::SignalFd);

/// A signal that was sent to this process.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Arrival {
    /// The signal. Several of a kind that came before one was taken are one, the
    /// first.
    pub signal: Signal,
    /// Whether the kernel itself sent it, as it does for the keys of a terminal,
    /// and not a process.
    pub from_kernel: bool,
}

impl Inbox {
    /// Holds back `signals` from now on, to be made before there is any other
    /// thread. One that is ignored is told of as well: leave out what shall stay
    /// ignored. Only SIGCHLD is no longer ignored once it is among them.
    ///
    /// # Errors
    /// When no descriptor is left, and `Unsupported` elsewhere than on Linux.
    pub fn new(signals: impl IntoIterator<Item = Signal>) -> io::Result<Inbox> {
        let numbers: Vec<i32> = signals.into_iter().map(Signal::number).collect();
        sys::SignalFd::new(&numbers).map(Inbox)
    }

    /// Takes the next signal, none if there is none. Does not wait.
    pub fn take(&self) -> Option<Arrival> {
        let arrived = self.0.next()?;
        Some(Arrival {
            signal: Signal::reported(arrived.number),
            from_kernel: arrived.by_kernel,
        })
    }

    /// Does something during which signals have their default actions, a sleep
    /// between two runs, say. Stop signals that wait are forgotten; others that
    /// wait act at once.
    pub fn open<T>(&self, work: impl FnOnce() -> T) -> T {
        forget_stops();
        self.0.unblock();
        let done = work();
        self.0.block();
        done
    }
}

/// Readable while one waits.
impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        forget_stops();
    }
}

fn forget_stops() {
    sys::discard_pending(&STOPS.map(Signal::number));
}

/// Stops this process by a stop signal, exactly once, whether or not the signal
/// is held back or waits already, and returns when it goes on: true if it did
/// stop. False if the signal is ignored, or discarded by the kernel because
/// nobody could let the process go on (its group is orphaned: no parent of a
/// member is in the session and another group, as a job's shell is).
///
/// SIGSTOP, which the kernel never discards, is sent only where a shell is seen
/// among our ancestors; elsewhere it is SIGTSTP.
///
/// # Errors
/// `Unsupported` elsewhere than on Linux.
///
/// # Blocking
/// Until SIGCONT, and all threads of the process with it.
pub fn stop_self(signal: Signal) -> io::Result<bool> {
    // A shell that ends right after the look leaves us stopped for good, as it
    // does with whoever is stopped by SIGSTOP.
    let signal = match signal {
        Signal::STOP if !has_shell() => Signal::TSTP,
        other => other,
    };
    sys::stop_self(signal.number())
}

/// Whether one of those in our group above us has a parent who could let the
/// group go on. That of another member could as well, but is not looked for.
fn has_shell() -> bool {
    let Ok(mut member) = proc::stat(std::process::id().cast_signed()) else {
        return false;
    };
    loop {
        match proc::stat(member.ppid) {
            Ok(parent) if parent.session != member.session => return false,
            Ok(parent) if parent.pgrp != member.pgrp => return true,
            Ok(parent) => member = parent,
            Err(_) => return false,
        }
    }
}

/// The signal by which a child of this process has been stopped, once for each
/// stop, and only while it lasts. Does not wait, and leaves the child's end to
/// whoever reaps it. To be asked after SIGCHLD.
pub fn take_stop(pid: i32) -> Option<Signal> {
    sys::take_child_stop(pid).map(Signal::reported)
}

/// The process group of a process, or with 0 our own; none if there is no such
/// process. A group that is outside of our pid namespace is 0.
pub fn group_of(pid: i32) -> Option<i32> {
    sys::group_of(pid)
}

/// Whether a process stands still because of a stop signal.
pub fn is_stopped(pid: i32) -> bool {
    proc::stat(pid).is_ok_and(|stat| stat.is_stopped())
}

/// The terminal that controls this process.
#[derive(Debug)]
pub struct Terminal(OwnedFd);

impl Terminal {
    /// None if there is none, as for daemons and under cron, or if it cannot be
    /// opened.
    pub fn open() -> Option<Terminal> {
        sys::open_terminal().map(Terminal)
    }

    /// The process group in the foreground, which gets what the keys send and
    /// may read; none if the terminal is gone.
    pub fn foreground(&self) -> Option<i32> {
        sys::foreground_group(&self.0)
    }

    /// Whether this process is in the foreground.
    pub fn is_ours(&self) -> bool {
        self.foreground() == Some(sys::own_group())
    }

    /// Puts a group of this session into the foreground, also from the
    /// background, without being stopped for that.
    ///
    /// # Errors
    /// `EPERM` if no such group is in the session, `ENOTTY` or `EIO` if the
    /// terminal is gone.
    pub fn hand_to(&self, group: i32) -> io::Result<()> {
        sys::set_foreground(&self.0, group)
    }

    /// Puts our own group into the foreground, as [`hand_to`](Terminal::hand_to).
    ///
    /// # Errors
    /// As there.
    pub fn take(&self) -> io::Result<()> {
        self.hand_to(sys::own_group())
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
