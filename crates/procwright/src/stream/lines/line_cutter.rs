//! Lines of bytes that are handed in, for callbacks.

use std::io;

use super::framing::Frame;
use super::line_buffer::{Available, Cut, LineBuffer};
use crate::stream::Chunk;

/// Cuts bytes into lines as a [`LineReader`](super::LineReader) does, without a stream: the
/// caller hands them in as they come.
#[derive(Debug)]
pub(crate) struct LineCutter {
    frame: Frame,
    buffer: LineBuffer,
    /// The line that [`next`](LineCutter::next) gave out last.
    given: Option<Cut>,
}

impl LineCutter {
    pub(crate) fn new(frame: Frame) -> LineCutter {
        let mut buffer = LineBuffer::default();
        buffer.reframe(&frame);
        LineCutter {
            frame,
            buffer,
            given: None,
        }
    }

    /// Takes a part of `bytes` in, and returns the rest. Before the next part all lines have
    /// to be taken out: then no more is held than a line of the greatest length, and a part.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub(crate) fn take_in<'b>(&mut self, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        let mut taken = 0;
        self.buffer.fill(|room| {
            taken = room.len().min(bytes.len());
            room[..taken].copy_from_slice(&bytes[..taken]);
            Ok(Chunk::Bytes(taken))
        })?;
        Ok(&bytes[taken..])
    }

    /// Says that no more bytes come: the last line may have no end.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.buffer.fill(|_| Ok(Chunk::End))
    }

    /// The next line with its separator; none until more is taken in.
    ///
    /// # Errors
    /// [`LineTooLong`](super::LineTooLong), as the framing says.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if let Some(cut) = self.given.take() {
            self.buffer.take_cut(&self.frame, cut);
        }
        match self.buffer.available(&self.frame, usize::MAX) {
            Some(Available::Line(cut)) => {
                self.given = Some(cut);
                Ok(Some(&self.buffer.bytes()[..cut.length]))
            }
            Some(Available::TooLong) => Err(self.frame.too_long()),
            Some(Available::AfterBuffer) | None => Ok(None),
        }
    }

    /// The number of bytes that were taken in and not given out.
    pub(crate) fn held(&self) -> usize {
        let given = self.given.map_or(0, |cut| cut.length);
        self.buffer.bytes().len() - given
    }
}
