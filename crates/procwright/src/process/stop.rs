//! Ending a run: ask, wait, make sure, and name who is left.
//!
//! [`Stop`] is what a caller wants, [`Stopping`] is its being done: a state
//! machine that a drain or wait loop steps while it goes on with its own work.
//!
//! # How a changing tree is caught
//!
//! A list of processes is out of date when it has been read. What makes it good
//! enough differs by phase.
//!
//! *Asking.* The signal goes to parents first, so that a shell does not take the
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

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::ident::{ProcId, Watched};
use crate::process::Signal;
use crate::process::policy::{Scope, Stop, Survivor};
use crate::process::tree::{Target, Tree};
use crate::sys::pidfd;
use crate::sys::proc::{self, Name};
use crate::sys::ready::{On, ReadySet};
use crate::sys::signal;
use crate::time::Deadline;

/// How long after the grace the killed are waited for. Memory takes its time to
/// be given back: 277 ms were measured for a process of 600 MB.
const KILL_BOUND: Duration = Duration::from_secs(2);

/// How long members may take to stand still before they are killed as they run.
const FREEZE_BOUND: Duration = Duration::from_millis(100);

/// Between two looks whether all stand still. Nothing tells when a process that
/// is not our child has stopped, so this is the one place that has to look
/// again; [`FREEZE_BOUND`] ends it.
const FREEZE_PAUSE: Duration = Duration::from_micros(500);

/// Between two looks at members that have no pidfd, doubling from the first to
/// the last.
const RECHECK: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// How many passes in a row may find no one and yet be uncertain, before they
/// are believed.
const UNCERTAIN_SURVEYS: usize = 32;

/// How long such passes may take together: a pass takes 1 ms for 80 processes,
/// but there are machines with tens of thousands.
const UNCERTAIN_BOUND: Duration = Duration::from_millis(50);

/// What a [`Stopping`] did, for tests that count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Passes over all processes.
    pub(crate) surveys: u32,
    /// Looks at members because no descriptor tells of their end.
    pub(crate) rechecks: u32,
    /// Looks whether all members stand still.
    pub(crate) settles: u32,
}

#[derive(Debug)]
struct Member {
    watched: Watched,
    name: Name,
    state: char,
    gone: bool,
    /// Was sent the first signal.
    signalled: bool,
    /// Was sent SIGSTOP by us; owes a SIGKILL.
    frozen: bool,
    killed: bool,
    /// May not be signalled by us.
    denied: bool,
    /// In the ready set.
    polled: bool,
}

impl Member {
    /// Stops it, once.
    fn freeze(&mut self) {
        if self.gone || self.denied || self.killed || self.frozen {
            return;
        }
        let sent = self.watched.signal(Signal::STOP);
        self.denied = is_denied(&sent);
        self.frozen = sent.is_ok();
    }

