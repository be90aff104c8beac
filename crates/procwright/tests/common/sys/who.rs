//! Who this process is.

use super::check;

pub(crate) fn effective_uid() -> u32 {
    unsafe { libc::geteuid() }
}

pub(crate) fn uid() -> u32 {
    unsafe { libc::getuid() }
}

pub(crate) fn pgid() -> i32 {
    unsafe { libc::getpgrp() }
}

pub(crate) fn sid() -> i32 {
    unsafe { libc::getsid(0) }
}

pub(crate) fn umask() -> u32 {
    unsafe {
        let mask = libc::umask(0o022);
        libc::umask(mask);
        mask
    }
}

pub(crate) fn niceness() -> i32 {
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Becomes another user in all threads, for good.
pub(crate) fn become_user(uid: u32) {
    check(unsafe { libc::setgroups(0, std::ptr::null()) });
    check(unsafe { libc::setresgid(uid, uid, uid) });
    check(unsafe { libc::setresuid(uid, uid, uid) });
    // The change makes /proc/self root's; tests look there.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) });
}

/// Becomes another user in all threads, with a way back.
pub(crate) fn pass_for_user(uid: u32) {
    check(unsafe { libc::setresuid(uid, uid, 0) });
}

/// The way back.
pub(crate) fn become_root_again() {
    check(unsafe { libc::setresuid(0, 0, 0) });
}
