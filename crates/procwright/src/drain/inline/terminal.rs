//! What is different where the first stream is a terminal.

use std::io;
use std::os::fd::BorrowedFd;

use super::{Inline, Need};
use crate::drain::typist::Typed;
use crate::spool::Memory;
use crate::time::Deadline;

impl<M: Memory> Inline<M> {
    /// Passes on what is typed; false if there was nothing, or no room.
    pub(super) fn type_once(&mut self) -> io::Result<bool> {
        let Some(lane) = &mut self.typist else {
            return Ok(false);
        };
        if lane.work.is_due() {
            lane.need = Need::Nothing;
        }
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

    /// When to look at the keyboard, whatever is ready.
    pub(super) fn next_look(&self) -> Deadline {
        let typist = self.typist.as_ref();
        typist.map_or(Deadline::NEVER, |lane| lane.work.next_look())
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
