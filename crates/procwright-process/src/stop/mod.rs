//! Ending a run: the first signal, the grace, SIGKILL, and the survivors.
//!
//! [`Stop`] says what a caller wants. [`Stopping`] does it: a state machine that a drain
//! or wait loop steps while it goes on with its own work.
//!
//! # How a changing tree is caught
//!
//! A list of processes is out of date when it has been read. What makes it good enough
//! differs by phase.
//!
//! *The grace.* The first signal goes to parents first, so that a shell does not take the
//! end of one command as its cue for the next; then a second survey catches
//! what was forked while the first was taken. Every process gets it once, since
//! programs take a second TERM as "at once, then". A process that was started
//! after the signal was sent is the program's own answer to it (`trap 'rm -rf
//! $tmp' TERM`), is not signalled, and counts as alive like the others. Freezing
//! the tree for an exact list was rejected here: a parent sees its child stop
//! (sudo then stops itself), and the stop would outlast the signal.
//!
//! *Killing.* Each member is stopped first, and the tree surveyed again until
//! all stand still and no new one appears. SIGSTOP does not cancel a fork that
//! is under way, so that a member counts only once the system shows it stopped:
//! then its last child is in the list. A parent that waits in vfork cannot stop
//! and is passed over; it cannot fork either, and what it forks later is found
//! by the next survey, because SIGKILL, unlike SIGSTOP, does cancel a fork that
//! is under way. After that everything is killed, and whatever a further
//! survey finds is treated likewise until one finds nothing or the time is up.

mod kill;
mod member;
mod survey;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use member::{StopMember, add, is_denied};
use survey::RECHECK;

use crate::Signal;
use crate::proc_id::ProcId;
use crate::process_handle::ProcessHandle;
use crate::stop_policy::{Scope, Stop, Survivor};
use crate::tree::{ProcessTree, StopTarget};
use procwright_os::pidfd;
use procwright_os::proc::{self, Comm};
use procwright_os::ready::ReadySet;
use procwright_os::signal;
use procwright_os::time::Deadline;

/// Longest wait for the killed, after the grace. The kernel takes its time to give
/// memory back: 277 ms were measured for a process of 600 MB.
const KILL_BOUND: Duration = Duration::from_secs(2);

/// Counters of a [`Stopping`], for tests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Number of passes over all processes.
    pub(crate) surveys: u32,
    /// Number of looks at members of whose end no descriptor tells.
    pub(crate) rechecks: u32,
    /// Number of looks whether all members stand still.
    pub(crate) freeze_passes: u32,
}

/// The progress of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first signal was sent.
    Grace {
        until: Deadline,
    },
    /// SIGSTOP was sent to all members.
    Freeze {
        until: Instant,
        kill_end: Instant,
        again: Instant,
    },
    /// SIGKILL was sent to all members.
    Kill {
        end: Instant,
    },
    Done,
}

/// A [`Stop`] under way.
///
/// A loop polls [`fd`](Stopping::fd) for input, no longer than until
/// [`deadline`](Stopping::deadline), beside its own descriptors; calls
/// [`step`](Stopping::step) whenever either came; and is through when
/// [`finished`](Stopping::finished). `step` never blocks. That comes to pass at
/// the latest at the end of the grace plus 2 seconds.
///
/// The loop reaps the root as soon as its pidfd is readable; a zombie counts as
/// gone here.
#[derive(Debug)]
pub struct Stopping {
    stop: Stop,
    tree: ProcessTree,
    members: Vec<StopMember>,
    /// The members of the latest survey, parents first.
    order: Vec<usize>,
    ready: Option<ReadySet>,
    phase: Phase,
    /// The moment from which on the first signal was on its way to every member, in
    /// ticks since boot.
    signalled_at: u64,
    /// Whether the first signal went to the group in one step.
    whole_group: bool,
    recheck_at: Deadline,
    recheck_after: Duration,
    /// A member has ended, or may have, since the last survey.
    needs_survey: bool,
    /// The last survey failed for a reason that may pass.
    survey_failed: bool,
    counts: Counts,
}

impl Stopping {
    /// Sends the first signal. `root_pidfd` is the spawner's, if it has one.
    ///
    /// Nothing fails: what cannot be had (a descriptor, `/proc`) makes the stop
    /// coarser, down to signalling the root alone by its number.
    pub fn begin(
        stop: Stop,
        target: StopTarget,
        root_pidfd: Option<BorrowedFd<'_>>,
        now: Instant,
    ) -> Stopping {
        let root = target.root;
        let mut this = Stopping {
            stop,
            tree: ProcessTree::new(target, stop.scope),
            members: Vec::new(),
            order: Vec::new(),
            ready: ReadySet::new().ok(),
            phase: Phase::Grace {
                until: Deadline::NEVER,
            },
            signalled_at: u64::MAX,
            whole_group: false,
            recheck_at: Deadline::NEVER,
            recheck_after: RECHECK.0,
            needs_survey: false,
            survey_failed: false,
            counts: Counts::default(),
        };
        if !this.tree.target().reaped {
            this.add_root(root, root_pidfd);
        }
        if stop.signal == Signal::KILL {
            this.freeze(now, now + KILL_BOUND);
            return this;
        }
        this.phase = Phase::Grace {
            until: now
                .checked_add(stop.grace)
                .map_or(Deadline::NEVER, Deadline::at),
        };
        this.survey(false);
        if stop.scope == Scope::Group {
            this.whole_group = this.signal_group(stop.signal);
        }
        this.send_first_signal();
        this.signalled_at = proc::now_ticks();
        if stop.scope != Scope::Process {
            this.survey(false);
            this.send_first_signal();
        }
        this.step(now);
        this
    }

