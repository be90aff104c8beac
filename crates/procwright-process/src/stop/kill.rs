//! The end of a stop: every member is frozen, then killed.

use std::time::{Duration, Instant};

use super::member::{is_denied, stands_still};
use super::{Phase, Stopping};
use crate::Signal;
use crate::stop_policy::Scope;
use procwright_os::proc;
use procwright_os::time::Deadline;

/// Longest time that members may take to stand still before they are killed as they
/// run.
const FREEZE_BOUND: Duration = Duration::from_millis(100);

/// Pause between two looks whether all stand still. Nothing tells when a process that
/// is not a child has stopped, so this is the one place that has to poll;
/// [`FREEZE_BOUND`] ends it.
const FREEZE_PAUSE: Duration = Duration::from_micros(500);

impl Stopping {
    /// Begins to kill: at once for a group, otherwise by freezing first.
    pub(super) fn freeze(&mut self, now: Instant, kill_end: Instant) {
        let until = (now + FREEZE_BOUND).min(kill_end);
        if self.stop.scope == Scope::Group && self.signal_group(Signal::KILL) {
            // One step for all members: no fork escapes it.
            self.survey(false);
            self.kill_all();
            self.phase = Phase::Kill { end: kill_end };
            // A member that the survey saw dead is not polled any more, so without a
            // step that is due nothing would tell that all are gone.
            self.needs_survey = true;
            self.recheck_at = Deadline::at(now);
            return;
        }
        self.freeze_pass(now, until, kill_end);
    }

    /// Stops the members that run, and kills all once they stand still.
    pub(super) fn freeze_pass(&mut self, now: Instant, until: Instant, kill_end: Instant) {
        // Twice: the first pass of a tree that does not grow finds all members, which
        // come to a stand while the second is made.
        for _ in 0..2 {
            let before = self.members.len();
            self.survey(true);
            self.counts.freeze_passes += 1;
            let still = self.members.len() == before
                && !self.survey_failed
                && self
                    .members
                    .iter()
                    .all(|m| m.gone || m.denied || m.killed || (m.frozen && stands_still(m)));
            if still || now >= until {
                self.kill_all();
                self.phase = Phase::Kill { end: kill_end };
                // One more survey, for what they forked before they stood.
                self.needs_survey = true;
                self.recheck_at = Deadline::at(now);
                return;
            }
        }
        self.phase = Phase::Freeze {
            until,
            kill_end,
            again: now + FREEZE_PAUSE,
        };
    }

    pub(super) fn kill_all(&mut self) {
        for member in &mut self.members {
            if member.gone || member.killed {
                continue;
            }
            let sent = member.watched.signal(Signal::KILL);
            member.denied = is_denied(&sent);
            member.killed = sent.is_ok();
            member.frozen = false;
        }
    }

    pub(super) fn finish(&mut self) {
        self.kill_frozen();
        for i in 0..self.members.len() {
            let member = &mut self.members[i];
            if member.gone {
                continue;
            }
            if member.watched.has_exited() {
                self.mark_gone(i);
            } else if let Ok(stat) = proc::stat(member.watched.id().pid()) {
                member.state = stat.state;
            }
        }
        self.phase = Phase::Done;
        self.recheck_at = Deadline::NEVER;
    }

    pub(super) fn kill_frozen(&mut self) {
        for member in self.members.iter_mut().filter(|m| m.frozen && !m.gone) {
            let _ = member.watched.signal(Signal::KILL);
            member.frozen = false;
        }
    }
}
