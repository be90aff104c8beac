//! The search for a line among those that are here already.

use std::io;
use std::time::Instant;

use super::line_buffer::Available;
use super::line_reader::LineReader;
use crate::stream::{Chunk, Patience};
use procwright_os::time::Deadline;

/// Reads of one stream before the caller looks at others, and at the clock: a stream
/// that never runs dry must not keep the caller for itself.
const READS: usize = 16;

/// The outcome of a search.
#[derive(Debug)]
pub(in crate::stream) enum LineSearch {
    /// The line that matches, or what of it is here.
    Line(Vec<u8>),
    /// No line that is here, and more may come.
    Nothing,
    /// No line so far, and more may be here already.
    Busy,
    /// No line, and no more will come.
    End,
}

impl LineReader {
    /// Reads what is there without waiting for more, to the first line that
    /// matches. A line that is not complete is looked at if it is longer than
    /// `looked_at`. Waits, if at all, for another thread that is reading.
    pub(in crate::stream) fn find_line(
        &self,
        patience: Patience<'_>,
        looked_at: &mut usize,
        matches: &mut impl FnMut(&[u8]) -> bool,
    ) -> io::Result<LineSearch> {
        let (_mine, mut buffer) = self.wait_turn(patience)?;
        let separator = &self.frame.framing.separator;
        let mut reads = 0;
        loop {
            match buffer.available(&self.frame, usize::MAX) {
                Some(Available::Line(cut)) => {
                    let line = separator.strip(&buffer.bytes()[..cut.length]);
                    let found = matches(line).then(|| line.to_vec());
                    buffer.take_cut(&self.frame, cut);
                    *looked_at = 0;
                    if let Some(line) = found {
                        return Ok(LineSearch::Line(line));
                    }
                }
                Some(Available::AfterBuffer) => match buffer.take_after()? {
                    Chunk::End => return Ok(LineSearch::End),
                    Chunk::Gap(_) | Chunk::Bytes(_) => *looked_at = 0,
                },
                Some(Available::TooLong) => return Err(self.frame.too_long()),
                // No read has said yet that the stream is empty. The bytes that are held
                // may be a prompt with nothing behind it that would wake the caller.
                None if reads == READS => return Ok(LineSearch::Busy),
                None => {
                    reads += 1;
                    let at_once = Patience::until(Deadline::at(Instant::now()));
                    let filled = buffer.fill(|room| self.reader.read_with(room, at_once));
                    match filled {
                        Ok(()) => {}
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        // The rest is a prompt, or the beginning of a line.
        let begun = buffer.bytes();
        let length = begun.len();
        if length > *looked_at {
            *looked_at = length;
            if matches(begun) {
                let line = begun.to_vec();
                buffer.take_bytes(length);
                if self.frame.ends_with_newlines() {
                    buffer.expect_end();
                }
                *looked_at = 0;
                return Ok(LineSearch::Line(line));
            }
        }
        Ok(LineSearch::Nothing)
    }
}
