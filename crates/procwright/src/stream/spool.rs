//! The reading end of a queue that the pump fills.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::drain::Taken;
use crate::handle::{Refused, Turn};
use crate::spool::elastic;
use crate::spool::elastic::{Broken, Closer, Consumer, Figures, Item, Monitor};
use crate::sys::fork;
use crate::time::Deadline;

#[derive(Debug)]
pub(crate) struct Spool {
    /// Whose turn it is to read, or to wait for something to read.
    turn: Turn,
    /// Taken by whoever has the turn only.
    /// None only in drop.
    consumer: Mutex<Option<Consumer>>,
    closer: Closer,
    monitor: Monitor,
    taken: Taken,
    generation: u32,
}

impl Spool {
    pub(crate) fn new(consumer: Consumer, monitor: Monitor, taken: Taken) -> Spool {
        Spool {
            turn: Turn::new(),
            closer: consumer.closer(),
            consumer: Mutex::new(Some(consumer)),
            monitor,
            taken,
            generation: fork::generation(),
        }
    }

    /// Whether this is a fork. It has no pump, and whatever lock another thread
    /// held at the fork is held for ever: nothing of the queue may be touched.
    fn is_forked(&self) -> bool {
        self.generation != fork::generation()
    }

    pub(crate) fn read(&self, buffer: &mut [u8], deadline: Deadline) -> io::Result<usize> {
        if self.is_forked() {
            return Err(fork::not_ours());
        }
        let Some(_mine) = self.turn.take(deadline, || self.closer.is_closed()) else {
            return Err(match self.closer.is_closed() {
                true => Refused::Closed.into(),
                false => Refused::TimedOut.into(),
            });
        };
        // As with a pipe: nothing to wait for.
        if buffer.is_empty() {
            return Ok(0);
        }
        let mut consumer = self.consumer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(consumer) = &mut *consumer else {
            return Err(Refused::Closed.into());
        };
        loop {
            match consumer.read(buffer) {
                _ if self.closer.is_closed() => return Err(Refused::Closed.into()),
                Ok(Item::Bytes(n)) => return Ok(n),
                Ok(Item::End) => return Ok(0),
                // Counted, and told of by `Reader::figures`.
                Ok(Item::Gap(_)) => {}
                Ok(Item::Empty) => {
                    if !consumer.wait(deadline) {
                        return Err(Refused::TimedOut.into());
                    }
                }
                Err(Broken::Producer(error)) => return Err(io::Error::other(error)),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    pub(crate) fn readiness(&self) -> io::Result<elastic::Readiness> {
        let consumer = self.consumer.lock().unwrap_or_else(PoisonError::into_inner);
        match &*consumer {
            Some(consumer) => consumer.readiness(),
            None => Err(Refused::Closed.into()),
        }
    }

    /// None in a fork.
    pub(crate) fn figures(&self) -> Option<Figures> {
        (!self.is_forked()).then(|| self.monitor.figures())
    }

    pub(crate) fn close(&self) -> bool {
        if self.is_forked() {
            return false;
        }
        let first = self.closer.close();
        if first {
            self.taken.leave();
        }
        first
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_forked() || self.closer.is_closed()
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
