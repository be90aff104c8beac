//! `polls CALL [MS…] [--again]`: waits for stdin in `poll`, `ppoll`, `select` or `epoll`, once with
//! each of these time limits, and then without one, as a runtime whose own timers end. With
//! `--again` it begins with the first limit instead, as a program that looks now and then. It
//! ends when it has read something.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{null, null_mut};

use libc::{c_int, epoll_event, fd_set, pollfd, timespec, timeval};

use crate::args::Failure;
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "polls",
    usage: "poll|ppoll|select|epoll [MS…] [--again]",
    about: "waits for stdin with each time limit, then without one",
    run,
};

fn run(mut args: Args) -> Outcome {
    let again = args.flag("--again");
    let call = args.next("a call")?;
    let call = call.to_str().unwrap_or_default().to_owned();
    let mut limits = Vec::new();
    while let Some(limit) = args.optional()? {
        let limit = limit.to_str().and_then(|limit| limit.parse::<c_int>().ok());
        limits.push(limit.ok_or_else(|| Failure::usage("no time limit"))?);
    }
    args.finish()?;
    let set = epoll()?;
    loop {
        for limit in &limits {
            if wait(&call, &set, *limit)? {
                return Ok(0);
            }
        }
        if !again {
            wait(&call, &set, -1)?;
            return Ok(0);
        }
    }
}

/// A set of epoll that has stdin.
fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: it has no pointers.
    let set = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened above, and nobody else has it.
    let set = unsafe { OwnedFd::from_raw_fd(set) };
    let mut event = epoll_event {
        events: libc::EPOLLIN as u32,
        u64: 0,
    };
    // SAFETY: `event` is written, and read before the call returns. A file or a device that epoll
    // does not take is for the other calls.
    unsafe { libc::epoll_ctl(set.as_raw_fd(), libc::EPOLL_CTL_ADD, 0, &raw mut event) };
    Ok(set)
}

/// Waits for so many milliseconds, without a limit if that is negative. True if there is
/// something to read.
fn wait(call: &str, set: &OwnedFd, limit: c_int) -> Result<bool, Failure> {
    let mut stdin = pollfd {
        fd: 0,
        events: libc::POLLIN,
        revents: 0,
    };
    let (seconds, rest) = (i64::from(limit / 1000), i64::from(limit % 1000));
    let seconds = seconds as libc::time_t;
    let time = timespec {
        tv_sec: seconds,
        tv_nsec: (rest * 1_000_000) as _,
    };
    let mut microseconds = timeval {
        tv_sec: seconds,
        tv_usec: (rest * 1000) as _,
    };
    let is_limited = limit >= 0;
    // SAFETY: what the calls read and write lives in this function, and is as they expect it.
    let ready = unsafe {
        match call {
            "poll" => libc::poll(&raw mut stdin, 1, limit),
            "ppoll" => {
                let time = if is_limited { &raw const time } else { null() };
                libc::ppoll(&raw mut stdin, 1, time, null())
            }
            "select" => {
                let mut read: fd_set = std::mem::zeroed();
                libc::FD_SET(0, &raw mut read);
                let time = match is_limited {
                    true => &raw mut microseconds,
                    false => null_mut(),
                };
                libc::select(1, &raw mut read, null_mut(), null_mut(), time)
            }
            "epoll" => {
                let mut event = epoll_event { events: 0, u64: 0 };
                libc::epoll_wait(set.as_raw_fd(), &raw mut event, 1, limit)
            }
            _ => return Err(Failure::usage("no such call")),
        }
    };
    match ready {
        0.. => Ok(ready > 0),
        _ => Err(io::Error::last_os_error().into()),
    }
}
