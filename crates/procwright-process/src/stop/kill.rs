//! The end of a stop: every member is frozen, then killed.

use std::time::{Duration, Instant};

use super::member::{found_none, is_denied, stands_still};
use super::{KILL_BOUND, Phase, Stopping};
use crate::Signal;
use crate::proc_id::ProcId;
use procwright_os::proc;
use procwright_os::time::{self, Deadline};

/// Longest time that members may take to stand still before they are killed as they
/// run: half of that for the whole. Who has a SIGSTOP to come cannot begin a fork, and
/// stands as soon as it gets the processor, which on a busy machine takes as long as it
/// takes; killed before, it leaves the child of a fork that was under way.
const FREEZE_SHARE: u32 = 2;

/// Pause between two looks whether all stand still. Nothing tells when a process that
/// is not a child has stopped, so this is the one place that has to poll;
/// [`FREEZE_SHARE`] ends it.
const FREEZE_PAUSE: Duration = Duration::from_micros(500);

impl Stopping {
    pub(super) fn begin_to_kill(&mut self, now: Instant) {
        self.kill_begun = time::thread_cpu();
        self.freeze(now, now + KILL_BOUND);
    }

    /// Kills: at once for a group, otherwise by freezing first.
    pub(super) fn freeze(&mut self, now: Instant, kill_end: Instant) {
        let until = now + kill_end.saturating_duration_since(now) / FREEZE_SHARE;
        if self.means_group() && self.signal_group(Signal::KILL) {
            // One step for all members: no fork escapes it.
            self.survey(false);
            self.kill_all();
            self.phase = Phase::Kill { end: kill_end };
            // A member that the survey saw dead is not polled any more, so without a
            // step that is due nothing would tell that all are gone.
            self.look_again(now);
            return;
        }
        self.freeze_pass(now, until, kill_end);
    }

    /// Stops the members that run, and kills all once they stand still.
    pub(super) fn freeze_pass(&mut self, now: Instant, until: Instant, kill_end: Instant) {
        // Twice: the first pass of a tree that does not grow finds all members, which
        // come to a stand while the second is made.
        for _ in 0..2 {
            let before = self.progress.len();
            self.survey(true);
            self.counts.freeze_passes += 1;
            let mut all = self.tree.members().iter().zip(&self.progress);
            let still = self.progress.len() == before
                && !self.survey_failed
                && all.all(|(member, progress)| {
                    let is_left_out = member.gone || progress.denied || progress.killed;
                    is_left_out || (progress.frozen && stands_still(member))
                });
            if still || now >= until {
                self.kill_all();
                self.phase = Phase::Kill { end: kill_end };
                // One more survey, for what they forked before they stood.
                self.look_again(now);
                return;
            }
        }
        self.phase = Phase::Freeze {
            until,
            kill_end,
            again: now + FREEZE_PAUSE,
        };
    }

    /// Has the next step come at once, and survey.
    pub(super) fn look_again(&mut self, now: Instant) {
        self.needs_survey = true;
        self.recheck_at = Deadline::at(now);
    }

    pub(super) fn kill_all(&mut self) {
        for (member, progress) in self.tree.members().iter().zip(&mut self.progress) {
            if member.gone || progress.killed {
                continue;
            }
            let sent = member.handle.signal(Signal::KILL);
            progress.denied = is_denied(&sent);
            progress.killed = sent.is_ok();
            progress.kill_failed = sent.is_err() && !found_none(&sent);
            progress.frozen = false;
        }
    }

    pub(super) fn finish(&mut self) {
        self.kill_frozen();
        for place in 0..self.progress.len() {
            let member = &mut self.tree.members_mut()[place];
            if member.gone {
                continue;
            }
            if member.handle.has_exited() {
                self.mark_gone(place);
            } else if let Ok(stat) = member.handle.stat() {
                member.state = stat.state;
            }
        }
        self.doubtful = self.tree.doubtful();
        // Those of the latest survey may have ended since.
        self.doubtful.retain(|seen| {
            proc::stat(seen.pid).is_ok_and(|stat| ProcId::from(seen).is(&stat) && !stat.is_gone())
        });
        self.phase = Phase::Done;
        self.recheck_at = Deadline::NEVER;
    }

    pub(super) fn kill_frozen(&mut self) {
        for (member, progress) in self.tree.members().iter().zip(&mut self.progress) {
            if progress.frozen && !member.gone {
                let _ = member.handle.signal(Signal::KILL);
                progress.frozen = false;
            }
        }
    }
}
