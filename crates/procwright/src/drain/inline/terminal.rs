//! What is different where the first stream is a terminal.

use std::io;
use std::os::fd::BorrowedFd;

use super::{Inline, Need};
use crate::drain::typist::Typed;
use crate::spool::Memory;

impl<M: Memory> Inline<M> {
    /// Passes on what is typed; false if there was nothing, or no room.
    pub(super) fn type_once(&mut self) -> io::Result<bool> {
        let Some(lane) = &mut self.typist else {
            return Ok(false);
        };
        if lane.need != Need::Nothing {
            return Ok(false);
        }
        let terminal = self.lanes[0].as_ref().and_then(|lane| lane.work.fd());
        let Some(terminal) = terminal else {
            self.typist = None;
            return Ok(false);
        };
        match lane.work.step(terminal)? {
            Typed::Moved => return Ok(true),
            Typed::Nothing | Typed::Full => lane.need = Need::Ready,
            Typed::Done => self.typist = None,
        }
        Ok(false)
    }

    /// The program has exited. What it has left behind may go on, but nobody
    /// types for that, no more than a terminal's window stays for it.
    pub(crate) fn exited(&mut self) {
        self.typist = None;
        if let Some(lane) = &mut self.lanes[0] {
            lane.work.exited();
        }
    }

    /// The terminal that the first stream is, if it is one.
    pub(crate) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        let lane = self.lanes[0].as_ref()?;
        lane.work.terminal()
    }
}
