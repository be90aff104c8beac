//! Looking for a line among those that are here.

use std::io;
use std::time::Instant;

use super::{LineReader, Ready, pass};
use crate::stream::{Chunk, Patience};
use crate::time::Deadline;

/// Reads of one stream before the caller looks at others, and at the clock: one
/// that never runs dry must not have him to itself.
const READS: usize = 16;

/// What was found.
#[derive(Debug)]
pub(in crate::stream) enum Seen {
    /// This line matches, or what of it is here.
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
    pub(in crate::stream) fn look_for(
        &self,
        patience: Patience<'_>,
        looked_at: &mut usize,
        matches: &mut impl FnMut(&[u8]) -> bool,
    ) -> io::Result<Seen> {
        let (_mine, mut state) = self.wait_turn(patience)?;
        let separator = &self.frame.framing.separator;
        let mut reads = 0;
        loop {
            match state.ready(&self.frame, usize::MAX) {
                Some(Ready::Line(cut)) => {
                    let line = separator.strip(&state.bytes()[..cut.length]);
                    let found = matches(line).then(|| line.to_vec());
                    state.give(&self.frame, cut);
                    *looked_at = 0;
                    if let Some(line) = found {
                        return Ok(Seen::Line(line));
                    }
                }
                Some(Ready::Then) => match pass(&mut state)? {
                    Chunk::End => return Ok(Seen::End),
                    Chunk::Gap(_) | Chunk::Bytes(_) => *looked_at = 0,
                },
                Some(Ready::TooLong) => return Err(self.frame.too_long()),
                // Nobody has seen that nothing is left: what is held may be a prompt
                // with nothing behind it that could wake anybody.
                None if reads == READS => return Ok(Seen::Busy),
                None => {
                    reads += 1;
                    let at_once = Patience::until(Deadline::at(Instant::now()));
                    let filled = state.fill(|room| self.reader.read_with(room, at_once));
                    match filled {
                        Ok(()) => {}
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        // A prompt, or a line on its way.
        let begun = state.bytes();
        let length = begun.len();
        if length > *looked_at {
            *looked_at = length;
            if matches(begun) {
                let line = begun.to_vec();
                state.take(length);
                *looked_at = 0;
                return Ok(Seen::Line(line));
            }
        }
        Ok(Seen::Nothing)
    }
}
