//! Linux: `PR_SET_CHILD_SUBREAPER`, and `waitid` that looks before it reaps.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::fs;
use std::io;
use std::mem::MaybeUninit;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

pub fn become_subreaper() -> io::Result<()> {
    // Any number but zero turns it on.
    Ok(rustix::process::set_child_subreaper(Some(Pid::INIT))?)
}

pub fn reap_ended(except: i32) -> usize {
    let mut reaped = 0;
    while let Some(pid) = next_ended() {
        if pid == except {
            // A zombie that stays is listed first, so the others have to be asked for by
            // number.
            return reaped + reap_others(except);
        }
        if !reap(pid) {
            break;
        }
        reaped += 1;
    }
    reaped
}

/// A child that has ended, still a zombie, so that its number keeps meaning it.
fn next_ended() -> Option<i32> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the pointer is to writable memory of the right type.
    let result = unsafe {
        libc::waitid(
            libc::P_ALL,
            0,
            info.as_mut_ptr(),
            libc::WEXITED | libc::WNOHANG | libc::WNOWAIT,
        )
    };
    if result != 0 {
        return None;
    }
    // SAFETY: it was zeroed, which is a valid value of this plain C structure,
    // and a zeroed or SIGCHLD siginfo has this member.
    let pid = unsafe { info.assume_init().si_pid() };
    (pid > 0).then_some(pid)
}

/// Whether there is a child at all, alive or not.
fn has_any() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

fn reap(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else {
        return false;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_)))
}

fn reap_others(except: i32) -> usize {
    // A child that this list misses because it changes meanwhile is found by the next
    // call: its end is announced by a signal of its own.
    let children = children().unwrap_or_default();
    let others = children.into_iter().filter(|pid| *pid != except);
    others.filter(|pid| reap(*pid)).count()
}

pub fn children() -> Option<Vec<i32>> {
    if !has_any() {
        return Some(Vec::new());
    }
    let mut all = Vec::new();
    // Children belong to the thread that started or adopted them.
    for thread in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let path = thread.path().join("children");
        // A kernel without such lists, or a thread that ends: its children go to another,
        // which may have been read already.
        let list = fs::read_to_string(path).ok()?;
        let pids = list.split_ascii_whitespace();
        all.extend(pids.filter_map(|pid| pid.parse::<i32>().ok()));
    }
    Some(all)
}
