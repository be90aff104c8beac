//! Linux: `PR_SET_CHILD_SUBREAPER`, and `waitid` that looks before it reaps.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::fs;
use std::io;
use std::mem::MaybeUninit;

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
    let others = children().into_iter().filter(|pid| *pid != except);
    others.filter(|pid| reap(*pid)).count()
}

pub fn children() -> Vec<i32> {
    // Children belong to the thread that started or adopted them.
    let Ok(threads) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            let pids = list.split_ascii_whitespace();
            pids.filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}
