//! Bytes that were read and not given out yet, and where they are cut into lines.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::framing::{Frame, Framing, TooLong};
use crate::stream::{Chunk, Closed};

/// The size of a buffer when much comes. A line that is longer makes it grow.
pub(in crate::stream) const BUFFER: usize = 128 * 1024;

/// The size of a buffer for a stream that says little: there may be thousands.
const SMALL: usize = 8 * 1024;

/// Bytes of a stream between its reads and its lines.
#[derive(Debug, Default)]
pub(in crate::stream) struct LineBuffer {
    buffer: Vec<u8>,
    /// The part of the buffer that was not given out yet. All offsets below count from
    /// its start.
    held: Range<usize>,
    /// The framing for which the fields below hold.
    framing: Option<Framing>,
    /// The offset before which no separator begins.
    searched: usize,
    /// Start and end of the first separator, so that a line that is given out in many
    /// pieces is not searched for each.
    found: Option<(usize, usize)>,
    /// Bytes of the current line that were given out already.
    given: usize,
    /// Bytes that are left of a separator that was cut.
    rest: usize,
    /// What of a line that was given out may come yet.
    late: LateEnd,
    /// Whether more came than fits a small buffer.
    flows: bool,
    /// Offset of `held` in the stream. Written under the lock, read without it.
    pub(super) position: Arc<AtomicU64>,
    /// The state of the stream behind the buffer.
    pub(in crate::stream) after: AfterBuffer,
}

/// The end of a line that was given out before its end had come: passed over if it is what comes
/// next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LateEnd {
    /// The line was given out with its end.
    #[default]
    None,
    /// The `\n` of a line that was given out with its `\r`.
    Newline,
    /// `\n` or `\r\n`, of a line that was given out without.
    Whole,
}

/// The state of a stream behind the bytes that were read of it.
#[derive(Debug, Default)]
pub(in crate::stream) enum AfterBuffer {
    /// More bytes may come.
    #[default]
    More,
    /// The number of bytes that were dropped here.
    Gap(u64),
    /// An error that is told once; then there may be more.
    Failed(io::Error),
    End,
}

impl AfterBuffer {
    fn is_more(&self) -> bool {
        matches!(self, AfterBuffer::More)
    }
}

/// The next item that can be given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stream) enum Available {
    /// A part of the buffer.
    Line(Cut),
    /// The state behind the buffer, which is empty.
    AfterBuffer,
    /// A line that is longer than it may be.
    TooLong,
}

/// A part of the buffer that is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stream) struct Cut {
    pub(in crate::stream) length: usize,
    end: CutEnd,
}

/// Where in a line a cut ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutEnd {
    /// At the end of the line, or of a piece of one that is too long.
    Whole,
    /// At the limit of the caller.
    Short,
    /// Within a separator, of which so many bytes are left.
    Separator(usize),
}

impl LineBuffer {
    /// Takes the state behind the buffer, which is empty. The end stays.
    pub(in crate::stream) fn take_after(&mut self) -> io::Result<Chunk> {
        match std::mem::take(&mut self.after) {
            AfterBuffer::More => Ok(Chunk::Bytes(0)),
            AfterBuffer::Gap(n) => {
                self.advance_position(n);
                Ok(Chunk::Gap(n))
            }
            AfterBuffer::Failed(error) => Err(error),
            AfterBuffer::End => {
                self.after = AfterBuffer::End;
                Ok(Chunk::End)
            }
        }
    }

    pub(in crate::stream) fn bytes(&self) -> &[u8] {
        &self.buffer[self.held.clone()]
    }

    /// Forgets all offsets that hold for another framing only.
    pub(in crate::stream) fn reframe(&mut self, frame: &Frame) {
        if self.framing.as_ref() != Some(&frame.framing) {
            self.framing = Some(frame.framing.clone());
            (self.searched, self.found) = (0, None);
            (self.given, self.rest) = (0, 0);
        }
    }

    /// Puts bytes in front.
    pub(super) fn put_back(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.held.start >= bytes.len() {
            let start = self.held.start - bytes.len();
            self.buffer[start..self.held.start].copy_from_slice(bytes);
            self.held.start = start;
        } else {
            let mut buffer = Vec::new();
            let size = bytes.len() + self.held.len();
            let reserved = buffer.try_reserve_exact(size);
            reserved.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            buffer.extend_from_slice(bytes);
            buffer.extend_from_slice(self.bytes());
            self.buffer = buffer;
            self.held = 0..size;
        }
        (self.searched, self.found) = (0, None);
        (self.given, self.rest) = (0, 0);
        self.advance_position((bytes.len() as u64).wrapping_neg());
        Ok(())
    }

