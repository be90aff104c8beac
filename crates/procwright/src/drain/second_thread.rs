//! A second thread for the second stream, while both carry volume.
//!
//! One loop reads two saturated streams at half the speed of two: what limits
//! it is not the system calls but touching fresh memory, on one processor. So
//! once both streams have shown volume, one of them goes to a thread of its own,
//! and comes back when it has nothing to read for a while, or ends, or the run has to
//! look at it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::flow::Flow;
use super::meter::Gauge;
use super::output::{Drain, DrainStep};
use crate::spool::Memory;
use procwright_os::poll::{self, Flags};
use procwright_os::thread;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// The time without a byte after which the thread hands the stream back.
const PATIENCE: Duration = Duration::from_millis(50);

/// A drain that is back, and why.
pub(super) type Returned<M> = (Drain<M>, io::Result<DrainStep>);

/// A drain that runs on a thread of its own.
#[derive(Debug)]
pub(super) struct SecondThread<M> {
    thread: JoinHandle<Option<Returned<M>>>,
    signals: RecallOnDrop,
    started: Instant,
    gauge: Gauge,
}

#[derive(Debug)]
struct ThreadSignals {
    /// Set by the run: the thread is to come back. Relaxed, since the flag hands nothing
    /// over: the drain comes back by the join of the thread.
    quitting: AtomicBool,
    /// Rung by the run, for a thread that waits.
    quit: Wake,
    /// Rung by a thread that comes back.
    done: Wake,
    /// Nanoseconds from the start of the thread to its latest read. Relaxed, as `bytes`:
    /// a figure, by way of which no memory is reached.
    last_read: AtomicU64,
    /// The bytes of the stream, from its beginning.
    bytes: AtomicU64,
}

/// Calls the thread back when it is dropped: by [`SecondThread::recall`], or with a run
/// that was left, for which the thread would go on reading as long as there is something.
#[derive(Debug)]
struct RecallOnDrop(Arc<ThreadSignals>);

impl Drop for RecallOnDrop {
    fn drop(&mut self) {
        self.0.quitting.store(true, Ordering::Relaxed);
        self.0.quit.ring();
    }
}

impl<M: Memory> SecondThread<M> {
    /// Starts a thread that drives `drain`.
    ///
    /// # Errors
    /// The drain comes back where no thread or descriptor can be had.
    pub(super) fn start(drain: Drain<M>) -> Result<SecondThread<M>, Box<Drain<M>>> {
        let started = Instant::now();
        let (Ok(quit), Ok(done)) = (Wake::new(), Wake::new()) else {
            return Err(Box::new(drain));
        };
        let signals = Arc::new(ThreadSignals {
            quitting: AtomicBool::new(false),
            quit,
            done,
            last_read: AtomicU64::new(0),
            bytes: AtomicU64::new(drain.bytes()),
        });
        // The drain goes through a channel and not by capture: a thread that cannot be
        // made would take the drain, and all that it holds, with it.
        let (hand, taken) = std::sync::mpsc::sync_channel::<Drain<M>>(1);
        let theirs = Arc::clone(&signals);
        let gauge = drain.gauge();
        let thread = thread::spawn_quiet("procwright-drain", move || {
            let mut drain = taken.recv().ok()?;
            let result = drive(&mut drain, &theirs, started);
            theirs.done.ring();
            Some((drain, result))
        });
        match thread {
            Ok(thread) => {
                let _ = hand.send(drain);
                Ok(SecondThread {
                    thread,
                    signals: RecallOnDrop(signals),
                    started,
                    gauge,
                })
            }
            Err(_) => Err(Box::new(drain)),
        }
    }

    /// Readable when the thread is about to hand the drain back.
    pub(super) fn done(&self) -> BorrowedFd<'_> {
        self.signals.0.done.as_fd()
    }

    pub(super) fn last_read(&self) -> Instant {
        let nanos = self.signals.0.last_read.load(Ordering::Relaxed);
        self.started + Duration::from_nanos(nanos)
    }

    /// The progress of the stream.
    pub(super) fn flow(&self) -> Flow {
        Flow {
            bytes: self.signals.0.bytes.load(Ordering::Relaxed),
            blocked: self.gauge.blocked(),
        }
    }

    /// Fetches the drain, now if need be.
    ///
    /// # Errors
    /// When the thread has panicked, and the stream with it.
    pub(super) fn recall(self) -> io::Result<Returned<M>> {
        drop(self.signals);
        match self.thread.join() {
            Ok(Some(returned)) => Ok(returned),
            _ => Err(io::Error::other("the second drain thread panicked")),
        }
    }
}

/// Steps until there is a reason to come back, and returns it.
fn drive<M: Memory>(
    drain: &mut Drain<M>,
    signals: &ThreadSignals,
    started: Instant,
) -> io::Result<DrainStep> {
    loop {
        match drain.step()? {
            DrainStep::Moved => {
                let last = drain.last_read().unwrap_or(started);
                let nanos = last.saturating_duration_since(started).as_nanos();
                let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
                signals.last_read.store(nanos, Ordering::Relaxed);
                signals.bytes.store(drain.bytes(), Ordering::Relaxed);
                // Looked at here as well: a pipe with many writers is never empty.
                if drain.excess() > 0 || signals.quitting.load(Ordering::Relaxed) {
                    return Ok(DrainStep::Moved);
                }
            }
            DrainStep::Empty => {
                let Some(fd) = drain.fd() else {
                    return Ok(DrainStep::End);
                };
                let mut fds = [
                    poll::Fd::from_borrowed_fd(fd, Flags::IN),
                    poll::Fd::new(&signals.quit, Flags::IN),
                ];
                match poll::poll(&mut fds, Deadline::at(Instant::now() + PATIENCE)) {
                    Ok(0) => return Ok(DrainStep::Empty),
                    Ok(_) if !fds[1].revents().is_empty() => return Ok(DrainStep::Empty),
                    Ok(_) => drain.slept(Instant::now()),
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
            reason @ (DrainStep::Held | DrainStep::End) => return Ok(reason),
        }
    }
}