    /// Does what is due at `now`.
    pub fn step(&mut self, now: Instant) {
        self.note_ended(now);
        match self.phase {
            Phase::Grace { until } => {
                if self.needs_survey {
                    self.survey(false);
                    self.send_first_signal();
                }
                if !self.survey_failed && self.members.iter().all(|m| m.gone) {
                    self.finish();
                } else if until.reached(now) {
                    self.freeze(now, now + KILL_BOUND);
                }
            }
            Phase::Freeze {
                until, kill_end, ..
            } => self.freeze_pass(now, until, kill_end),
            Phase::Kill { end } => {
                if self.needs_survey {
                    self.survey(false);
                    if self.members.iter().any(|m| m.pending() && !m.killed) {
                        if now < end {
                            self.freeze(now, end);
                            return;
                        }
                        self.kill_all();
                    }
                }
                // A member that may not be signalled had the grace, and is not waited
                // for.
                let left = self.members.iter().any(StopMember::pending);
                if (!left && !self.survey_failed) || now >= end {
                    self.finish();
                }
            }
            Phase::Done => {}
        }
    }

    /// Readable when a member has ended; to be asked for anew before each wait.
    /// None if no member can be waited for in this way; [`deadline`](Stopping::deadline) then comes more often.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.ready.as_ref().map(AsFd::as_fd)
    }

    /// The time to call [`step`](Stopping::step) even if nothing is readable.
    pub fn deadline(&self) -> Deadline {
        let phase = match self.phase {
            Phase::Grace { until } => until,
            Phase::Freeze { until, again, .. } => Deadline::at(until.min(again)),
            Phase::Kill { end } => Deadline::at(end),
            Phase::Done => Deadline::NEVER,
        };
        phase.min(self.recheck_at)
    }

    /// Whether there is nothing left to wait for.
    pub fn finished(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Ends the grace now, as a second Ctrl-C does.
    pub fn kill_now(&mut self, now: Instant) {
        if let Phase::Grace { .. } = self.phase {
            self.freeze(now, now + KILL_BOUND);
        }
    }

    /// Whether a member was forced: frozen or killed.
    pub fn kills(&self) -> bool {
        let forced = |member: &StopMember| member.frozen || member.killed;
        self.members.iter().any(forced)
    }

    /// The members that are still there. Final once it is
    /// [`finished`](Stopping::finished).
    pub fn survivors(&self) -> Vec<Survivor> {
        self.members
            .iter()
            .filter(|m| !m.gone)
            .map(|m| Survivor {
                pid: m.watched.id().pid(),
                name: m.name.to_string(),
                state: m.state,
            })
            .collect()
    }

    /// The counters so far.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    fn add_root(&mut self, root: ProcId, pidfd: Option<BorrowedFd<'_>>) {
        let stat = proc::stat(root.pid());
        let watched = match (&stat, pidfd) {
            (Ok(stat), _) if !root.is(stat) && root.start_ticks() > 0 => return,
            (Ok(stat), _) if stat.is_gone() => return,
            (Err(e), _) if e.kind() == std::io::ErrorKind::NotFound => return,
            (_, Some(fd)) => {
                if pidfd::has_exited(fd).unwrap_or(false) {
                    return;
                }
                ProcessHandle::child(root, fd.try_clone_to_owned().ok())
            }
            (Ok(stat), None) => match ProcessHandle::adopt(stat) {
                Some(watched) => watched,
                None => return,
            },
            // The root cannot be looked at. The caller vouches that it is its child
            // and not yet reaped.
            (Err(_), None) => ProcessHandle::child(root, None),
        };
        let (name, state) = stat.map_or((Comm::new(b"?"), '?'), |s| (s.name, s.state));
        add(&mut self.members, self.ready.as_ref(), watched, name, state);
        self.order.push(0);
    }

    /// Sends the first signal to the members that have not had it.
    fn send_first_signal(&mut self) {
        for &i in &self.order {
            let member = &mut self.members[i];
            if member.gone || member.signalled {
                continue;
            }
            // A process that was started after the signal is the program's answer to
            // it (see the module). A signal to the group misses no member.
            if member.watched.id().start_ticks() > self.signalled_at {
                member.signalled = true;
                continue;
            }
            if self.whole_group {
                member.signalled = true;
            } else {
                let sent = member.watched.signal(self.stop.signal);
                member.denied = is_denied(&sent);
                member.signalled = sent.is_ok() || member.denied;
            }
            // A stopped process acts on a signal only once it is continued.
            if matches!(member.state, 'T' | 't') && !member.denied {
                let _ = member.watched.signal(Signal::CONT);
            }
        }
    }

    /// Signals the whole group in one step, if it is certain to be ours.
    fn signal_group(&mut self, signal: Signal) -> bool {
        if self.tree.target().reaped {
            return false;
        }
        let root = self.tree.target().root.pid();
        let leads = proc::stat(root).is_ok_and(|stat| stat.pgrp == root);
        let Some(member) = self.members.iter().find(|m| m.watched.id().pid() == root) else {
            return false;
        };
        let by_pidfd = |fd| pidfd::send_group(fd, signal.number()).is_ok();
        if member.watched.pidfd().is_some_and(by_pidfd) {
            return true;
        }
        // By number only while the leader has it.
        leads && !member.gone && signal::kill_group(root, signal.number()).is_ok()
    }
}

impl Drop for Stopping {
    /// Kills what is frozen: a stop that is given up half-way leaves no process stopped
    /// for ever.
    fn drop(&mut self) {
        self.kill_frozen();
    }
}
