//! Not yet offered, but for one process at a time on macOS.
//!
//! FreeBSD has `sysctl(KERN_PROC_PID)`. Its start time moves with the clock: it
//! is that since boot plus `KERN_BOOTTIME`, which has to be taken off again.

#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod one;
#[cfg(not(target_os = "macos"))]
#[path = "none.rs"]
mod one;

use std::io;
use std::path::PathBuf;

use super::{Conduit, Next, PipeFd, ThreadCall};
use crate::sys::unsupported;

pub(crate) use one::{at, now_ticks, stat};

pub(crate) fn pid_namespace() -> Option<u64> {
    None
}

pub(crate) fn boot() -> Option<u128> {
    None
}

pub(crate) fn inherits_orphans() -> bool {
    false
}

pub(crate) fn each_pid(_found: &mut dyn FnMut(i32, bool) -> io::Result<Next>) -> io::Result<()> {
    Err(unsupported("the list of processes"))
}

pub(crate) fn exe(_pid: i32) -> io::Result<PathBuf> {
    Err(unsupported("the program of a process"))
}

pub(crate) fn status_of_zombie(_pid: i32) -> Option<i32> {
    None
}

pub(crate) fn each_pipe(
    _pid: i32,
    _wanted: &[Conduit],
    _found: &mut dyn FnMut(PipeFd),
) -> io::Result<()> {
    Err(unsupported("the descriptors of a process"))
}

pub(crate) fn threads_stopped(_pid: i32) -> io::Result<bool> {
    Err(unsupported("the state of a thread"))
}

pub(crate) fn each_call(_pid: i32, _found: &mut dyn FnMut(ThreadCall) -> bool) -> io::Result<()> {
    Err(unsupported("the system call of a thread"))
}

pub(crate) fn leads(_pid: i32) -> io::Result<bool> {
    Ok(true)
}
