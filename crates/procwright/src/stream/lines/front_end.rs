//! [`LineReader`] for front ends, whose languages have files of their own: another
//! framing for one line, characters that are here in part, bytes that go back.

use std::io;
use std::sync::atomic::Ordering;

use super::framing::Frame;
use super::line_buffer::{AfterBuffer, Available};
use super::line_reader::{Item, LineReader};
use crate::stream::{Chunk, Patience};

impl LineReader {
    /// Gives the next item, as [`try_line`](LineReader::try_line), with another framing for
    /// this line.
    ///
    /// # Errors
    /// As there.
    pub fn try_line_as<R>(
        &self,
        frame: &Frame,
        limit: usize,
        make: impl FnOnce(Item<'_>) -> R,
    ) -> io::Result<Option<R>> {
        self.check()?;
        let Some(mut buffer) = self.try_lock() else {
            return Ok(None);
        };
        buffer.reframe(frame);
        match buffer.available(frame, limit) {
            None => Ok(None),
            Some(Available::Line(cut)) => {
                let made = make(Item::Line(&buffer.bytes()[..cut.length]));
                buffer.take_cut(frame, cut);
                Ok(Some(made))
            }
            Some(Available::AfterBuffer) => Ok(match buffer.take_after()? {
                Chunk::Gap(n) => Some(make(Item::Gap(n))),
                Chunk::End => Some(make(Item::End)),
                Chunk::Bytes(_) => None,
            }),
            Some(Available::TooLong) => Err(frame.too_long()),
        }
    }

    /// Waits until [`try_line_as`](LineReader::try_line_as) has something to give.
    ///
    /// # Errors
    /// As [`await_line`](LineReader::await_line).
    ///
    /// # Blocking
    /// Until then, or until the reader is closed.
    pub fn await_line_as(
        &self,
        frame: &Frame,
        limit: usize,
        patience: Patience<'_>,
    ) -> io::Result<()> {
        let (_mine, mut buffer) = self.wait_turn(patience)?;
        buffer.reframe(frame);
        // A line that goes on and on never waits, so the patience is asked as well.
        let mut paced = patience.paced();
        while buffer.available(frame, limit).is_none() {
            paced.step()?;
            buffer.fill(|room| self.reader.read_with(room, patience))?;
        }
        Ok(())
    }

    /// Gives all bytes that are here to `make`, which may be none, and whether they
    /// are the last before a gap, a failure or the end; takes as many as it says.
    /// None if another thread is reading. Never blocks. `make` must not use this
    /// reader.
    ///
    /// Decoders need this: a character may be here in part.
    ///
    /// # Errors
    /// [`Closed`](crate::stream::Closed).
    pub fn try_held<R>(
        &self,
        make: impl FnOnce(&[u8], bool) -> (R, usize),
    ) -> io::Result<Option<R>> {
        self.check()?;
        let Some(mut buffer) = self.try_lock() else {
            return Ok(None);
        };
        buffer.skip_late_end();
        let is_last = !matches!(buffer.after, AfterBuffer::More);
        let (made, taken) = make(buffer.bytes(), is_last);
        let taken = taken.min(buffer.bytes().len());
        if taken > 0 {
            buffer.take_bytes(taken);
        }
        Ok(Some(made))
    }

    /// Takes what was read last for a line whose end has not come: if `\n` or `\r\n` is what comes
    /// next, it is passed over. Nothing if another thread is reading, which gets it. Never blocks.
    ///
    /// # Errors
    /// As [`try_held`](LineReader::try_held).
    pub fn expect_end(&self) -> io::Result<()> {
        self.check()?;
        if let Some(mut buffer) = self.try_lock() {
            buffer.expect_end();
        }
        Ok(())
    }

    /// How many bytes are here; 0 if another thread is reading. Never blocks.
    ///
    /// # Errors
    /// As [`try_held`](LineReader::try_held).
    pub fn held_bytes(&self) -> io::Result<usize> {
        let held = self.try_held(|held, _| (held.len(), 0));
        Ok(held?.unwrap_or(0))
    }

    /// Puts bytes before all that is here, so that they are read again: for a call that
    /// was interrupted when it had read a part. Never blocks: another thread that is
    /// reading has not seen them, and the next read begins with them.
    ///
    /// # Errors
    /// `OutOfMemory`; as [`try_line`](LineReader::try_line).
    pub fn put_back(&self, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        if let Some(mut buffer) = self.try_lock() {
            return buffer.put_back(bytes);
        }
        // The thread that has the buffer may sleep for as long as nothing comes, and an
        // interrupted call is to return now.
        let mut returned = self.returned();
        let mut all = Vec::new();
        all.try_reserve_exact(bytes.len() + returned.len())
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        all.extend_from_slice(bytes);
        all.extend_from_slice(&returned);
        *returned = all;
        // Release: whoever sees the flag without the lock finds the bytes.
        self.has_returned.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
#[path = "front_end_tests.rs"]
mod tests;
