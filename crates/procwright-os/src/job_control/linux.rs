//! Linux: `signalfd`, and a `ppoll` with a mask of its own.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::SignalInfo;
use crate::signal::mask::{self, change_mask, set_of};

/// The stop signals that the terminal's driver sends.
const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Signals that are blocked in the calling thread, and in those that it starts, and
/// read from a descriptor, which tells of each with its origin. Blocked they are kept
/// whatever their action is. Dropping it restores the thread's mask.
#[doc(alias = "signalfd")]
#[derive(Debug)]
pub struct SignalFd {
    fd: OwnedFd,
    signals: Vec<i32>,
    before: libc::sigset_t,
    /// Marker: the mask is this thread's.
    _not_send: PhantomData<*const ()>,
}

impl SignalFd {
    /// Blocks `signals` and opens a descriptor to read them from.
    ///
    /// # Errors
    /// Those of `signalfd(2)`.
    pub fn new(signals: &[i32]) -> io::Result<SignalFd> {
        let set = set_of(signals);
        if signals.contains(&libc::SIGCHLD) {
            // A SIGCHLD that our parent ignores is not sent for stops, and the status of
            // children is thrown away.
            // SAFETY: sets a default action.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        }
        // SAFETY: the set is initialised; the call makes a descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is new, and owned by no other code.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(SignalFd {
            fd,
            signals: signals.to_vec(),
            before: change_mask(libc::SIG_BLOCK, &set),
            _not_send: PhantomData,
        })
    }

    /// The descriptor, readable while a signal is there.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next signal, if there is one.
    pub fn next(&self) -> Option<SignalInfo> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the pointer is to writable memory of that size.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if read != size.cast_signed() {
            return None;
        }
        // SAFETY: zeroes are a valid value of this plain C structure, and the
        // kernel has written all of it.
        let info = unsafe { info.assume_init() };
        Some(SignalInfo {
            number: info.ssi_signo.cast_signed(),
            by_kernel: info.ssi_code == libc::SI_KERNEL,
        })
    }

    /// Unblocks the signals, which from now on have their default action, those that
    /// wait too.
    pub fn unblock(&self) {
        change_mask(libc::SIG_SETMASK, &self.before);
    }

    /// Blocks them again.
    pub fn block(&self) {
        change_mask(libc::SIG_BLOCK, &set_of(&self.signals));
    }
}

impl Drop for SignalFd {
    fn drop(&mut self) {
        self.unblock();
    }
}

/// Stops this process so that nothing else comes in between, and one stop is one:
///
/// 1. All signals are blocked.
/// 2. Stop signals that wait already are taken away.
/// 3. Ours is sent, and merges with one that comes now.
/// 4. One `ppoll` lets it through for as long as it takes to find it.
///
/// SIGCONT is then seen from its being pending: a stop signal that is sent takes a
/// waiting SIGCONT away, and blocked it is kept whatever its action is.
pub fn stop_self(signal: i32) -> io::Result<bool> {
    let all = mask::full_set();
    let before = change_mask(libc::SIG_SETMASK, &all);
    discard_pending(&STOPS);
    let mut others = all;
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointers are to locals; nothing is polled. The signal is sent
    // to this process as a whole and not to the thread, where it would not merge
    // with one from the terminal.
    let stopped = unsafe {
        libc::sigdelset(&raw mut others, signal);
        let sent = libc::kill(libc::getpid(), signal) == 0;
        if sent {
            libc::ppoll(ptr::null_mut(), 0, &raw const now, &raw const others);
        }
        sent && was_continued()
    };
    change_mask(libc::SIG_SETMASK, &before);
    Ok(stopped)
}

/// True if SIGCONT has come, or after it another stop signal, which takes it away.
fn was_continued() -> bool {
    // One look at all: between two, a SIGCONT could take the stop signal away.
    let [tstp, ttin, ttou] = STOPS;
    mask::is_any_pending(&[libc::SIGCONT, tstp, ttin, ttou])
}

pub fn take_child_stop(pid: i32) -> Option<i32> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let id = libc::id_t::try_from(pid).ok()?;
    // SAFETY: the pointer is to writable memory of the right type.
    let result = unsafe {
        libc::waitid(
            libc::P_PID,
            id,
            info.as_mut_ptr(),
            libc::WSTOPPED | libc::WNOHANG,
        )
    };
    if result != 0 {
        return None;
    }
    // SAFETY: it was zeroed, which is a valid value of this plain C structure,
    // and a zeroed or SIGCHLD siginfo has these members.
    let (pid, status) = unsafe {
        let info = info.assume_init();
        (info.si_pid(), info.si_status())
    };
    (pid != 0).then_some(status)
}

pub fn discard_pending(signals: &[i32]) {
    let set = set_of(signals);
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointers are to locals; nothing is written.
    while unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const now) } > 0 {}
}
