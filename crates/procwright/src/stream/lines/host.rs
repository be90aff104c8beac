//! What front ends need of a [`LineReader`] whose hosts have files of their own:
//! another framing for one line, characters that are here in part, bytes that go
//! back.

use std::io;
use std::sync::atomic::Ordering;

use super::state::Then;
use super::{Chunk, Frame, Item, LineReader, Patience, Ready, pass};

impl LineReader {
    /// As [`try_line`](LineReader::try_line), with another framing for this line.
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
        let Some(mut state) = self.try_lock() else {
            return Ok(None);
        };
        state.reframe(frame);
        match state.ready(frame, limit) {
            None => Ok(None),
            Some(Ready::Line(cut)) => {
                let made = make(Item::Line(&state.bytes()[..cut.length]));
                state.give(frame, cut);
                Ok(Some(made))
            }
            Some(Ready::Then) => Ok(match pass(&mut state)? {
                Chunk::Gap(n) => Some(make(Item::Gap(n))),
                Chunk::End => Some(make(Item::End)),
                Chunk::Bytes(_) => None,
            }),
            Some(Ready::TooLong) => Err(frame.too_long()),
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
        let (_mine, mut state) = self.wait_turn(patience)?;
        state.reframe(frame);
        // A line that goes on and on need not wait.
        let mut paced = patience.paced();
        while state.ready(frame, limit).is_none() {
            paced.step()?;
            state.fill(|room| self.reader.read_with(room, patience))?;
        }
        Ok(())
    }

    /// Gives all bytes that are here to `make`, which may be none, and whether they
    /// are the last before a gap, a failure or the end; takes as many as it says.
    /// None if another thread is at them. Never blocks. `make` must not use this
    /// reader.
    ///
    /// For who decodes: a character may be here in part.
    ///
    /// # Errors
    /// [`Closed`](crate::stream::Closed).
    pub fn try_held<R>(
        &self,
        make: impl FnOnce(&[u8], bool) -> (R, usize),
    ) -> io::Result<Option<R>> {
        self.check()?;
        let Some(mut state) = self.try_lock() else {
            return Ok(None);
        };
        state.skip();
        let is_last = !matches!(state.then, Then::More);
        let (made, taken) = make(state.bytes(), is_last);
        let taken = taken.min(state.bytes().len());
        if taken > 0 {
            state.take(taken);
        }
        Ok(Some(made))
    }

    /// Puts bytes before all that is here, so that they are read again: for who was
    /// interrupted when he had read a part. Never blocks: another thread that is reading
    /// has not seen them, and the next read begins with them.
    ///
    /// # Errors
    /// `OutOfMemory`; as [`try_line`](LineReader::try_line).
    pub fn put_back(&self, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        if let Some(mut state) = self.try_lock() {
            return state.put_back(bytes);
        }
        // Not to be waited for: it may sleep for as long as nothing comes, and who was
        // interrupted is to leave.
        let mut returned = self.returned();
        let mut all = Vec::new();
        all.try_reserve_exact(bytes.len() + returned.len())
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        all.extend_from_slice(bytes);
        all.extend_from_slice(&returned);
        *returned = all;
        self.has_returned.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
