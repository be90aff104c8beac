//! Outputs that are read to their end, and where their bytes go.

use std::io;

use crate::stream::{Chunk, Closed, Patience, Reader, Readiness};

/// An output of a child that a [`Communication`](crate::Communication) reads to its end,
/// with the memory that it is read into. For front ends whose languages have memory of
/// their own; [`CapturedOutput`] is that of Rust.
pub trait OutputCapture {
    /// Reads once, waiting at most as long as the patience says; false at the end of the
    /// output.
    ///
    /// # Errors
    /// `TimedOut` if there is nothing to read; those of the read. What was read before
    /// stays in any case.
    fn read_some(&mut self, patience: Patience<'_>) -> io::Result<bool>;

    /// The readiness of the output that [`read_some`](OutputCapture::read_some) reads.
    ///
    /// # Errors
    /// As [`Reader::readiness`].
    fn readiness(&self) -> io::Result<Readiness>;
}

/// The bytes that were read of an output, in a `Vec`.
#[derive(Debug)]
pub struct CapturedOutput {
    /// The reader, none once its end was read.
    reader: Option<Reader>,
    data: Vec<u8>,
    dropped: u64,
    /// Memory to read into: that of a `Vec` must be initialised before it is read into,
    /// which costs as much as the copy.
    buffer: Vec<u8>,
}

/// The largest single read.
const READ: usize = 128 * 1024;

impl CapturedOutput {
    pub(crate) fn new(reader: Reader) -> CapturedOutput {
        CapturedOutput {
            reader: Some(reader),
            data: Vec::new(),
            dropped: 0,
            buffer: Vec::new(),
        }
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn into_data(self) -> Vec<u8> {
        self.data
    }
}

impl OutputCapture for CapturedOutput {
    fn read_some(&mut self, patience: Patience<'_>) -> io::Result<bool> {
        let Some(reader) = &self.reader else {
            return Ok(false);
        };
        if self.buffer.is_empty() {
            // Cleared by the system page by page, so that a short output costs one.
            self.buffer = vec![0; READ];
        }
        match reader.read_with(&mut self.buffer, patience)? {
            Chunk::Bytes(n) => self.data.extend_from_slice(&self.buffer[..n]),
            Chunk::Gap(n) => self.dropped += n,
            Chunk::End => {
                self.dropped = reader.figures().map_or(0, |figures| figures.dropped_bytes);
                self.reader = None;
                self.buffer = Vec::new();
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn readiness(&self) -> io::Result<Readiness> {
        match &self.reader {
            Some(reader) => reader.readiness(),
            None => Err(io::Error::other(Closed)),
        }
    }
}
