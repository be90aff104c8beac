//! Writing to a pipe whose reader may be gone.

use std::io;

use super::mask::{BlockedMask, is_any_pending, set_of};

/// A guard under which a write of this thread to a pipe without a reader fails with
/// `EPIPE` and does nothing else.
///
/// The runtimes of Rust and Python ignore SIGPIPE, but a C program does not,
/// and many a Python tool restores the default so as to end quietly in a
/// pipeline. Such a host must not die because a program did not read its stdin.
/// Changing the disposition would change it for the whole host, so the signal
/// is blocked, for this thread, and taken back if it came.
#[doc(alias = "SIGPIPE")]
#[doc(alias = "MSG_NOSIGNAL")]
#[derive(Debug)]
pub struct NoSigpipe {
    was_pending: bool,
    /// Restored after the signal was taken back.
    _mask: BlockedMask,
}

impl NoSigpipe {
    /// Blocks SIGPIPE for this thread.
    #[expect(
        clippy::new_without_default,
        reason = "a guard that is made without a word would surprise"
    )]
    pub fn new() -> NoSigpipe {
        NoSigpipe {
            was_pending: is_pending(),
            _mask: BlockedMask::of(&[libc::SIGPIPE]),
        }
    }
}

/// Runs one write without SIGPIPE. Unlike a [`NoSigpipe`] that is held for longer it
/// takes nothing back but what this write has sent: a signal that comes for the
/// process meanwhile is the host's.
///
/// # Errors
/// Those of the write.
pub fn without_sigpipe<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut guard = NoSigpipe::new();
    let written = write();
    let sent = matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
    // A signal that was there before is left alone.
    guard.was_pending |= !sent;
    written
}

impl Drop for NoSigpipe {
    fn drop(&mut self) {
        if !self.was_pending && is_pending() {
            let mut signal = 0;
            // SAFETY: the signal is blocked and pending for this thread, since
            // a failed write sends it to the writer, so this returns at once.
            unsafe { libc::sigwait(&set_of(&[libc::SIGPIPE]), &raw mut signal) };
        }
    }
}

fn is_pending() -> bool {
    is_any_pending(&[libc::SIGPIPE])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_signal_is_taken_back() {
        // SAFETY: raises a signal that the guard has blocked.
        let raise = || unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGPIPE) };
        // The test harness ignores SIGPIPE, and an ignored signal is never
        // pending; a handler makes it one that would be noticed.
        extern "C" fn deadly(_: libc::c_int) {
            // SAFETY: aborting is what this test is to fail by.
            unsafe { libc::abort() }
        }
        // SAFETY: installs a handler and puts the old one back.
        unsafe {
            let before = libc::signal(libc::SIGPIPE, deadly as *const () as usize);
            let guard = NoSigpipe::new();
            assert_eq!(raise(), 0);
            assert!(is_pending());
            drop(guard);
            assert!(!is_pending());
            libc::signal(libc::SIGPIPE, before);
        }
    }
}