    /// Whether waiting for it makes sense.
    fn pending(&self) -> bool {
        !self.gone && !self.denied
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The signal was sent.
    Grace {
        until: Deadline,
    },
    /// SIGSTOP was sent to all.
    Freeze {
        until: Instant,
        kill_end: Instant,
        again: Instant,
    },
    /// SIGKILL was sent to all.
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
pub(crate) struct Stopping {
    stop: Stop,
    tree: Tree,
    members: Vec<Member>,
    /// The members of the latest survey, parents first.
    order: Vec<usize>,
    ready: Option<ReadySet>,
    phase: Phase,
    /// When the first signal was on its way to everyone, in ticks since boot.
    signalled_at: u64,
    /// Whether the first signal went to the group in one step.
    whole_group: bool,
    recheck_at: Deadline,
    recheck_after: Duration,
    /// Someone ended, or may have, since the last survey.
    stale: bool,
    /// The last survey failed in a way that may pass.
    unseen: bool,
    counts: Counts,
}

impl Stopping {
    /// Sends the first signal. `root_pidfd` is the spawner's, if it has one.
    ///
    /// Nothing fails: what cannot be had (a descriptor, `/proc`) makes the stop
    /// coarser, down to signalling the root alone by its number.
    pub(crate) fn begin(
        stop: Stop,
        target: Target,
        root_pidfd: Option<BorrowedFd<'_>>,
        now: Instant,
    ) -> Stopping {
        let root = target.root;
        let mut this = Stopping {
            stop,
            tree: Tree::new(target, stop.scope),
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
            stale: false,
            unseen: false,
            counts: Counts::default(),
        };
        this.add_root(root, root_pidfd);
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
        this.ask();
        this.signalled_at = proc::now_ticks();
        if stop.scope != Scope::Process {
            this.survey(false);
            this.ask();
        }
        this.step(now);
        this
    }

    /// Does what is due at `now`.
    pub(crate) fn step(&mut self, now: Instant) {
        self.collect(now);
        match self.phase {
            Phase::Grace { until } => {
                if self.stale {
                    self.survey(false);
                    self.ask();
                }
                if !self.unseen && self.members.iter().all(|m| m.gone) {
                    self.finish();
                } else if until.reached(now) {
                    self.freeze(now, now + KILL_BOUND);
                }
            }
            Phase::Freeze {
                until, kill_end, ..
            } => self.settle(now, until, kill_end),
            Phase::Kill { end } => {
                if self.stale {
                    self.survey(false);
                    if self.members.iter().any(|m| m.pending() && !m.killed) {
                        if now < end {
                            self.freeze(now, end);
                            return;
                        }
                        self.kill_all();
                    }
                }
                // Who may not be signalled had the grace, and is not waited for.
                let left = self.members.iter().any(Member::pending);
                if (!left && !self.unseen) || now >= end {
                    self.finish();
                }
            }
            Phase::Done => {}
        }
    }

    /// Readable when a member has ended; to be asked for anew before each wait.
    /// None if no member can be waited for in this way; [`deadline`](Stopping::deadline) then comes more often.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.ready.as_ref().map(AsFd::as_fd)
    }

    /// When to call [`step`](Stopping::step) even if nothing is readable.
    pub(crate) fn deadline(&self) -> Deadline {
        let phase = match self.phase {
            Phase::Grace { until } => until,
            Phase::Freeze { until, again, .. } => Deadline::at(until.min(again)),
            Phase::Kill { end } => Deadline::at(end),
            Phase::Done => Deadline::NEVER,
        };
        phase.min(self.recheck_at)
    }

    /// Whether there is nothing left to wait for.
    pub(crate) fn finished(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Ends the grace now: the user asked twice.
    pub(crate) fn kill_now(&mut self, now: Instant) {
        if let Phase::Grace { .. } = self.phase {
            self.freeze(now, now + KILL_BOUND);
        }
    }

    /// Whether it is past asking.
    pub(crate) fn kills(&self) -> bool {
        let forced = |member: &Member| member.frozen || member.killed;
        self.members.iter().any(forced)
    }

    /// Who is still there. Empty before it is [`finished`](Stopping::finished)
    /// unless a member has ended the wait early.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
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

    /// What was done so far.
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
                Watched::child(root, fd.try_clone_to_owned().ok())
            }
            (Ok(stat), None) => match Watched::adopt(stat) {
                Some(watched) => watched,
                None => return,
            },
            // Cannot be looked at: the caller's word is taken that it is its
            // child, and not yet reaped.
            (Err(_), None) => Watched::child(root, None),
        };
        let (name, state) = stat.map_or((Name::new(b"?"), '?'), |s| (s.name, s.state));
        add(&mut self.members, self.ready.as_ref(), watched, name, state);
        self.order.push(0);
    }

    /// Surveys until a pass has found someone new, or is certain to have missed
    /// no one, or so many have found no one that there is none.
    ///
    /// A process that forks a replacement and ends is nearly always gone when it
    /// is looked at. That it was there is seen, though not whose it was, and
    /// that makes a pass uncertain. On a busy machine any pass may be.
    fn survey(&mut self, freeze: bool) {
        let begun = Instant::now();
        for _ in 0..UNCERTAIN_SURVEYS {
            let before = self.members.len();
            self.survey_once(freeze);
            if self.unseen && self.ready.is_some() {
                // No descriptor is free. Ours are a convenience: without them
                // the members are looked at now and then.
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

    /// Brings the members up to date. What was known stays known if the
    /// processes cannot be listed; a look that may succeed later is repeated.
    ///
    /// With `freeze`, whoever is found is stopped on sight.
    fn survey_once(&mut self, freeze: bool) {
        self.counts.surveys += 1;
        self.stale = false;
        self.unseen = false;
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
                None => match Watched::adopt(stat) {
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
                self.unseen = !matches!(e.kind(), NotFound | PermissionDenied | Unsupported);
                return;
            }
        };
        for stat in found.iter().filter(|stat| stat.is_gone()) {
            if let Some(i) = self.members.iter().position(|m| m.watched.id().is(stat)) {
                self.mark_gone(i);
            }
        }
        // Parents first, see the module's text.
        self.order.clear();
        for stat in &found {
            if let Some(i) = self.members.iter().position(|m| m.watched.id().is(stat)) {
                self.order.push(i);
            }
        }
        // Reaped since the last look: without a pidfd nothing else tells.
        for i in 0..self.members.len() {
            let member = &self.members[i];
            let id = member.watched.id();
            if !member.gone && !found.iter().any(|stat| id.is(stat)) && member.watched.has_exited()
            {
                self.mark_gone(i);
            }
        }
    }

    fn mark_gone(&mut self, i: usize) {
        let member = &mut self.members[i];
        if member.gone {
            return;
        }
        member.gone = true;
        if let (true, Some(ready), Some(fd)) = (member.polled, &self.ready, member.watched.pidfd())
        {
            // Explicitly, and not by closing: a child that another thread is
            // just starting holds a copy until its exec, and the set would
            // report it for as long.
            ready.remove(fd);
        }
        member.polled = false;
        // The root's names its group, also after its end.
        if self.stop.scope != Scope::Group
            || member.watched.id().pid() != self.tree.target().root.pid()
        {
            member.watched.release();
        }
    }

    /// Takes note of who has ended.
    fn collect(&mut self, now: Instant) {
        let mut ended = Vec::new();
        if let Some(ready) = &self.ready {
            // A mere look: what cannot be seen now is looked at again.
            let _ = ready.wait(&mut ended, Deadline::at(now));
        }
        for i in ended {
            self.stale = true;
            self.mark_gone(i as usize);
        }
        let blind =
            |this: &Stopping| this.unseen || this.members.iter().any(|m| !m.gone && !m.polled);
        if self.recheck_at.reached(now) {
            self.recheck_at = Deadline::NEVER;
            if blind(self) {
                self.counts.rechecks += 1;
                self.stale |= self.unseen;
                for i in 0..self.members.len() {
                    let member = &self.members[i];
                    if !member.gone && !member.polled && member.watched.has_exited() {
                        self.stale = true;
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

    /// Sends the first signal to those who have not had it.
    fn ask(&mut self) {
        for &i in &self.order {
            let member = &mut self.members[i];
            if member.gone || member.signalled {
                continue;
            }
            // See the module's text: what came after the signal is the
            // program's answer to it. A group's signal misses no one.
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
            // A stopped process does not act on a signal before it goes on.
            if matches!(member.state, 'T' | 't') && !member.denied {
                let _ = member.watched.signal(Signal::CONT);
            }
        }
    }

    /// Signals the whole group in one step, if it is certain to be ours.
    fn signal_group(&mut self, signal: Signal) -> bool {
        let root = self.tree.target().root.pid();
        let leads = proc::stat(root).is_ok_and(|stat| stat.pgrp == root);
        let Some(member) = self.members.iter().find(|m| m.watched.id().pid() == root) else {
            return false;
        };
        let by_pidfd = |fd| pidfd::send_group(fd, signal.number()).is_ok();
        if member.watched.pidfd().is_some_and(by_pidfd) {
            return true;
        }
        // By number only while the leader holds it.
        leads && !member.gone && signal::kill_group(root, signal.number()).is_ok()
    }

    /// Begins the killing.
    fn freeze(&mut self, now: Instant, kill_end: Instant) {
        let until = (now + FREEZE_BOUND).min(kill_end);
        if self.stop.scope == Scope::Group && self.signal_group(Signal::KILL) {
            // In one step for all; no fork gets away from it.
            self.survey(false);
            self.kill_all();
            self.phase = Phase::Kill { end: kill_end };
            // Who was seen dead in that survey is polled no more: without a
            // step that is due, nothing would tell that all are through.
            self.stale = true;
            self.recheck_at = Deadline::at(now);
            return;
        }
        self.settle(now, until, kill_end);
    }

    /// Stops whoever runs, and kills everyone once all stand still.
    fn settle(&mut self, now: Instant, until: Instant, kill_end: Instant) {
        // Twice, since the first pass of a tree that does not grow finds all,
        // and they stand still while the second is made.
        for _ in 0..2 {
            let before = self.members.len();
            self.survey(true);
            self.counts.settles += 1;
            let still = self.members.len() == before
                && !self.unseen
                && self
                    .members
                    .iter()
                    .all(|m| m.gone || m.denied || m.killed || (m.frozen && stands_still(m)));
            if still || now >= until {
                self.kill_all();
                self.phase = Phase::Kill { end: kill_end };
                // One more look, for what they forked before they stood.
                self.stale = true;
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

    fn kill_all(&mut self) {
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

    fn finish(&mut self) {
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

    fn kill_frozen(&mut self) {
        for member in self.members.iter_mut().filter(|m| m.frozen && !m.gone) {
            let _ = member.watched.signal(Signal::KILL);
            member.frozen = false;
        }
    }
}

impl Drop for Stopping {
    /// A stop that is given up half-way leaves no one stopped for ever.
    fn drop(&mut self) {
        self.kill_frozen();
    }
}

fn add(
    members: &mut Vec<Member>,
    ready: Option<&ReadySet>,
    watched: Watched,
    name: Name,
    state: char,
) {
    let polled = match (ready, watched.pidfd()) {
        (Some(ready), Some(fd)) => ready.add(fd, members.len() as u64, On::Read).is_ok(),
        _ => false,
    };
    members.push(Member {
        watched,
        name,
        state,
        gone: false,
        signalled: false,
        frozen: false,
        killed: false,
        denied: false,
        polled,
    });
}

fn is_denied(sent: &std::io::Result<()>) -> bool {
    matches!(sent, Err(e) if Errno::from_io_error(e) == Some(Errno::PERM))
}

/// Whether it can fork no more, by its state in the latest survey.
fn stands_still(member: &Member) -> bool {
    match member.state {
        // The letter is the first thread's; another may be in a fork still.
        'T' | 't' => proc::threads_stopped(member.watched.id().pid()).unwrap_or(true),
        'D' | 'Z' | 'X' | 'x' => true,
        _ => false,
    }
}
