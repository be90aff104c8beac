//! When a run finds out why its program does not end.

use std::time::Instant;

use super::run_state::Run;
use crate::quote::quote;
use crate::run::event::Event;
use crate::spool::Memory;
use procwright_os::time::Deadline;

impl<M: Memory> Run<'_, M> {
    /// The time at which the next examination begins.
    pub(super) fn next_look(&self) -> Deadline {
        if self.program.has_exited() {
            return Deadline::NEVER;
        }
        self.looks.next([
            (self.deadline, self.spec.timeout),
            (self.idle_deadline(), self.spec.idle_timeout),
        ])
    }

    /// Begins an examination if it is time for that, and tells of one that the caller wanted.
    pub(super) fn look(&mut self, now: Instant) {
        if self.program.has_exited() {
            return;
        }
        if let Some(diagnosis) = self.looks.wanted() {
            self.tell(&Event::Explained {
                command: quote(&self.spec.argv),
                after: self.looks.wanted_after.unwrap_or_default(),
                diagnosis,
            });
        }
        if self.next_look().reached(now) {
            let wake = self.streams.wake();
            let pid = self.program.running.pid();
            self.looks.begin(pid, wake, now);
        }
    }
}
