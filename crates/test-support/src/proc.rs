//! Figures from `/proc`: of this process, its threads, and of any process.

use std::time::Duration;

use crate::sys;

/// A figure of `/proc/self/status` in bytes, such as `VmHWM`.
pub fn status_bytes(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc/self/status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .expect("the key");
    let kib: u64 = line
        .trim()
        .trim_end_matches("kB")
        .trim()
        .parse()
        .expect("a number");
    kib * 1024
}

/// The flags of the mapping of this process that an address is in, such as " rd wr mr hg ":
/// those of `VmFlags` in proc(5).
pub fn mapping_flags(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("/proc/self/smaps");
    let mut is_here = false;
    for line in maps.lines() {
        let range = line.split(' ').next().and_then(|word| word.split_once('-'));
        let bound = |word| usize::from_str_radix(word, 16).ok();
        if let Some((Some(from), Some(to))) = range.map(|(from, to)| (bound(from), bound(to))) {
            is_here = (from..to).contains(&address);
        }
        if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_here) {
            return format!("{flags} ");
        }
    }
    panic!("no mapping has {address:x}");
}

/// Resets the peak of this process's memory, and returns the memory in use now.
pub fn reset_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("/proc/self/clear_refs");
    status_bytes("VmHWM")
}

/// How often the threads of this name have gone to sleep. There are `count` of them
/// when this returns, and all sleep: every thread that was to wake up, and was told so,
/// has done so.
pub fn sleeps_of(name: &str, count: usize) -> u64 {
    loop {
        let tasks = std::fs::read_dir("/proc/self/task").expect("/proc/self/task");
        let sleeps: Vec<Option<u64>> = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
            .filter(|status| field(status, "Name:") == Some(name))
            .map(|status| {
                let asleep = field(&status, "State:")?.starts_with('S');
                let count = field(&status, "voluntary_ctxt_switches:")?;
                asleep.then(|| count.parse().expect("a number"))
            })
            .collect();
        let all: Option<Vec<u64>> = sleeps.into_iter().collect();
        if let Some(all) = all.filter(|all| all.len() == count) {
            return all.into_iter().sum();
        }
        std::thread::yield_now();
    }
}

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    Some(lines.find_map(|line| line.strip_prefix(key))?.trim())
}

/// The count of [`sleeps_of`], once it does not change any more while `pass` lets some
/// time pass.
pub fn settled(name: &str, count: usize, pass: impl Fn(Duration)) -> u64 {
    let mut before = sleeps_of(name, count);
    loop {
        pass(Duration::from_millis(100));
        let now = sleeps_of(name, count);
        if now == before {
            return now;
        }
        before = now;
    }
}

/// The threads that sleep in a poll, but for the first and `except`, each with its
/// numbers of context switches.
pub fn polling_threads(except: i32) -> Vec<(String, String)> {
    let own = std::process::id().to_string();
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc/self/task");
    let mut threads: Vec<(String, String)> = tasks
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| !path.ends_with(&own) && !path.ends_with(except.to_string()))
        .filter_map(|path| {
            let call = std::fs::read_to_string(path.join("syscall")).ok()?;
            let number: i64 = call.split(' ').next()?.parse().ok()?;
            let status = std::fs::read_to_string(path.join("status")).ok()?;
            let switches: Vec<&str> = status
                .lines()
                .filter(|line| line.contains("ctxt_switches"))
                .collect();
            sys::is_waiting_call(number).then(|| (path.display().to_string(), switches.join(" ")))
        })
        .collect();
    threads.sort();
    threads
}

/// The letter of a process's state, or none if there is no such process.
pub fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].trim_start().chars().next()
}

/// Whether a process is alive; a zombie is not.
pub fn lives(pid: i32) -> bool {
    state(pid).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether the descriptors of every process can be seen; a sandbox may hide some, even
/// from root.
pub fn sees_everyone() -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc");
    processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| lives(*pid))
        .all(|pid| match std::fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(fds) => fds.flatten().all(|fd| {
                std::fs::read_link(fd.path())
                    .err()
                    .is_none_or(|error| error.kind() == std::io::ErrorKind::NotFound)
            }),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        })
}

/// All living processes that have `text` as an argument.
pub fn with_argument(text: &str) -> Vec<i32> {
    std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.split(|b| *b == 0).any(|arg| arg == text.as_bytes()))
        })
        .filter(|pid| lives(*pid))
        .collect()
}
