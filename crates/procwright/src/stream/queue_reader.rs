//! The reading end of a queue that the pump fills.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::chunk::Chunk;
use super::pty_master::PtyMaster;

use crate::drain::{Gauge, PumpedStream};
use crate::spool::elastic::{
    self, Broken, Closer, ElasticConsumer, Figures, Monitor, ReadOutcome, Woken,
};
use procwright_os::fork;
use procwright_os::handle::{HandleError, InterruptibleLock, Patience};
use procwright_os::sync::Mutex;

/// Reads what the pump has put into a queue, of one output or of both.
#[derive(Debug)]
pub(crate) struct QueueReader {
    /// The turn to read, or to wait for something to read.
    turn: InterruptibleLock,
    /// Locked only by the reader that has the turn. None only in drop.
    consumer: Mutex<Option<ElasticConsumer>>,
    closer: Closer,
    /// Whether the reader is closed. Set before the closer closes, so that no lock is
    /// needed to ask.
    closed: AtomicBool,
    monitor: Monitor,
    /// The outputs that fill the queue: one, or both. With none of the pump's it is the loop of
    /// a run that fills it, which the queue itself wakes.
    flows: Vec<(Option<PumpedStream>, Gauge)>,
    /// The master of the terminal, if the output is one.
    pty_master: Option<Arc<PtyMaster>>,
    generation: u32,
}

impl QueueReader {
    pub(crate) fn new(
        consumer: ElasticConsumer,
        monitor: Monitor,
        flows: Vec<(Option<PumpedStream>, Gauge)>,
    ) -> QueueReader {
        QueueReader {
            turn: InterruptibleLock::new(),
            closer: consumer.closer(),
            consumer: Mutex::new(Some(consumer)),
            closed: AtomicBool::new(false),
            monitor,
            flows,
            pty_master: None,
            generation: fork::generation(),
        }
    }

    /// Makes it the reader of a terminal, which is hung up when this is closed.
    pub(crate) fn with_pty_master(mut self, pty_master: Arc<PtyMaster>) -> QueueReader {
        self.pty_master = Some(pty_master);
        self
    }

    /// Whether this is a fork. A fork has no pump, and any lock that another thread
    /// held at the fork is held for ever: nothing of the queue may be touched.
    fn is_forked(&self) -> bool {
        self.generation != fork::generation()
    }

    pub(crate) fn read(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<Chunk> {
        if self.is_forked() {
            return Err(fork::used_in_fork());
        }
        let _mine = self.turn.take(patience, || self.closed())?;
        // An empty buffer waits for nothing, as with a pipe.
        if buffer.is_empty() {
            return Ok(Chunk::Bytes(0));
        }
        let mut consumer = self.consumer.lock();
        let Some(consumer) = &mut *consumer else {
            return Err(HandleError::Closed.into());
        };
        loop {
            match consumer.read(buffer) {
                _ if self.closed() => return Err(HandleError::Closed.into()),
                Ok(ReadOutcome::Bytes(n)) => return Ok(Chunk::Bytes(n)),
                Ok(ReadOutcome::End) => return Ok(Chunk::End),
                Ok(ReadOutcome::Gap(n)) => return Ok(Chunk::Gap(n)),
                Ok(ReadOutcome::Empty) => self.wait(consumer, patience)?,
                Err(Broken::Producer(error)) => return Err(io::Error::other(error)),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    fn wait(
        &self,
        consumer: &mut ElasticConsumer,
        patience: Patience<'_>,
    ) -> Result<(), HandleError> {
        let deadline = patience.deadline();
        let Some(interrupt) = patience.interrupt() else {
            return match consumer.wait(deadline) {
                true => Ok(()),
                false => Err(HandleError::TimedOut),
            };
        };
        match consumer.wait_or(interrupt, deadline)? {
            Woken::Maybe => Ok(()),
            Woken::TimedOut => Err(HandleError::TimedOut),
            Woken::Interrupted => Err(HandleError::Interrupted),
        }
    }

    /// The figures of the queue; none in a fork.
    pub(crate) fn figures(&self) -> Option<Figures> {
        (!self.is_forked()).then(|| self.monitor.figures())
    }

    /// The time for which the program could not write; none in a fork, and for a terminal.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        if self.is_forked() {
            return None;
        }
        self.flows.iter().map(|(_, gauge)| gauge.blocked()).sum()
    }

    pub(crate) fn readiness(&self) -> io::Result<elastic::ReadinessFd> {
        match self.is_forked() {
            true => Err(fork::used_in_fork()),
            false => self.closer.readiness(),
        }
    }

    pub(crate) fn close(&self) -> bool {
        if self.is_forked() {
            return false;
        }
        // The flag is set before the wake-ups. A reader that queues for its turn looks at
        // it with the turn's lock held, which `wake_queue` takes after this, and one that
        // sleeps for bytes is woken by the closer. So no order with other atomics is
        // needed; SeqCst costs nothing here.
        let first = !self.closed.swap(true, Ordering::SeqCst);
        if first {
            self.closer.close();
            // The reader that has the turn may wait for a disk; those behind it are woken.
            self.turn.wake_one();
            let taken = self.flows.iter().flat_map(|(taken, _)| taken);
            taken.for_each(PumpedStream::leave);
            if let Some(pty_master) = &self.pty_master {
                pty_master.hang_up();
            }
        }
        first
    }

    fn closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_forked() || self.closed()
    }
}

impl Drop for QueueReader {
    fn drop(&mut self) {
        if self.is_forked() {
            let consumer = self.consumer.get_mut();
            std::mem::forget(consumer.take());
            return;
        }
        self.close();
    }
}
