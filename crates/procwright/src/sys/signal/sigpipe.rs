//! Writing to a pipe whose reader may be gone.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

/// While this lives, a write of this thread to a pipe without a reader fails
/// with `EPIPE` and does nothing else.
///
/// The runtimes of Rust and Python ignore SIGPIPE, but a C program does not,
/// and many a Python tool restores the default so as to end quietly in a
/// pipeline. Such a host must not die because a program did not read its stdin.
/// Changing the disposition would change it for the whole host, so the signal
/// is blocked, for this thread, and taken back if it came.
pub(crate) struct NoSigpipe {
    before: libc::sigset_t,
    was_pending: bool,
    /// The mask is this thread's.
    _not_send: PhantomData<*const ()>,
}

impl NoSigpipe {
    pub(crate) fn new() -> NoSigpipe {
        let mut before = MaybeUninit::uninit();
        let was_pending = pending();
        // SAFETY: both sets are ours; pthread_sigmask fills in `before`.
        let before = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &only_sigpipe(), before.as_mut_ptr());
            before.assume_init()
        };
        NoSigpipe {
            before,
            was_pending,
            _not_send: PhantomData,
        }
    }
}

/// One write without SIGPIPE. Unlike a [`NoSigpipe`] that is held for longer it
/// takes nothing back but what this write has sent: a signal that comes for the
/// process meanwhile is the host's.
pub(crate) fn without_sigpipe<T>(write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let mut guard = NoSigpipe::new();
    let written = write();
    let sent = matches!(&written, Err(error) if error.kind() == io::ErrorKind::BrokenPipe);
    // As if it had been there before: then it is left alone.
    guard.was_pending |= !sent;
    written
}

impl Drop for NoSigpipe {
    fn drop(&mut self) {
        if !self.was_pending && pending() {
            let mut signal = 0;
            // SAFETY: the signal is blocked and pending for this thread, since
            // a failed write sends it to the writer, so this returns at once.
            unsafe { libc::sigwait(&only_sigpipe(), &raw mut signal) };
        }
        // SAFETY: `before` is the mask that was in force.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, ptr::null_mut()) };
    }
}

fn only_sigpipe() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGPIPE);
        set.assume_init()
    }
}

fn pending() -> bool {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigpending initialises the set, or fails only for a bad address.
    unsafe {
        libc::sigpending(set.as_mut_ptr());
        libc::sigismember(set.as_ptr(), libc::SIGPIPE) == 1
    }
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
            assert!(pending());
            drop(guard);
            assert!(!pending());
            libc::signal(libc::SIGPIPE, before);
        }
    }
}