    /// The item that can be given out now; none if more has to be read first.
    pub(in crate::stream) fn available(
        &mut self,
        frame: &Frame,
        limit: usize,
    ) -> Option<Available> {
        self.skip_late_end();
        let line = |length, end| Some(Available::Line(Cut { length, end }));
        if limit == 0 {
            return line(0, CutEnd::Short);
        }
        if self.rest > 0 {
            let n = self.rest.min(limit);
            return line(n, self.left_of_separator(n));
        }
        let length = self.held.len();
        let found = self.search(frame);
        let splits = frame.framing.too_long == TooLong::Split;
        let mut most = match frame.framing.max_length {
            Some(most) => most - self.given.min(most),
            None => usize::MAX,
        };
        let is_end_only = matches!(found, Some((0, end)) if end > most);
        if splits && (most == 0 || is_end_only) {
            // The piece is full, or has no room for the separator.
            self.given = 0;
            most = frame.framing.max_length.unwrap_or(usize::MAX);
        }
        let cut = most.min(limit);
        let piece = match cut == most {
            true => CutEnd::Whole,
            false => CutEnd::Short,
        };
        if let Some((start, end)) = found {
            return match end {
                _ if end <= cut => line(end, CutEnd::Whole),
                // The `\n` is left out, as one that comes later is.
                _ if frame.takes_returns() && end - start == 2 && start < cut => {
                    line(start + 1, CutEnd::Whole)
                }
                _ if end > most && !splits => Some(Available::TooLong),
                _ if start >= cut => line(cut, piece),
                _ if start > 0 => line(start, piece),
                _ => line(cut, CutEnd::Separator(end - cut)),
            };
        }
        if length > most && !splits {
            return Some(Available::TooLong);
        }
        if length >= cut && length > 0 {
            let partial = frame.partial_separator(self.bytes());
            let may_end = partial > 0 && length - partial < cut;
            let may_fit = length == most && !splits;
            if !(self.after.is_more() && (may_end || may_fit)) {
                return line(cut, piece);
            }
        }
        match self.after {
            AfterBuffer::More => None,
            _ if length > 0 => line(length, CutEnd::Whole),
            _ => Some(Available::AfterBuffer),
        }
    }

    fn left_of_separator(&self, n: usize) -> CutEnd {
        match self.rest - n {
            0 => CutEnd::Whole,
            left => CutEnd::Separator(left),
        }
    }

    fn search(&mut self, frame: &Frame) -> Option<(usize, usize)> {
        if self.found.is_none() {
            let bytes = &self.buffer[self.held.clone()];
            self.found = frame.find(bytes, self.searched);
            if self.found.is_none() {
                self.searched = frame.end_of_search(bytes);
            }
        }
        self.found
    }

    /// Takes out a cut that [`available`](LineBuffer::available) has offered.
    pub(in crate::stream) fn take_cut(&mut self, frame: &Frame, cut: Cut) {
        let Some(last) = cut.length.checked_sub(1) else {
            return;
        };
        let is_return = frame.takes_returns() && self.bytes()[last] == b'\r';
        match cut.end {
            CutEnd::Whole => (self.given, self.rest) = (0, 0),
            CutEnd::Short => self.given += cut.length,
            CutEnd::Separator(left) => self.rest = left,
        }
        self.consume(cut.length);
        if cut.end == CutEnd::Whole && is_return {
            self.late = LateEnd::Newline;
        }
    }

    /// Takes out bytes that were not searched for lines.
    pub(in crate::stream) fn take_bytes(&mut self, n: usize) {
        self.rest = self.rest.saturating_sub(n);
        self.given = 0;
        self.consume(n);
    }

    /// Notes that so many bytes were given out or dropped.
    pub(super) fn advance_position(&mut self, n: u64) {
        // Relaxed load and store in place of an atomic addition, which costs more: all
        // writers hold the lock of this buffer, so none comes between the two. Readers
        // take the number by itself.
        let position = self.position.load(Ordering::Relaxed);
        self.position
            .store(position.wrapping_add(n), Ordering::Relaxed);
    }

