//! The reading end of a bare pipe.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::chunk::Chunk;
use super::function_flags::{FunctionFlags, closed_error};
use super::output_monitor::PipeCounters;
use crate::drain::BlockedTime;
use procwright_os::handle::{Handle, HandleError, Patience};
use procwright_os::pipe::{self, FullProbe};
use procwright_os::poll::Flags;
use procwright_os::sync::{Mutex, MutexGuard};
use rustix::io::Errno;

/// Reads a pipe whose bytes are kept nowhere on this side.
#[derive(Debug)]
pub(crate) struct PipeReader {
    handle: Handle,
    meter: Mutex<PipeMeter>,
    /// Counters for the monitor of this output.
    counters: Arc<PipeCounters>,
    /// Those of the function between two programs that reads it, if one does.
    function: Option<Arc<FunctionFlags>>,
}

/// Measures how long the program could not write because of pauses between reads.
#[derive(Debug)]
struct PipeMeter {
    blocked: BlockedTime,
    capacity: Option<usize>,
    /// Reads that wait for bytes: while there is one, bytes are read as they come.
    asleep: usize,
}

impl PipeReader {
    pub(crate) fn new(
        fd: OwnedFd,
        probe: Option<Arc<FullProbe>>,
        counters: Arc<PipeCounters>,
    ) -> io::Result<PipeReader> {
        Ok(PipeReader {
            handle: Handle::new(fd)?,
            meter: Mutex::new(PipeMeter {
                blocked: BlockedTime::new(probe, Instant::now()),
                capacity: None,
                asleep: 0,
            }),
            counters,
            function: None,
        })
    }

    /// Has it be read by a function between two programs.
    pub(crate) fn of_function(self, flags: Arc<FunctionFlags>) -> PipeReader {
        PipeReader {
            function: Some(flags),
            ..self
        }
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Locks the meter. Only from within `handle`, which refuses a fork: there the lock
    /// may be held for ever.
    fn meter(&self) -> MutexGuard<'_, PipeMeter> {
        self.meter.lock()
    }

    pub(crate) fn read(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<Chunk> {
        self.counters.touch();
        let mut sleep = ReadSleep {
            pipe: self,
            is_asleep: false,
        };
        let read = self.handle.operate(Flags::IN, patience, |fd| {
            let mut meter = self.meter();
            sleep.is_over(&mut meter);
            let read = meter.read(fd, buffer);
            if matches!(&read, Err(e) if e.kind() == io::ErrorKind::WouldBlock) {
                sleep.begins(&mut meter);
            }
            read
        });
        let read = read.map_err(|error| match error {
            HandleError::Closed => self.closed_error(),
            error => error.into(),
        })?;
        if !buffer.is_empty() {
            self.counters.add_read(read);
        }
        Ok(match read {
            0 if !buffer.is_empty() => {
                if self.function.as_ref().is_some_and(|its| its.is_stopping()) {
                    return Err(Errno::CANCELED.into());
                }
                self.meter().blocked.close_probe();
                Chunk::End
            }
            n => Chunk::Bytes(n),
        })
    }

    /// The error of a call on it once it is closed.
    pub(crate) fn closed_error(&self) -> io::Error {
        closed_error(self.function.as_deref())
    }

    /// Closes the handle, and counts the time for which the program has waited until now.
    pub(crate) fn close(&self) -> bool {
        self.handle.with_fd(|fd| {
            // A read that is under way has the lock, and counts the time itself when it ends.
            // It is not waited for: a read of a descriptor that was lent may block.
            let Some(mut meter) = self.meter.try_lock() else {
                return;
            };
            if meter.asleep == 0 {
                meter.blocked.count_rest(fd, Instant::now());
            }
            meter.blocked.close_probe();
        });
        self.handle.close()
    }

    /// The time for which the program could not write, up to now; none in a fork.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        if self.handle.is_forked() {
            return None;
        }
        let told = self.handle.with_fd(|fd| {
            let meter = self.meter();
            let running = match meter.asleep {
                0 => meter.blocked.running(fd, Instant::now()),
                _ => Duration::ZERO,
            };
            meter.blocked.total() + running
        });
        // A closed reader keeps its last figure.
        Some(told.unwrap_or_else(|| self.meter().blocked.total()))
    }
}

impl PipeMeter {
    fn read(&mut self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        let before = Instant::now();
        self.blocked.before_read(before);
        let asks = buffer.len();
        let n = match rustix::io::read(fd, buffer) {
            Ok(n) => n,
            Err(rustix::io::Errno::AGAIN) => {
                self.blocked.found_empty(before);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(error) => return Err(error.into()),
        };
        // Neither the end nor an empty buffer makes room.
        if n > 0 && asks > 0 {
            let capacity = match self.capacity {
                Some(capacity) => capacity,
                None if self.blocked.is_suspected() => {
                    let asked = pipe::capacity(fd).unwrap_or(pipe::DEFAULT_CAPACITY);
                    *self.capacity.insert(asked)
                }
                None => pipe::DEFAULT_CAPACITY,
            };
            self.blocked.after_read(n, fd, capacity, Instant::now());
        }
        Ok(n)
    }
}

/// The sleep of one read between its attempts.
struct ReadSleep<'a> {
    pipe: &'a PipeReader,
    is_asleep: bool,
}

impl ReadSleep<'_> {
    fn begins(&mut self, meter: &mut PipeMeter) {
        self.is_asleep = true;
        meter.asleep += 1;
    }

    fn is_over(&mut self, meter: &mut PipeMeter) {
        if std::mem::take(&mut self.is_asleep) {
            meter.asleep -= 1;
            meter.blocked.slept(Instant::now());
        }
    }
}

impl Drop for ReadSleep<'_> {
    fn drop(&mut self) {
        // A wait that ends without a read is no pause between reads.
        if self.is_asleep {
            let pipe = self.pipe;
            self.is_over(&mut pipe.meter());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_does_not_wait_for_a_read() {
        let (reader, _writer) = io::pipe().unwrap();
        let pipe = PipeReader::new(reader.into(), None, Arc::default()).unwrap();
        // A read that blocks, of a pipe that was lent, holds the lock like this.
        let reading = pipe.meter();
        let (told, closed) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let pipe = &pipe;
            scope.spawn(move || told.send(pipe.close()).unwrap());
            let closed = closed.recv_timeout(Duration::from_secs(30));
            drop(reading);
            assert_eq!(closed, Ok(true), "it waits");
        });
    }
}
