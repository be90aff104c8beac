//! What is read, handed on to those who want a copy.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::spool::fifo::{Fifo, Item};

/// A piece of a stream, as it was read in one go.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// 0 for stdout, 1 for stderr.
    pub(crate) stream: usize,
    pub(crate) read_at: SystemTime,
    pub(crate) bytes: Bytes,
}

impl Item for Chunk {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn stream(&self) -> usize {
        self.stream
    }
}

/// The queues that get copies of one stream. Some may get the other one, too.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    pub(crate) stream: usize,
    pub(crate) queues: Vec<Arc<Fifo<Chunk>>>,
}

impl Copies {
    /// Whether all of them take another piece. After "no" a wake-up rings.
    pub(super) fn have_room(&self) -> bool {
        self.queues.iter().all(|queue| queue.has_room())
    }

    /// Hands on what has just been read. The clock is looked at here and not by
    /// those who write the time: they may be late.
    pub(super) fn offer(&self, bytes: &[u8]) {
        let chunk = Chunk {
            stream: self.stream,
            read_at: SystemTime::now(),
            bytes: Bytes::copy_from_slice(bytes),
        };
        for queue in &self.queues {
            queue.offer(chunk.clone());
        }
    }

    pub(super) fn end(&self) {
        for queue in &self.queues {
            queue.end();
        }
    }
}
