//! Namespaces, and what is mounted there.

use super::check;

/// Gives this thread pid and mount namespaces: its next child is the first
/// process of the new one. False if that may not be, as in most containers.
pub(crate) fn unshare_pids() -> bool {
    unsafe { libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNS) == 0 }
}

/// Gives this thread a network of its own as well: no socket that has a name is there.
pub(crate) fn unshare_pids_and_networks() -> bool {
    unsafe { libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNET) == 0 }
}

/// Mounts a `/proc` of the pid namespace that this process is in.
pub(crate) fn mount_proc() {
    unsafe {
        let none = std::ptr::null();
        check(libc::mount(
            none,
            c"/".as_ptr(),
            none,
            libc::MS_REC | libc::MS_PRIVATE,
            none.cast(),
        ));
        check(libc::mount(
            c"proc".as_ptr(),
            c"/proc".as_ptr(),
            c"proc".as_ptr(),
            0,
            none.cast(),
        ));
    }
}

/// Leaves this process no path but those in a directory.
pub(crate) fn chroot(directory: &std::path::Path) {
    std::os::unix::fs::chroot(directory).expect("root");
    std::env::set_current_dir("/").expect("the new root");
}

/// Mounts a file system in memory of this size, seen by this thread and those
/// that it starts. False where a sandbox forbids it.
pub(crate) fn mount_memory(directory: &std::path::Path, bytes: u64) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let target = std::ffi::CString::new(directory.as_os_str().as_bytes()).expect("no NUL");
    let options = std::ffi::CString::new(format!("size={bytes}")).expect("no NUL");
    let none = std::ptr::null();
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                none,
                c"/".as_ptr(),
                none,
                libc::MS_REC | libc::MS_PRIVATE,
                none.cast(),
            ) == 0
            && libc::mount(
                c"tmpfs".as_ptr(),
                target.as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                options.as_ptr().cast(),
            ) == 0
    }
}

/// Leaves as many namespaces as this user may.
pub(crate) fn unshare_what_may_be() {
    unsafe {
        libc::unshare(libc::CLONE_NEWUTS | libc::CLONE_NEWIPC | libc::CLONE_NEWNET);
        libc::unshare(libc::CLONE_NEWPID);
        libc::unshare(libc::CLONE_FILES | libc::CLONE_FS);
    }
}
