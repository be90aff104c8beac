//! Linux: `signalfd`, and a `ppoll` with a mask of its own.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::Arrived;

/// Those that the terminal's driver sends.
const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Signals that are blocked and wait to be read.
#[derive(Debug)]
pub(crate) struct Held {
    fd: OwnedFd,
    signals: Vec<i32>,
    before: libc::sigset_t,
    /// The mask is this thread's.
    _not_send: PhantomData<*const ()>,
}

impl Held {
    pub(crate) fn new(signals: &[i32]) -> io::Result<Held> {
        let set = set_of(signals);
        if signals.contains(&libc::SIGCHLD) {
            // Ignored by whoever started us, it would not be sent for stops, and
            // the status of children would be thrown away.
            // SAFETY: sets a default action.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        }
        // SAFETY: the set is initialised; the call makes a descriptor.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is new, and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Held {
            fd,
            signals: signals.to_vec(),
            before: change_mask(libc::SIG_BLOCK, &set),
            _not_send: PhantomData,
        })
    }

    /// Readable while one is there.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The next one, none if there is none.
    pub(crate) fn next(&self) -> Option<Arrived> {
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
        Some(Arrived {
            number: info.ssi_signo.cast_signed(),
            by_kernel: info.ssi_code == libc::SI_KERNEL,
        })
    }

    /// What they do by default they do from now on, also those that wait.
    pub(crate) fn release(&self) {
        change_mask(libc::SIG_SETMASK, &self.before);
    }

    /// Blocks them again.
    pub(crate) fn hold(&self) {
        change_mask(libc::SIG_BLOCK, &set_of(&self.signals));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.release();
    }
}

/// How it is certain that nothing else comes in between, and that one stop is
/// one: all signals are blocked, stop signals that wait already are taken away,
/// ours is sent (and merges with one that comes now), and one system call lets
/// it through for as long as it takes to find it. That SIGCONT came since is
/// seen from its being pending: a stop signal that is sent takes one away that
/// waits, and blocked it is kept whatever its action is.
pub(crate) fn stop_self(signal: i32) -> io::Result<bool> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set.
    let all = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        all.assume_init()
    };
    let before = change_mask(libc::SIG_SETMASK, &all);
    discard(&STOPS);
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

/// Whether SIGCONT has come, or after it another stop signal, which takes it
/// away.
fn was_continued() -> bool {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigpending initialises the set, and fails for a bad address only.
    let set = unsafe {
        libc::sigpending(set.as_mut_ptr());
        set.assume_init()
    };
    // SAFETY: the set is initialised.
    let is_member = |signal: &i32| unsafe { libc::sigismember(&raw const set, *signal) == 1 };
    is_member(&libc::SIGCONT) || STOPS.iter().any(is_member)
}

pub(crate) fn take_stop(pid: i32) -> Option<i32> {
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

pub(crate) fn discard(signals: &[i32]) {
    let set = set_of(signals);
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointers are to locals; nothing is written.
    while unsafe { libc::sigtimedwait(&raw const set, ptr::null_mut(), &raw const now) } > 0 {}
}

pub(crate) fn without<T>(signal: i32, work: impl FnOnce() -> T) -> T {
    let before = change_mask(libc::SIG_BLOCK, &set_of(&[signal]));
    let done = work();
    change_mask(libc::SIG_SETMASK, &before);
    done
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; a number that is no signal is
    // refused by sigaddset.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Changes the calling thread's mask and returns the one before.
fn change_mask(how: i32, set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are ours; the call fails for an unknown `how` only, and
    // fills in `before`.
    unsafe {
        libc::pthread_sigmask(how, set, before.as_mut_ptr());
        before.assume_init()
    }
}
