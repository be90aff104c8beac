//! The reading end of a queue that the pump fills.

use std::io;
use std::sync::{Mutex, PoisonError};

use crate::drain::Taken;
use crate::handle::{Refused, Turn};
use crate::spool::elastic::{Broken, Closer, Consumer, Figures, Item, Monitor};
use crate::time::Deadline;

#[derive(Debug)]
pub(crate) struct Spool {
    /// Whose turn it is to read, or to wait for something to read.
    turn: Turn,
    /// Taken by whoever has the turn only.
    consumer: Mutex<Consumer>,
    closer: Closer,
    monitor: Monitor,
    taken: Taken,
}

impl Spool {
    pub(crate) fn new(consumer: Consumer, monitor: Monitor, taken: Taken) -> Spool {
        Spool {
            turn: Turn::new(),
            closer: consumer.closer(),
            consumer: Mutex::new(consumer),
            monitor,
            taken,
        }
    }

    pub(crate) fn read(&self, buffer: &mut [u8], deadline: Deadline) -> io::Result<usize> {
        let Some(_mine) = self.turn.take(deadline, || self.closer.is_closed()) else {
            return Err(match self.closer.is_closed() {
                true => Refused::Closed.into(),
                false => Refused::TimedOut.into(),
            });
        };
        let mut consumer = self.consumer.lock().unwrap_or_else(PoisonError::into_inner);
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

    pub(crate) fn figures(&self) -> Figures {
        self.monitor.figures()
    }

    pub(crate) fn close(&self) -> bool {
        let first = self.closer.close();
        if first {
            self.taken.leave();
        }
        first
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closer.is_closed()
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.close();
    }
}
