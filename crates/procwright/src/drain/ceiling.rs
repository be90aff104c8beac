//! The most that a stream may bring.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::scratch::Scratch;

/// The most bytes of a stream that go anywhere. What comes beyond is read, or the program would
/// be stuck in its write when it is to answer the stop that follows, and is counted.
#[derive(Debug)]
pub(crate) struct Ceiling {
    most: u64,
    excess: Excess,
    scratch: Scratch,
}

/// How many bytes came beyond a [`Ceiling`].
#[derive(Clone, Debug)]
pub(crate) struct Excess {
    most: u64,
    bytes: Arc<AtomicU64>,
}

impl Excess {
    fn beyond(most: u64) -> Excess {
        Excess {
            most,
            bytes: Arc::default(),
        }
    }

    /// The limit, if any came beyond it.
    pub(crate) fn passed(&self) -> Option<u64> {
        (self.bytes() > 0).then_some(self.most)
    }

    pub(crate) fn bytes(&self) -> u64 {
        // Relaxed, here and below: a figure. No memory is reached by way of it.
        self.bytes.load(Ordering::Relaxed)
    }

    fn add(&self, n: usize) {
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
    }
}

impl Ceiling {
    pub(crate) fn new(most: u64) -> Ceiling {
        Ceiling {
            most,
            excess: Excess::beyond(most),
            scratch: Scratch::default(),
        }
    }

    /// How many bytes came beyond it.
    pub(super) fn excess(&self) -> u64 {
        self.excess.bytes()
    }

    /// How many these are, for those who do not read.
    pub(crate) fn view(&self) -> Excess {
        self.excess.clone()
    }

    /// How much of a stream of which so many bytes were read may still go anywhere.
    pub(super) fn room(&self, bytes: u64) -> u64 {
        self.most.saturating_sub(bytes)
    }

    /// Reads once what is too much.
    pub(super) fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        let n = self.scratch.read_from(fd, max)?;
        self.excess.add(n);
        Ok(n)
    }

    /// The place in the stream from which on it is cut, if it is.
    pub(super) fn cut_at(&self) -> Option<u64> {
        (self.excess() > 0).then_some(self.most)
    }
}
