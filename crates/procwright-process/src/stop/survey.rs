//! Keeping the members of a stop up to date while the tree changes.

use std::time::{Duration, Instant};

use super::Stopping;
use super::member::add;
use crate::process_handle::ProcessHandle;
use crate::stop_policy::Scope;
use procwright_os::time::Deadline;

/// Pause between two looks at members that have no pidfd: the first, doubled each time
/// up to the last.
pub(super) const RECHECK: (Duration, Duration) =
    (Duration::from_millis(5), Duration::from_millis(100));

/// Number of passes in a row that may find no new member and yet be uncertain, before
/// they are believed.
const UNCERTAIN_SURVEYS: usize = 32;

/// Longest time for such passes together. A pass takes 1 ms for 80 processes, but there
/// are machines with tens of thousands.
const UNCERTAIN_BOUND: Duration = Duration::from_millis(50);

impl Stopping {
    /// Surveys until a pass has found a new member, or is certain to have missed none, or
    /// [`UNCERTAIN_SURVEYS`] passes have found none.
    ///
    /// A process that forks a replacement and ends is nearly always gone when it is
    /// looked at. The scan sees that there was a process, and not whose; that makes a
    /// pass uncertain. On a busy machine any pass may be.
    pub(super) fn survey(&mut self, freeze: bool) {
        let begun = Instant::now();
        for _ in 0..UNCERTAIN_SURVEYS {
            let before = self.members.len();
            self.survey_once(freeze);
            if self.survey_failed && self.ready.is_some() {
                // No descriptor is free. The pidfds of the members are a convenience:
                // without them the members are looked at now and then.
                for member in &mut self.members {
                    member.polled = false;
                    member.watched.release();
                }
                self.ready = None;
                self.survey_once(freeze);
            }
            if self.members.len() != before
                || !self.tree.was_cut()
                || begun.elapsed() > UNCERTAIN_BOUND
            {
                return;
            }
        }
    }

    /// Brings the members up to date by one pass. Known members stay if the processes
    /// cannot be listed; a pass that may succeed later is repeated.
    ///
    /// With `freeze`, each member is stopped on sight.
    pub(super) fn survey_once(&mut self, freeze: bool) {
        self.counts.surveys += 1;
        self.needs_survey = false;
        self.survey_failed = false;
        let Stopping {
            tree,
            members,
            ready,
            ..
        } = self;
        let surveyed = tree.survey(&mut |stat| {
            let known = members.iter().position(|m| m.watched.id().is(stat));
            let i = match known {
                Some(i) => i,
                None => match ProcessHandle::adopt(stat) {
                    Some(watched) => {
                        add(members, ready.as_ref(), watched, stat.name, stat.state);
                        members.len() - 1
                    }
                    None => return,
                },
            };
            members[i].state = stat.state;
            if freeze {
                members[i].freeze();
            }
        });
        let found = match surveyed {
            Ok(found) => found,
            Err(e) => {
                use std::io::ErrorKind::{NotFound, PermissionDenied, Unsupported};
                self.survey_failed = !matches!(e.kind(), NotFound | PermissionDenied | Unsupported);
                return;
            }
        };
        for stat in found.iter().filter(|stat| stat.is_gone()) {
            if let Some(i) = self.members.iter().position(|m| m.watched.id().is(stat)) {
                self.mark_gone(i);
            }
        }
        // Parents first: see the module.
        self.order.clear();
        for stat in &found {
            if let Some(i) = self.members.iter().position(|m| m.watched.id().is(stat)) {
                self.order.push(i);
            }
        }
        // A member without a pidfd that was reaped since the last look is in no list.
        for i in 0..self.members.len() {
            let member = &self.members[i];
            let id = member.watched.id();
            if !member.gone && !found.iter().any(|stat| id.is(stat)) && member.watched.has_exited()
            {
                self.mark_gone(i);
            }
        }
    }

    pub(super) fn mark_gone(&mut self, i: usize) {
        let member = &mut self.members[i];
        if member.gone {
            return;
        }
        member.gone = true;
        if let (true, Some(ready), Some(fd)) = (member.polled, &self.ready, member.watched.pidfd())
        {
            // Removed, not merely closed: a child that another thread is just starting
            // holds a copy until its exec, and the set would report it that long.
            ready.remove(fd);
        }
        member.polled = false;
        // The pidfd of the root stays: it names the group, also after the end.
        if self.stop.scope != Scope::Group
            || member.watched.id().pid() != self.tree.target().root.pid()
        {
            member.watched.release();
        }
    }

    /// Marks the members that have ended.
    pub(super) fn note_ended(&mut self, now: Instant) {
        let mut ended = Vec::new();
        if let Some(ready) = &self.ready {
            // A failed look is repeated later.
            let _ = ready.wait(&mut ended, Deadline::at(now));
        }
        for i in ended {
            self.needs_survey = true;
            self.mark_gone(i as usize);
        }
        let blind = |this: &Stopping| {
            this.survey_failed || this.members.iter().any(|m| !m.gone && !m.polled)
        };
        if self.recheck_at.reached(now) {
            self.recheck_at = Deadline::NEVER;
            if blind(self) {
                self.counts.rechecks += 1;
                self.needs_survey |= self.survey_failed;
                for i in 0..self.members.len() {
                    let member = &self.members[i];
                    if !member.gone && !member.polled && member.watched.has_exited() {
                        self.needs_survey = true;
                        self.mark_gone(i);
                    }
                }
                self.recheck_after = (self.recheck_after * 2).min(RECHECK.1);
            }
        }
        if blind(self) && self.recheck_at == Deadline::NEVER {
            self.recheck_at = Deadline::at(now + self.recheck_after);
        }
    }
}
