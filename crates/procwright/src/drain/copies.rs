//! Copies of what is read, for consumers.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use crate::spool::fifo::{Fifo, FifoItem};
use crate::std_stream::StdStream;

/// Bytes of a stream that came with one read.
#[derive(Clone, Debug)]
pub(crate) struct OutputChunk {
    pub(crate) stream: StdStream,
    pub(crate) read_at: SystemTime,
    pub(crate) bytes: Bytes,
}

impl FifoItem for OutputChunk {
    fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn stream(&self) -> StdStream {
        self.stream
    }
}

/// The queues that get copies of one stream. A queue may get the other one, too.
#[derive(Debug)]
pub(crate) struct Copies {
    pub(crate) stream: StdStream,
    pub(crate) queues: Vec<Arc<Fifo<OutputChunk>>>,
}

impl Copies {
    /// True if all of them take another chunk. After "no" a wake-up rings.
    pub(super) fn have_room(&self) -> bool {
        self.queues.iter().all(|queue| queue.has_room())
    }

    /// Hands on what has just been read. The clock is looked at here and not by the
    /// consumers, which may be late.
    pub(super) fn offer(&self, bytes: &[u8]) {
        let chunk = OutputChunk {
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
