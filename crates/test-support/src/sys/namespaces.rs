//! Namespaces, and mounts in them.

use super::check;

/// Gives this thread new pid and mount namespaces: its next child is the first process
/// of the new pid namespace. False if this is not permitted, as in most containers.
pub fn unshare_pids() -> bool {
    unsafe { libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNS) == 0 }
}

/// Gives this thread new pid and network namespaces: no abstract socket of the old
/// network can be reached.
pub fn unshare_pids_and_networks() -> bool {
    unsafe { libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWNET) == 0 }
}

/// Mounts a `/proc` of this process's pid namespace.
pub fn mount_proc() {
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

/// Leaves this process no paths but those in a directory.
pub fn chroot(directory: &std::path::Path) {
    std::os::unix::fs::chroot(directory).expect("root");
    std::env::set_current_dir("/").expect("the new root");
}

/// Mounts a tmpfs of this size, seen by this thread and the ones that it starts. False
/// where a sandbox forbids it.
pub fn mount_memory(directory: &std::path::Path, bytes: u64) -> bool {
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
pub fn unshare_what_may_be() {
    unsafe {
        libc::unshare(libc::CLONE_NEWUTS | libc::CLONE_NEWIPC | libc::CLONE_NEWNET);
        libc::unshare(libc::CLONE_NEWPID);
        libc::unshare(libc::CLONE_FILES | libc::CLONE_FS);
    }
}
