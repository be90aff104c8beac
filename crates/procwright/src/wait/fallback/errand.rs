//! Not a single descriptor left, so that not even a set can be made: a thread
//! with a descriptor table of its own waits in the caller's place.

use std::io;
use std::os::fd::AsFd;

use crate::ident::{NoPidfd, Watched};
use crate::sys::{table, thread};
use crate::time::Deadline;
use crate::wait::{Event, sleep_on};

/// Whether the event has come about by the deadline. The caller sleeps until the
/// thread has ended.
///
/// # Errors
/// When no thread can be had, none with a table of its own, or none that could
/// learn of the event.
pub(crate) fn run(process: &Watched, event: Event, deadline: Deadline) -> io::Result<bool> {
    let by_number = process.by_number();
    let work = move || {
        table::leave()?;
        sleep(&by_number, event, deadline)
    };
    let thread = thread::spawn_quiet("procwright-wait", work)?;
    let over = thread
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("a panic")))?;
    if over {
        // There may be no descriptor to see it with.
        process.tell(None);
    }
    Ok(over)
}

fn sleep(process: &Watched, event: Event, deadline: Deadline) -> io::Result<bool> {
    let no = |_: NoPidfd| crate::sys::unsupported("a pidfd");
    let Some(fd) = process.pidfd_now().map_err(no)? else {
        return Ok(true);
    };
    let slept = sleep_on(fd.as_fd(), event, deadline);
    slept.unwrap_or_else(|| Err(crate::sys::unsupported("news of a reap")))
}
