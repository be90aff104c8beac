//! Not yet offered: macOS has `libproc`, FreeBSD `sysctl(KERN_PROC)`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::{Next, PipeFd, Stat, ThreadCall};
use crate::sys::unsupported;

pub(crate) fn now_ticks() -> u64 {
    0
}

pub(crate) fn inherits_orphans() -> bool {
    false
}

pub(crate) fn each_pid(_found: &mut dyn FnMut(i32, bool) -> io::Result<Next>) -> io::Result<()> {
    Err(unsupported("the list of processes"))
}

pub(crate) fn stat(_pid: i32) -> io::Result<Stat> {
    Err(unsupported("the state of a process"))
}

pub(crate) fn exe(_pid: i32) -> io::Result<PathBuf> {
    Err(unsupported("the program of a process"))
}

pub(crate) fn status_of_zombie(_pid: i32) -> Option<i32> {
    None
}

pub(crate) fn since(_start_ticks: u64) -> Duration {
    Duration::ZERO
}

pub(crate) fn each_pipe(
    _pid: i32,
    _wanted: &[u64],
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
