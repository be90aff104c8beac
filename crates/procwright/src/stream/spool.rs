//! The reading end of a queue that the pump fills.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Chunk;
use super::line::Line;
use std::time::Duration;

use crate::drain::{Gauge, Taken};
use crate::handle::{Patience, Refused, Turn};
use crate::spool::elastic::{self, Broken, Closer, Consumer, Figures, Item, Monitor, Woken};
use crate::sys::fork;

#[derive(Debug)]
pub(crate) struct Spool {
    /// Whose turn it is to read, or to wait for something to read.
    turn: Turn,
    /// Taken by whoever has the turn only.
    /// None only in drop.
    consumer: Mutex<Option<Consumer>>,
    closer: Closer,
    /// Set before the closer closes, so that asking needs no lock.
    closed: AtomicBool,
    monitor: Monitor,
    /// The streams that it is filled from: one, or both.
    flows: Vec<(Taken, Gauge)>,
    /// If it is of a terminal.
    line: Option<Arc<Line>>,
    generation: u32,
}

impl Spool {
    pub(crate) fn new(consumer: Consumer, monitor: Monitor, flows: Vec<(Taken, Gauge)>) -> Spool {
        Spool {
            turn: Turn::new(),
            closer: consumer.closer(),
            consumer: Mutex::new(Some(consumer)),
            closed: AtomicBool::new(false),
            monitor,
            flows,
            line: None,
            generation: fork::generation(),
        }
    }

    /// It is of a terminal, which is hung up when this is closed.
    pub(crate) fn with_line(mut self, line: Arc<Line>) -> Spool {
        self.line = Some(line);
        self
    }

    /// Whether this is a fork. It has no pump, and whatever lock another thread
    /// held at the fork is held for ever: nothing of the queue may be touched.
    fn is_forked(&self) -> bool {
        self.generation != fork::generation()
    }

    pub(crate) fn read(&self, buffer: &mut [u8], patience: Patience<'_>) -> io::Result<Chunk> {
        if self.is_forked() {
            return Err(fork::not_ours());
        }
        let _mine = self.turn.take(patience, || self.closed())?;
        // As with a pipe: nothing to wait for.
        if buffer.is_empty() {
            return Ok(Chunk::Bytes(0));
        }
        let mut consumer = self.consumer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(consumer) = &mut *consumer else {
            return Err(Refused::Closed.into());
        };
        loop {
            match consumer.read(buffer) {
                _ if self.closed() => return Err(Refused::Closed.into()),
                Ok(Item::Bytes(n)) => return Ok(Chunk::Bytes(n)),
                Ok(Item::End) => return Ok(Chunk::End),
                Ok(Item::Gap(n)) => return Ok(Chunk::Gap(n)),
                Ok(Item::Empty) => self.wait(consumer, patience)?,
                Err(Broken::Producer(error)) => return Err(io::Error::other(error)),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    fn wait(&self, consumer: &mut Consumer, patience: Patience<'_>) -> Result<(), Refused> {
        let deadline = patience.deadline();
        let Some(interrupt) = patience.interrupt() else {
            return match consumer.wait(deadline) {
                true => Ok(()),
                false => Err(Refused::TimedOut),
            };
        };
        match consumer.wait_or(interrupt, deadline)? {
            Woken::Maybe => Ok(()),
            Woken::TimedOut => Err(Refused::TimedOut),
            Woken::Interrupted => Err(Refused::Interrupted),
        }
    }

    /// None in a fork.
    pub(crate) fn figures(&self) -> Option<Figures> {
        (!self.is_forked()).then(|| self.monitor.figures())
    }

    /// None in a fork, and of a terminal.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        if self.is_forked() {
            return None;
        }
        self.flows.iter().map(|(_, gauge)| gauge.blocked()).sum()
    }

    pub(crate) fn readiness(&self) -> io::Result<elastic::Readiness> {
        match self.is_forked() {
            true => Err(fork::not_ours()),
            false => self.closer.readiness(),
        }
    }

    pub(crate) fn close(&self) -> bool {
        if self.is_forked() {
            return false;
        }
        let first = !self.closed.swap(true, Ordering::SeqCst);
        if first {
            self.closer.close();
            // Whose turn it is may be at a disk that takes its time.
            self.turn.wake_queue();
            self.flows.iter().for_each(|(taken, _)| taken.leave());
            if let Some(line) = &self.line {
                line.hang_up();
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

impl Drop for Spool {
    fn drop(&mut self) {
        if self.is_forked() {
            let consumer = self.consumer.get_mut();
            std::mem::forget(consumer.unwrap_or_else(PoisonError::into_inner).take());
            return;
        }
        self.close();
    }
}
