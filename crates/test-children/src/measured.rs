//! Writes that measure for how long they could not go on.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use crate::process::wait_writable;

/// A pipe that is written to without blocking, and waited for with a clock. The reader
/// does not notice: the two ends of a pipe are separate descriptions.
///
/// Its text is `blocked_ns=N waits=M queued_ns=Q`: the nanoseconds spent in `poll`
/// after a write that found the pipe full, the number of such waits, and the part of
/// that time in which this process could have gone on but had no processor (0 where the
/// system does not tell).
pub(crate) struct Measured {
    fd: BorrowedFd<'static>,
    flags: OFlags,
    blocked: Duration,
    waits: u64,
    queue: RunQueueDelay,
    queued: u64,
}

impl Measured {
    pub(crate) fn new(fd: BorrowedFd<'static>) -> io::Result<Self> {
        let flags = fcntl_getfl(fd)?;
        fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        Ok(Self {
            fd,
            flags,
            blocked: Duration::ZERO,
            waits: 0,
            queue: RunQueueDelay::open(),
            queued: 0,
        })
    }

    /// Writes all of `data`.
    pub(crate) fn write_all(&mut self, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            match rustix::io::write(self.fd, data) {
                Ok(count) => data = &data[count..],
                Err(Errno::AGAIN) => {
                    let before = self.queue.nanos();
                    let full = Instant::now();
                    wait_writable(self.fd)?;
                    self.blocked += full.elapsed();
                    self.queued += self.queue.nanos().saturating_sub(before);
                    self.waits += 1;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Restores the descriptor's flags.
    pub(crate) fn restore(&self) -> io::Result<()> {
        Ok(fcntl_setfl(self.fd, self.flags)?)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "blocked_ns={} waits={} queued_ns={}",
            self.blocked.as_nanos(),
            self.waits,
            self.queued
        )
    }
}

/// The time for which this thread was ready to run and did not.
struct RunQueueDelay(Option<std::fs::File>);

impl RunQueueDelay {
    fn open() -> RunQueueDelay {
        RunQueueDelay(std::fs::File::open("/proc/thread-self/schedstat").ok())
    }

    fn nanos(&self) -> u64 {
        let Some(file) = &self.0 else { return 0 };
        let mut text = [0; 80];
        let length = rustix::io::pread(file, &mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..length]);
        let second = text.split_whitespace().nth(1);
        second.and_then(|word| word.parse().ok()).unwrap_or(0)
    }
}
