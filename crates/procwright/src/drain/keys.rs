//! Keys that are pressed at a terminal.

use std::io;
use std::os::fd::BorrowedFd;

use crate::terminal::Modes;

/// What was typed and has not arrived yet.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    pending: Vec<u8>,
    last: Option<u8>,
}

/// Control-D, where a terminal has no byte of its own for that.
const END: u8 = 4;

impl Keys {
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.pending.extend_from_slice(keys);
        self.pressed(keys);
    }

    /// They have arrived, in another way.
    pub(crate) fn pressed(&mut self, keys: &[u8]) {
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
