//! Keys for the terminal of a program.

use std::io;
use std::os::fd::BorrowedFd;

use crate::terminal::Modes;

/// Keys that were pressed, and have not been written to the terminal yet.
#[derive(Debug, Default)]
pub(crate) struct TerminalInput {
    pending: Vec<u8>,
    last: Option<u8>,
}

/// Control-D, for a terminal that has no byte of its own for the end of input.
const END: u8 = 4;

impl TerminalInput {
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.pending.extend_from_slice(keys);
        self.note_written(keys);
    }

    /// Notes keys that were written to the terminal in another way.
    pub(crate) fn note_written(&mut self, keys: &[u8]) {
        self.last = keys.last().copied().or(self.last);
    }

    /// Presses the key that means the end of the input at the terminal whose
    /// master this is: twice after a line that is not ended, since the first only
    /// hands that to the program. A program that edits lines itself takes that key
    /// for the same, mostly, so it is pressed there as well, once.
    pub(crate) fn end(&mut self, terminal: BorrowedFd<'_>) -> io::Result<()> {
        let modes = Modes::of(terminal)?;
        let end = match modes.end_of_input() {
            0 => END,
            key => key,
        };
        let is_between = |last| [b'\n', b'\r', end].contains(&last);
        if modes.edits_lines() && !self.last.is_none_or(is_between) {
            self.press(&[end]);
        }
        self.press(&[end]);
        Ok(())
    }

    /// Writes once.
    ///
    /// # Errors
    /// Those of `write(2)`.
    pub(crate) fn write(&mut self, terminal: BorrowedFd<'_>) -> io::Result<()> {
        if !self.pending.is_empty() {
            let n = rustix::io::write(terminal, &self.pending)?;
            self.pending.drain(..n);
        }
        Ok(())
    }
}
