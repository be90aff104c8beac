//! When a run finds out why its program does not end, and whether it waits for input.

use std::time::Instant;

use super::run_state::Run;
use crate::quote::quote;
use crate::run::event::Event;
use crate::run::output::Reason;
use crate::spool::Memory;
use procwright_explain::Diagnosis;
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
        let pid = self.program.running.pid();
        if let Some(diagnosis) = self.looks.wanted(pid) {
            self.tell(&Event::Explained {
                command: quote(&self.spec.argv),
                after: self.looks.wanted_after.unwrap_or_default(),
                diagnosis,
            });
        }
        if self.next_look().reached(now) {
            let ring = self.streams.wake().map(|wake| move || wake.ring());
            self.looks.begin(vec![pid], ring, now);
        }
    }

    /// The time at which the program is looked at whether it waits for input.
    pub(super) fn next_prompt_look(&self) -> Deadline {
        match &self.prompts {
            Some(prompts) if !self.program.has_exited() => prompts.next(),
            _ => Deadline::NEVER,
        }
    }

    /// Tells of a wait for input that was found, and looks for one if it is time for that.
    pub(super) fn look_for_input_wanted(&mut self, now: Instant) {
        let Some(prompts) = self.prompts.as_mut().filter(|_| !self.program.has_exited()) else {
            return;
        };
        // What is told has the prompt, so that is read first: a wait is told once a turn has
        // brought nothing.
        if prompts.heard(self.streams.last_read()) && prompts.has_found() {
            return;
        }
        let found = prompts.found();
        if prompts.next().reached(now) {
            let ring = self.streams.wake().map(|wake| move || wake.ring());
            prompts.begin(self.program.running.pid(), ring);
        }
        if let Some(waiting) = found {
            self.program.running.trace().say(|| &waiting.text);
            self.tell(&Event::InputWanted {
                command: quote(&self.spec.argv),
                waiting,
                prompt: self.streams.prompt(),
            });
        }
    }

    /// What was found out shortly before a limit about why the program does not end.
    pub(super) fn diagnosis(&self, reason: Reason) -> Option<Box<Diagnosis>> {
        let since = match reason {
            Reason::Timeout => self.started,
            // What comes ends a silence, and what was found out before it is old.
            Reason::IdleTimeout => self.streams.last_read().unwrap_or(self.started),
            Reason::Finished | Reason::Cancelled | Reason::OutputLimit => return None,
        };
        self.looks.latest(since, self.program.running.pid())
    }
}
