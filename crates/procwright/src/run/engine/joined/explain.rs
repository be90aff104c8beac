//! When joined runs find out why their programs do not end.

use std::time::Instant;

use super::JoinedRuns;
use crate::run::engine::run_state::Run;
use crate::run::output::Reason;
use crate::spool::Memory;
use procwright_explain::Diagnosis;
use procwright_os::time::Deadline;

impl<M: Memory> JoinedRuns<'_, M> {
    /// The time at which the next examination begins, of all programs at once. The limits of a
    /// stage have examinations of their own.
    pub(super) fn next_look(&self, now: Instant) -> Deadline {
        if self.stop.is_some() || self.running().next().is_none() {
            return Deadline::NEVER;
        }
        self.looks.next([
            (self.deadline, self.hooks.timeout),
            (self.idle_deadline(now), self.hooks.idle_timeout),
        ])
    }

    /// Begins an examination if it is time for that.
    pub(super) fn look(&mut self, now: Instant) {
        if !self.next_look(now).reached(now) {
            return;
        }
        let pids = self
            .running()
            .map(|run| run.program.running.pid())
            .collect();
        let waits = self.runs.iter_mut().rev().find(|run| !run.is_closed());
        if let Some(run) = waits {
            let ring = run.streams.wake().map(|wake| move || wake.ring());
            self.looks.begin(pids, ring, now);
        }
    }

    /// What was found out shortly before a limit of the whole about the run of this place.
    pub(super) fn diagnosis(&self, reason: Reason, place: usize) -> Option<Box<Diagnosis>> {
        let since = match reason {
            Reason::Timeout => self.started,
            Reason::IdleTimeout => self.last_read().unwrap_or(self.started),
            Reason::Finished | Reason::Cancelled | Reason::OutputLimit => return None,
        };
        let run = &self.runs[place];
        self.looks.latest(since, run.program.running.pid())
    }

    /// The time of the latest output of any.
    pub(super) fn last_read(&self) -> Option<Instant> {
        let streams = self.runs.iter().map(|run| &run.streams);
        streams.filter_map(|streams| streams.last_read()).max()
    }

    /// Those whose programs have not ended.
    fn running(&self) -> impl Iterator<Item = &Run<'_, M>> {
        let open = self.runs.iter().filter(|run| !run.is_closed());
        open.filter(|run| !run.program.has_exited())
    }
}
