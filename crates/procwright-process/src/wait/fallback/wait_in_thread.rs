//! One wait where not a single descriptor is left, so that not even a set can be made: a
//! thread with a descriptor table of its own waits in the caller's place.

use std::io;
use std::os::fd::AsFd;

use crate::process_handle::{NoPidfd, ProcessHandle};
use crate::wait::{Event, sleep_on};
use procwright_os::time::Deadline;
use procwright_os::{fd_table, thread};

/// Waits for the event: true, or false after the deadline. The caller sleeps until the
/// thread has ended.
///
/// # Errors
/// When no thread can be had, none with a table of its own, or none that could
/// learn of the event.
pub(crate) fn run(process: &ProcessHandle, event: Event, deadline: Deadline) -> io::Result<bool> {
    let by_number = process.by_number();
    let work = move || {
        fd_table::unshare_empty()?;
        sleep(&by_number, event, deadline)
    };
    let thread = thread::spawn_quiet("procwright-wait", work)?;
    let over = thread
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("a panic")))?;
    if over {
        // The caller may have no descriptor to see the end with.
        process.set_ended(None);
    }
    Ok(over)
}

fn sleep(process: &ProcessHandle, event: Event, deadline: Deadline) -> io::Result<bool> {
    let no = |_: NoPidfd| procwright_os::unsupported("a pidfd");
    let Some(fd) = process.pidfd_now().map_err(no)? else {
        return Ok(true);
    };
    let slept = sleep_on(fd.as_fd(), event, deadline);
    slept.unwrap_or_else(|| Err(procwright_os::unsupported("news of a reap")))
}