    /// Notes that a line was given out as far as it had come: an end of it that comes next is
    /// passed over.
    pub(super) fn expect_end(&mut self) {
        self.late = LateEnd::Whole;
    }

    fn consume(&mut self, n: usize) {
        // What comes next is behind these.
        self.late = LateEnd::None;
        self.held.start += n;
        self.advance_position(n as u64);
        self.searched = self.searched.saturating_sub(n);
        self.found = self
            .found
            .filter(|(start, _)| n <= *start)
            .map(|(start, end)| (start - n, end - n));
    }

    /// Passes over the end of a line that was given out before it.
    pub(in crate::stream) fn skip_late_end(&mut self) {
        let late = std::mem::take(&mut self.late);
        match (late, self.bytes()) {
            (LateEnd::None, _) => {}
            (_, [b'\n', ..]) => self.consume(1),
            (LateEnd::Whole, [b'\r', b'\n', ..]) => self.consume(2),
            (_, []) | (LateEnd::Whole, [b'\r']) if self.after.is_more() => self.late = late,
            _ => {}
        }
    }

    /// Whether bytes have to be read before any can be given out, lines or not.
    pub(in crate::stream) fn is_empty(&mut self) -> bool {
        self.skip_late_end();
        self.held.is_empty() && self.after.is_more()
    }

    /// Whether a read may go straight to the caller, past the buffer.
    pub(in crate::stream) fn can_be_bypassed(&self) -> bool {
        self.held.is_empty() && self.after.is_more() && self.late == LateEnd::None
    }

    /// Reads more, once.
    ///
    /// # Errors
    /// `OutOfMemory`, and errors that pass: a deadline, an interrupt, a close. All
    /// others are kept and come in their place, behind the bytes that were read before.
    pub(in crate::stream) fn fill(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<Chunk>,
    ) -> io::Result<()> {
        if !self.after.is_more() {
            return Ok(());
        }
        self.make_room()?;
        let room = self.buffer.len() - self.held.end;
        match read(&mut self.buffer[self.held.end..]) {
            Ok(Chunk::Bytes(n)) => {
                self.held.end += n;
                self.flows |= n == room;
            }
            Ok(Chunk::Gap(n)) => self.after = AfterBuffer::Gap(n),
            Ok(Chunk::End) => self.after = AfterBuffer::End,
            Err(error) if is_transient(&error) => return Err(error),
            Err(error) => self.after = AfterBuffer::Failed(error),
        }
        Ok(())
    }

    /// Frees a quarter of a buffer at least.
    fn make_room(&mut self) -> io::Result<()> {
        let least = match self.flows {
            true => BUFFER,
            false => SMALL,
        };
        let held = self.held.len();
        if held == 0 {
            self.held = 0..0;
        }
        // The memory of a long line is given back once the line is gone.
        let is_large = self.buffer.len() > 8 * BUFFER && held <= BUFFER;
        if self.buffer.len() - self.held.end >= least / 4 && !is_large {
            return Ok(());
        }
        if self.buffer.len() >= least && held <= self.buffer.len() / 2 && !is_large {
            self.buffer.copy_within(self.held.clone(), 0);
        } else {
            // Twice the held bytes at least: then each is copied twice at most. No more than
            // the longest line, and a read, is ever held.
            let longest = self.framing.as_ref().and_then(|framing| framing.max_length);
            let size = match longest {
                Some(longest) if held < longest => (2 * held).min(longest.saturating_add(least)),
                _ => 2 * held,
            };
            let size = size.max(least);
            let mut buffer = Vec::new();
            let reserved = buffer.try_reserve_exact(size);
            reserved.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            buffer.extend_from_slice(self.bytes());
            buffer.resize(size, 0);
            self.buffer = buffer;
        }
        self.held = 0..held;
        Ok(())
    }

    #[cfg(test)]
    pub(in crate::stream) fn memory(&self) -> usize {
        self.buffer.capacity()
    }
}

/// Whether the error has no place in the stream: the call that failed so may succeed the next
/// time, or the stream was cut there by a stop, and then the bytes before it are no last line.
pub(in crate::stream) fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, TimedOut, Unsupported};
    let kinds = [Interrupted, OutOfMemory, TimedOut, Unsupported];
    let is_cut = error.raw_os_error() == Some(Errno::CANCELED.raw_os_error());
    Closed::is(error) || is_cut || kinds.contains(&error.kind())
}
