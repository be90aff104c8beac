//! Platforms without `/proc`; macOS tells about one process at a time.
//!
//! FreeBSD has `sysctl(KERN_PROC_PID)`. Its start time moves with the clock: it is
//! that since boot plus `KERN_BOOTTIME`, which has to be taken off again.
#![allow(missing_docs, reason = "documented where it is exported")]

#[cfg(target_os = "macos")]
#[path = "macos.rs"]
mod one;
#[cfg(not(target_os = "macos"))]
#[path = "none.rs"]
mod one;

use std::io;
use std::path::PathBuf;

use super::{Conduit, PipeFd, Scan, ThreadCall};
use crate::unsupported;

pub use one::{now_ticks, stat, wall_clock_start};

pub fn pid_namespace() -> Option<u64> {
    None
}

pub fn is_missing() -> bool {
    false
}

pub fn boot_id() -> Option<u128> {
    None
}

pub fn inherits_orphans() -> bool {
    false
}

pub fn last_pid() -> Option<i32> {
    None
}

pub fn each_pid(_found: &mut dyn FnMut(i32, bool) -> io::Result<Scan>) -> io::Result<()> {
    Err(unsupported("the list of processes"))
}

pub fn exe(_pid: i32) -> io::Result<PathBuf> {
    Err(unsupported("the program of a process"))
}

pub fn status_of_zombie(_pid: i32) -> Option<i32> {
    None
}

pub fn each_pipe(_pid: i32, _wanted: &[Conduit], _found: &mut dyn FnMut(PipeFd)) -> io::Result<()> {
    Err(unsupported("the descriptors of a process"))
}

pub fn threads_stopped(_pid: i32) -> io::Result<bool> {
    Err(unsupported("the state of a thread"))
}

pub fn each_call(_pid: i32, _found: &mut dyn FnMut(ThreadCall) -> bool) -> io::Result<()> {
    Err(unsupported("the system call of a thread"))
}

pub fn is_process(_pid: i32) -> io::Result<bool> {
    Ok(true)
}
