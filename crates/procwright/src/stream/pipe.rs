//! The reading end of a bare pipe.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Chunk;
use super::outlet::Account;
use crate::drain::Blocked;
use crate::handle::{Handle, Patience};
use crate::sys::pipe::{self, FullProbe};
use crate::sys::poll::Flags;

#[derive(Debug)]
pub(crate) struct Pipe {
    handle: Handle,
    measured: Mutex<Measured>,
    /// For whoever watches over the child.
    account: Arc<Account>,
}

/// How long the program could not write: what its reader's pauses do to it.
#[derive(Debug)]
struct Measured {
    blocked: Blocked,
    capacity: Option<usize>,
    /// Reads that wait for bytes: while there is one, whatever comes is read at
    /// once.
    asleep: usize,
}

impl Pipe {
    pub(crate) fn new(
        fd: OwnedFd,
        probe: Option<Arc<FullProbe>>,
        account: Arc<Account>,
    ) -> io::Result<Pipe> {
        Ok(Pipe {
            handle: Handle::new(fd)?,
            measured: Mutex::new(Measured {
                blocked: Blocked::new(probe, Instant::now()),
                capacity: None,
                asleep: 0,
            }),
            account,
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// In a fork its lock may be held for ever: not before the handle has let
    /// somebody in.
    fn measured(&self) -> MutexGuard<'_, Measured> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn read(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<Chunk> {
        self.account.touch();
        let mut sleep = Slept {
            pipe: self,
            is_asleep: false,
        };
        let read = self.handle.operate(Flags::IN, patience, |fd| {
            let mut measured = self.measured();
            sleep.is_over(&mut measured);
            let read = measured.read(fd, buffer);
            if matches!(&read, Err(e) if e.kind() == io::ErrorKind::WouldBlock) {
                sleep.begins(&mut measured);
            }
            read
        });
        let read = read?;
        if !buffer.is_empty() {
            self.account.read(read);
        }
        Ok(match read {
            0 if !buffer.is_empty() => {
                self.measured().blocked.over();
                Chunk::End
            }
            n => Chunk::Bytes(n),
        })
    }

    /// As that of the handle. Until now the program may have waited.
    pub(crate) fn close(&self) -> bool {
        self.handle.look(|fd| {
            // Whoever has it is in a read, which settles that as well. And a read of a
            // pipe that was lent may block.
            let Ok(mut measured) = self.measured.try_lock() else {
                return;
            };
            if measured.asleep == 0 {
                measured.blocked.settle(fd, Instant::now());
            }
            measured.blocked.over();
        });
        self.handle.close()
    }

    /// Up to this moment; none in a fork.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        if self.handle.is_forked() {
            return None;
        }
        let told = self.handle.look(|fd| {
            let measured = self.measured();
            let running = match measured.asleep {
                0 => measured.blocked.running(fd, Instant::now()),
                _ => Duration::ZERO,
            };
            measured.blocked.total() + running
        });
        // Closed: it is what it was.
        Some(told.unwrap_or_else(|| self.measured().blocked.total()))
    }
}

impl Measured {
    fn read(&mut self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        self.blocked.before_read(Instant::now());
        let asks = buffer.len();
        let n = match rustix::io::read(fd, buffer) {
            Ok(n) => n,
            Err(rustix::io::Errno::AGAIN) => {
                self.blocked.found_empty(Instant::now());
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

/// One read, which sleeps between its attempts.
struct Slept<'a> {
    pipe: &'a Pipe,
    is_asleep: bool,
}

impl Slept<'_> {
    fn begins(&mut self, measured: &mut Measured) {
        self.is_asleep = true;
        measured.asleep += 1;
    }

    fn is_over(&mut self, measured: &mut Measured) {
        if std::mem::take(&mut self.is_asleep) {
            measured.asleep -= 1;
            measured.blocked.slept(Instant::now());
        }
    }
}

impl Drop for Slept<'_> {
    fn drop(&mut self) {
        // The wait has ended without a read: it is no pause of the reader's.
        if self.is_asleep {
            let pipe = self.pipe;
            self.is_over(&mut pipe.measured());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_does_not_wait_for_a_read() {
        let (reader, _writer) = io::pipe().unwrap();
        let pipe = Pipe::new(reader.into(), None, Arc::default()).unwrap();
        // As a read does that blocks, of a pipe that somebody else has as well.
        let reading = pipe.measured();
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
