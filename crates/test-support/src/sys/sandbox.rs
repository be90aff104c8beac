//! A thread that has less than the others of its process.

use seccompiler::SeccompAction;

use super::check;

/// Takes from the calling thread alone whatever a thread can have of its own. What needs
/// permissions that this process has not stays as it is.
pub fn confine_this_thread(directory: &std::path::Path) {
    use std::os::unix::ffi::OsStrExt;
    let directory = std::ffi::CString::new(directory.as_os_str().as_bytes()).expect("no NUL");
    super::have_one_processor();
    unsafe {
        check(libc::setpriority(libc::PRIO_PROCESS, 0, 19));
        check(libc::prctl(libc::PR_SET_TIMERSLACK, 123_456));
        check(libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong));
        // Class 2, "best effort", level 6; of this thread.
        libc::syscall(libc::SYS_ioprio_set, 1, 0, 2 << 13 | 6);
        // A directory and a mask that other threads do not share; those of files are shared
        // still.
        check(libc::unshare(libc::CLONE_FS));
        check(libc::chdir(directory.as_ptr()));
        libc::umask(0o137);
        libc::unshare(libc::CLONE_NEWUTS | libc::CLONE_NEWIPC | libc::CLONE_NEWNET);
        libc::prctl(libc::PR_CAPBSET_DROP, 25);
        // SECBIT_NOROOT.
        libc::prctl(libc::PR_SET_SECUREBITS, 1);
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    }
    let filter = super::filters::program(
        &[libc::SYS_mkdirat],
        SeccompAction::Errno(libc::ENOTTY as u32),
    );
    seccompiler::apply_filter(&filter).expect("seccomp");
}

/// Forbids the calling thread alone, and what it starts, to make directories, by Landlock.
/// False where the kernel has none.
pub fn forbid_directories_by_landlock() -> bool {
    // `struct landlock_ruleset_attr` in its first size; LANDLOCK_ACCESS_FS_MAKE_DIR.
    let handled: u64 = 1 << 7;
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        let ruleset = libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const handled,
            size_of_val(&handled),
            0,
        );
        if ruleset < 0 {
            return false;
        }
        check(libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) as i32);
        check(libc::close(ruleset as i32));
    }
    true
}

/// What the kernel says of a thread or process that a sandbox may have changed.
pub fn confinement(pid: i32) -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let told = [
        "Umask",
        "Uid",
        "Gid",
        "Groups",
        "Cap",
        "NoNewPrivs",
        "Seccomp",
        "Speculation",
        "Cpus_allowed",
        "Mems_allowed",
    ];
    let status = read("status");
    let lines = status
        .lines()
        .filter(|line| told.iter().any(|name| line.starts_with(name)));
    let mut facts: Vec<String> = lines.map(str::to_owned).collect();
    for name in ["timerslack_ns", "personality"] {
        facts.push(format!("{name} {}", read(name).trim()));
    }
    let stat = read("stat");
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    facts.push(format!("nice {}, policy {}", fields[16], fields[38]));
    let ioprio = unsafe { libc::syscall(libc::SYS_ioprio_get, 1, pid) };
    facts.push(format!("ioprio {ioprio}"));
    for name in [
        "cwd",
        "root",
        "ns/cgroup",
        "ns/ipc",
        "ns/mnt",
        "ns/net",
        "ns/pid",
        "ns/user",
        "ns/uts",
    ] {
        let target = std::fs::read_link(format!("/proc/{pid}/{name}"));
        facts.push(format!("{name} {target:?}"));
    }
    facts
}
