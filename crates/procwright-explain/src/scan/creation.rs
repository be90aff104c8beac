//! When pipes were made.
//!
//! From Linux 6.15 on the times of an anonymous pipe are those of its creation; before,
//! reads and writes changed them. That tells who may have inherited an end: only who is
//! younger than the pipe, as a descendant of who made it.

use std::time::{Duration, SystemTime};

use rustix::fs::Stat;
use rustix::pipe::{PipeFlags, pipe_with};

/// A pipe of ours by which the kernel shows whether it keeps the times of creation.
#[derive(Debug)]
pub(crate) struct Probe {
    read: std::os::fd::OwnedFd,
    write: std::os::fd::OwnedFd,
}

impl Probe {
    pub(crate) fn new() -> Option<Probe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        Some(Probe { read, write })
    }

    /// True if the times of a pipe are those of its creation, for certain. To be asked some
    /// time after the pipe was made: the clock of such times ticks every few milliseconds.
    pub(crate) fn keeps_creation(&self) -> bool {
        let look = || -> Option<(i64, u64)> {
            let stat = rustix::fs::fstat(&self.read).ok()?;
            Some((stat.st_mtime, stat.st_mtime_nsec))
        };
        let Some(before) = look() else {
            return false;
        };
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        let ticked = (now.tv_sec, now.tv_nsec) > (before.0, before.1 as i64);
        let written = rustix::io::write(&self.write, b"x").is_ok();
        let taken = rustix::io::read(&self.read, &mut [0]).is_ok();
        ticked && written && taken && look() == Some(before)
    }
}

/// The creation of a pipe, in ticks since boot as start times of processes are.
pub(super) fn ticks(stat: &Stat) -> Option<u64> {
    let seconds = Duration::new(stat.st_mtime.try_into().ok()?, stat.st_mtime_nsec as u32);
    let made = SystemTime::UNIX_EPOCH + seconds;
    let now = procwright_os::proc::now_ticks();
    let age = SystemTime::now().duration_since(made).ok()?;
    let hz = u128::from(rustix::param::clock_ticks_per_second());
    let age = u64::try_from(age.as_nanos() * hz / 1_000_000_000).ok()?;
    now.checked_sub(age)
}
