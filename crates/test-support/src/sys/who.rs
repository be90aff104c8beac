//! Identity of this process: user, group, session, umask, niceness.

use super::check;

/// The effective user.
pub fn effective_uid() -> u32 {
    unsafe { libc::geteuid() }
}

/// The real user.
pub fn uid() -> u32 {
    unsafe { libc::getuid() }
}

/// The process group.
pub fn pgid() -> i32 {
    unsafe { libc::getpgrp() }
}

/// The session.
pub fn sid() -> i32 {
    unsafe { libc::getsid(0) }
}

/// The umask.
pub fn umask() -> u32 {
    unsafe {
        let mask = libc::umask(0o022);
        libc::umask(mask);
        mask
    }
}

/// The niceness.
pub fn niceness() -> i32 {
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Becomes another user in all threads, for good.
pub fn become_user(uid: u32) {
    check(unsafe { libc::setgroups(0, std::ptr::null()) });
    check(unsafe { libc::setresgid(uid, uid, uid) });
    check(unsafe { libc::setresuid(uid, uid, uid) });
    // The change gives /proc/self to root, and tests look there.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) });
}

/// Becomes another user in all threads, with a way back.
pub fn pass_for_user(uid: u32) {
    check(unsafe { libc::setresuid(uid, uid, 0) });
}

/// Becomes root again after [`pass_for_user`].
pub fn become_root_again() {
    check(unsafe { libc::setresuid(0, 0, 0) });
}
