//! The keyboard of a run, where the first stream is a terminal.

use std::io;
use std::os::fd::BorrowedFd;

use super::driven::{Driven, Need};
use crate::drain::keyboard_relay::{KeyboardRelay, KeyboardStep};
use procwright_os::poll::Flags;
use procwright_os::time::Deadline;

/// A [`KeyboardRelay`]; none where no keyboard is passed on, or not any more.
#[derive(Debug)]
pub(super) struct DrivenKeyboard(Option<Driven<KeyboardRelay>>);

impl DrivenKeyboard {
    pub(super) fn new(relay: Option<KeyboardRelay>) -> DrivenKeyboard {
        DrivenKeyboard(relay.map(|relay| Driven::new(relay, Need::Nothing)))
    }

    /// Passes on what is typed; false if there was nothing, or no room. Without the
    /// program's terminal nothing is passed on any more.
    pub(super) fn step<'a>(
        &mut self,
        terminal: impl FnOnce() -> Option<BorrowedFd<'a>>,
    ) -> io::Result<bool> {
        let Some(relay) = &mut self.0 else {
            return Ok(false);
        };
        if relay.machine.is_due() {
            relay.need = Need::Nothing;
        }
        if relay.need != Need::Nothing {
            return Ok(false);
        }
        let Some(terminal) = terminal() else {
            self.close();
            return Ok(false);
        };
        match relay.machine.step(terminal)? {
            KeyboardStep::Moved => return Ok(true),
            KeyboardStep::Nothing | KeyboardStep::Full => relay.need = Need::Ready,
            KeyboardStep::Done => self.close(),
        }
        Ok(false)
    }

    /// The descriptor that has to be ready before the next step.
    pub(super) fn awaits<'a>(
        &'a self,
        terminal: impl FnOnce() -> Option<BorrowedFd<'a>>,
    ) -> Option<(BorrowedFd<'a>, Flags)> {
        self.0.as_ref()?.machine.awaits(terminal()?)
    }

    /// Notes that this descriptor is ready.
    pub(super) fn set_ready(&mut self) {
        if let Some(relay) = &mut self.0 {
            relay.need = Need::Nothing;
        }
    }

    /// The time of the next look at the keyboard, whatever is ready.
    pub(super) fn next_look(&self) -> Deadline {
        let relay = self.0.as_ref();
        relay.map_or(Deadline::NEVER, |relay| relay.machine.next_look())
    }

    pub(super) fn close(&mut self) {
        self.0 = None;
    }
}
