//! Signal sets, and the calling thread's mask.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

/// A guard under which signals are blocked for the calling thread. Dropping it restores
/// the mask from before.
#[derive(Debug)]
pub(crate) struct BlockedMask {
    before: libc::sigset_t,
    /// Marker: the mask is this thread's.
    _not_send: PhantomData<*const ()>,
}

impl BlockedMask {
    /// Blocks all signals but the C library's own.
    pub(crate) fn all() -> BlockedMask {
        BlockedMask {
            before: change_mask(libc::SIG_SETMASK, &full_set()),
            _not_send: PhantomData,
        }
    }

    /// Blocks these signals beside those that are blocked.
    pub(crate) fn of(signals: &[i32]) -> BlockedMask {
        BlockedMask {
            before: change_mask(libc::SIG_BLOCK, &set_of(signals)),
            _not_send: PhantomData,
        }
    }
}

impl Drop for BlockedMask {
    fn drop(&mut self) {
        change_mask(libc::SIG_SETMASK, &self.before);
    }
}

/// The set of all signals.
pub(crate) fn full_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// The set of these signals.
pub(crate) fn set_of(signals: &[i32]) -> libc::sigset_t {
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

/// True if one of these signals is blocked and pending, for the thread or the process.
pub(crate) fn is_any_pending(signals: &[i32]) -> bool {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigpending initialises the set, and fails for a bad address only.
    let set = unsafe {
        libc::sigpending(set.as_mut_ptr());
        set.assume_init()
    };
    // SAFETY: the set is initialised.
    let is_member = |signal: &i32| unsafe { libc::sigismember(&raw const set, *signal) == 1 };
    signals.iter().any(is_member)
}

/// Changes the calling thread's mask and returns the one before.
pub(crate) fn change_mask(how: i32, set: &libc::sigset_t) -> libc::sigset_t {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets are ours; the call fails for an unknown `how` only, and
    // fills in `before`.
    unsafe {
        libc::pthread_sigmask(how, ptr::from_ref(set), before.as_mut_ptr());
        before.assume_init()
    }
}
