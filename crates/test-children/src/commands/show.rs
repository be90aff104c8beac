//! `show`: what this process was started with, as one line of JSON.
//!
//! The keys: `pid`, `ppid`, `pgid`, `sid`, `uid`, `euid`, `gid`, `egid`, `groups`,
//! `cwd`, `umask` and `nice` (numbers), `rlimit_nofile` and `rlimit_core`
//! (`[soft, hard]`, null is unlimited), `sig_blocked` and `sig_ignored` (lists of
//! numbers), `pdeathsig` (null or a number), `cpus` (the processors that it may run on),
//! `sched_policy` and `sched_priority`, `ioprio` and `oom_score_adj` (numbers of the system),
//! `no_new_privs` (0 or 1), `cgroups` (lines of /proc/self/cgroup), `session_keyring` (its
//! number, null if there are none), `nonblocking` (which descriptors have
//! O_NONBLOCK) and `fds` (number to link target, all that were open at the start).
//! What is not UTF-8 is shown with replacement characters.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::process::{
    Resource, getegid, geteuid, getgid, getgroups, getpid, getppid, getpriority_process, getrlimit,
    getuid, parent_process_death_signal,
};

use crate::args::Failure;
use crate::process::{STDOUT, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "show",
    usage: "",
    about: "writes one line of JSON: pid, ids, cwd, umask, nice, limits, signals, open fds",
    run,
};

fn run(args: Args) -> Outcome {
    args.finish()?;
    let fds = open_descriptors()?;
    let status = fs::read_to_string("/proc/self/status")?;
    let groups = getgroups()?;
    let nonblocking = fds.keys().copied().filter(|fd| is_nonblocking(*fd));
    let links: Vec<String> = fds
        .iter()
        .map(|(fd, target)| format!("\"{fd}\":{}", quote(target)))
        .collect();
    let cwd = std::env::current_dir()?;
    let members = [
        ("pid", getpid().as_raw_pid().to_string()),
        (
            "ppid",
            getppid().map_or(0, |pid| pid.as_raw_pid()).to_string(),
        ),
        ("pgid", group().to_string()),
        ("sid", session().to_string()),
        ("uid", getuid().as_raw().to_string()),
        ("euid", geteuid().as_raw().to_string()),
        ("gid", getgid().as_raw().to_string()),
        ("egid", getegid().as_raw().to_string()),
        ("groups", list(groups.iter().map(|group| group.as_raw()))),
        ("cwd", quote(cwd.as_os_str().as_bytes())),
        ("umask", field(&status, "Umask", 8)?.to_string()),
        ("nice", getpriority_process(None)?.to_string()),
        ("rlimit_nofile", limits(Resource::Nofile)),
        ("rlimit_core", limits(Resource::Core)),
        ("sig_blocked", signals(field(&status, "SigBlk", 16)?)),
        ("sig_ignored", signals(field(&status, "SigIgn", 16)?)),
        (
            "pdeathsig",
            parent_process_death_signal()?
                .map_or("null".to_owned(), |signal| signal.as_raw().to_string()),
        ),
        ("cpus", list(processors()?.into_iter())),
        ("sched_policy", scheduling()[0].to_string()),
        ("sched_priority", scheduling()[1].to_string()),
        ("ioprio", ioprio().to_string()),
        (
            "oom_score_adj",
            fs::read_to_string("/proc/self/oom_score_adj")?
                .trim()
                .to_owned(),
        ),
        (
            "no_new_privs",
            field(&status, "NoNewPrivs", 10)?.to_string(),
        ),
        (
            "cgroups",
            list(
                fs::read_to_string("/proc/self/cgroup")?
                    .lines()
                    .map(|line| quote(line.as_bytes())),
            ),
        ),
        ("session_keyring", session_keyring()),
        ("nonblocking", list(nonblocking)),
        ("fds", format!("{{{}}}", links.join(","))),
    ];
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("\"{key}\":{value}"))
        .collect();
    write_all(STDOUT, format!("{{{}}}\n", members.join(",")).as_bytes())?;
    Ok(0)
}

/// The process group; 0 if its leader is outside the pid namespace, which rustix holds
/// to be impossible, for the session too.
fn group() -> i32 {
    // SAFETY: a plain system call without pointers.
    unsafe { libc::getpgrp() }
}

fn session() -> i32 {
    // SAFETY: a plain system call without pointers.
    unsafe { libc::getsid(0) }
}

/// The processors that this process may run on.
fn processors() -> Result<Vec<usize>, Failure> {
    let mut words = [0u64; 128];
    // SAFETY: the kernel writes at most as many bytes as it is told.
    let length = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            size_of_val(&words),
            words.as_mut_ptr(),
        )
    };
    if length < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    let is_set = |number: &usize| words[number / 64] >> (number % 64) & 1 == 1;
    Ok((0..words.len() * 64).filter(is_set).collect())
}

/// Policy and priority.
fn scheduling() -> [i32; 2] {
    let mut priority: i32 = 0;
    // SAFETY: `struct sched_param` is one number.
    let policy = unsafe {
        libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority);
        libc::syscall(libc::SYS_sched_getscheduler, 0)
    };
    [i32::try_from(policy).unwrap_or(-1), priority]
}

fn ioprio() -> i64 {
    // SAFETY: a plain system call without pointers. 1 is IOPRIO_WHO_PROCESS.
    unsafe { libc::syscall(libc::SYS_ioprio_get, 1, 0) }
}

/// The number of the session keyring, or null.
fn session_keyring() -> String {
    // SAFETY: a plain system call without pointers. 0 is KEYCTL_GET_KEYRING_ID, -3 the
    // session's, which is not made if it is not there.
    match unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 0) } {
        id if id > 0 => id.to_string(),
        _ => "null".to_owned(),
    }
}

/// Every open descriptor but the one that lists them.
fn open_descriptors() -> Result<BTreeMap<i32, Vec<u8>>, Failure> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    // The directory is closed by now, so its own entry has no target any more.
    let targets = numbers.into_iter().filter_map(|number| {
        let target = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        Some((number, target.into_os_string().into_vec()))
    });
    Ok(targets.collect())
}

fn is_nonblocking(fd: i32) -> bool {
    // SAFETY: the descriptor was inherited, and nothing here closes those.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
}

/// A number from /proc/self/status.
fn field(status: &str, name: &str, radix: u32) -> Result<u64, Failure> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|value| u64::from_str_radix(value.trim(), radix).ok())
        .ok_or_else(|| Failure::Failed(format!("no {name} in /proc/self/status")))
}

/// The numbers of the signals in a mask.
fn signals(mask: u64) -> String {
    list((1..=64).filter(|number| mask >> (number - 1) & 1 == 1))
}

fn limits(resource: Resource) -> String {
    let limit = getrlimit(resource);
    let [soft, hard] = [limit.current, limit.maximum]
        .map(|value| value.map_or("null".to_owned(), |value| value.to_string()));
    format!("[{soft},{hard}]")
}

fn list(values: impl Iterator<Item = impl ToString>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    format!("[{}]", values.join(","))
}

/// A JSON string.
fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\0'..='\x1f' => quoted += &format!("\\u{:04x}", u32::from(character)),
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}
