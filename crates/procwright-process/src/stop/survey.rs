//! Keeping the members of a stop up to date while the tree changes.

use std::time::{Duration, Instant};

use super::member::Progress;
use super::{Phase, Stopping};
use procwright_os::time::{self, Deadline};

/// Pause between two looks at members that have no pidfd: the first, doubled each time
/// up to the last.
pub(super) const RECHECK: (Duration, Duration) =
    (Duration::from_millis(5), Duration::from_millis(100));

/// Number of passes in a row that may find no new member and yet be uncertain, before
/// they are believed.
const UNCERTAIN_SURVEYS: usize = 32;

/// That number during the grace. Whom these miss is found later, and killed.
const UNCERTAIN_IN_GRACE: usize = 4;

/// Most processor time for such passes together. A pass takes 1 ms for 80 processes, but
/// there are machines with tens of thousands. The clock on the wall would not do: on a
/// busy machine it runs on while no pass is made.
const UNCERTAIN_BOUND: Duration = Duration::from_millis(50);

impl Stopping {
    /// Surveys until a pass has found a new member, or is certain to have missed none, or
    /// enough passes have found none.
    ///
    /// A process that forks a replacement and ends is nearly always gone when it is
    /// looked at. The scan sees that there was a process, and not whose; that makes a
    /// pass uncertain. On a busy machine any pass may be.
    pub(super) fn survey(&mut self, freeze: bool) {
        let begun = time::thread_cpu();
        let most = match self.phase {
            Phase::Grace { .. } if !freeze => UNCERTAIN_IN_GRACE,
            _ => UNCERTAIN_SURVEYS,
        };
        for _ in 0..most {
            let before = self.progress.len();
            self.survey_once(freeze);
            if self.survey_failed && self.ready.is_some() {
                // No descriptor is free. The pidfds of the members are a convenience:
                // without them the members are looked at now and then, and opened again
                // for each signal.
                for (member, progress) in self.tree.members_mut().iter_mut().zip(&mut self.progress)
                {
                    progress.polled = false;
                    if member.handle.id().start_ticks() > 0 {
                        member.handle.release();
                    }
                }
                self.ready = None;
                self.survey_once(freeze);
            }
            let spent = time::thread_cpu().saturating_sub(begun);
            let has_found = self.progress.len() != before;
            self.may_have_missed = has_found || self.tree.was_cut();
            self.outruns |= has_found && self.counts.freeze_passes > 0;
            if has_found || !self.may_have_missed || spent > UNCERTAIN_BOUND {
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
            progress,
            ready,
            ..
        } = self;
        let surveyed = tree.survey(&mut |place, member| {
            if place >= progress.len() {
                // Those before it that are new had ended when they were found.
                progress.resize(place, Progress::default());
                progress.push(Progress::begin(ready.as_ref(), place, member));
            }
            if freeze {
                progress[place].freeze(member);
            }
        });
        progress.resize(tree.members().len(), Progress::default());
        match surveyed {
            Ok(order) => self.order = order,
            Err(e) => {
                use std::io::ErrorKind::{NotFound, PermissionDenied, Unsupported};
                self.blind = matches!(e.kind(), NotFound | PermissionDenied | Unsupported);
                self.survey_failed = !self.blind;
                return;
            }
        }
        self.blind = false;
        for place in 0..self.progress.len() {
            let member = &self.tree.members()[place];
            if !member.gone && member.handle.has_exited() {
                self.mark_gone(place);
            }
        }
    }

    pub(super) fn mark_gone(&mut self, place: usize) {
        let member = &mut self.tree.members_mut()[place];
        let progress = &mut self.progress[place];
        member.gone = true;
        // Removed from the set here; the descriptor stays open while it tells whose a
        // group is.
        if let (true, Some(ready), Some(fd)) = (progress.polled, &self.ready, member.handle.pidfd())
        {
            ready.remove(fd);
        }
        progress.polled = false;
    }

    /// Marks the members that have ended.
    pub(super) fn note_ended(&mut self, now: Instant) {
        let mut ended = Vec::new();
        if let Some(ready) = &self.ready {
            // A failed look is repeated later.
            let _ = ready.wait(&mut ended, Deadline::at(now));
        }
        for place in ended {
            self.needs_survey = true;
            self.mark_gone(place as usize);
        }
        if self.recheck_at.reached(now) {
            self.recheck_at = Deadline::NEVER;
            if self.has_to_look() {
                self.counts.rechecks += 1;
                self.needs_survey |= self.survey_failed;
                for place in 0..self.progress.len() {
                    let member = &self.tree.members()[place];
                    if !member.gone && !self.progress[place].polled && member.handle.has_exited() {
                        self.needs_survey = true;
                        self.mark_gone(place);
                    }
                }
                self.recheck_after = (self.recheck_after * 2).min(RECHECK.1);
            }
        }
        if self.has_to_look() && self.recheck_at == Deadline::NEVER {
            self.recheck_at = Deadline::at(now + self.recheck_after);
        }
    }

    /// Whether there is something of whose end no descriptor tells.
    fn has_to_look(&self) -> bool {
        let unpolled =
            |place: usize| !self.tree.members()[place].gone && !self.progress[place].polled;
        self.survey_failed || (0..self.progress.len()).any(unpolled)
    }
}
