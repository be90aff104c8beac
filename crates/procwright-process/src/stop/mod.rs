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
//! after the signal to its parent is the program's own answer to it (`trap 'rm -rf
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
mod last_started;
mod member;
mod survey;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use last_started::LastStarted;
use member::{Progress, is_denied};
use survey::RECHECK;

use crate::Signal;
use crate::process_handle::ProcessHandle;
use crate::stop_policy::{Scope, Stop, Survivor};
use crate::tree::{Member, ProcessTree, StopTarget};
use procwright_os::fork::ForkId;
use procwright_os::proc::ProcStat;
use procwright_os::ready::ReadySet;
use procwright_os::time::{self, Deadline};
use procwright_os::{job_control, pidfd, signal};

/// Longest wait for the killed, after the grace, or after the last of them was found. The
/// kernel takes its time to give memory back: 277 ms were measured for a process of
/// 600 MB.
const KILL_BOUND: Duration = Duration::from_secs(2);

/// Most processor time for killing those that are still found, one after another. A clock
/// on the wall would have a storm outlive its stop on a machine that is busy enough.
const KILL_WORK: Duration = Duration::from_secs(1);

/// Counters of a [`Stopping`].
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
/// the latest at the end of the grace plus 2 seconds; of a run that starts processes faster
/// than they are found, when that has taken a second of processor time. If nobody can say
/// then that none is left, and [`survivors`](Stopping::survivors) tells of that.
///
/// The loop reaps the root as soon as its pidfd is readable; a zombie counts as
/// gone here.
#[derive(Debug)]
pub struct Stopping {
    /// The process whose stop this is. A fork of it has no part in it.
    owner: ForkId,
    stop: Stop,
    tree: ProcessTree,
    root_pid: i32,
    /// What was done to each member of the tree, in the same places.
    progress: Vec<Progress>,
    /// The places of the members of the latest survey, parents first.
    order: Vec<usize>,
    ready: Option<ReadySet>,
    phase: Phase,
    /// The moment before the first signal was sent to anybody.
    signalled_after: Option<LastStarted>,
    /// Number of members that were found before that moment.
    found_before: usize,
    /// The processor time of this thread when killing began.
    kill_begun: Duration,
    /// Processor time for killing those that are still found.
    kill_work: Duration,
    /// Members were found after a pass that has stopped all that were known: the run starts
    /// processes while it is killed.
    outruns: bool,
    /// The latest survey may have missed a member.
    may_have_missed: bool,
    /// Whether the first signal went to the group in one step.
    whole_group: bool,
    recheck_at: Deadline,
    recheck_after: Duration,
    /// A member has ended, or may have, since the last survey.
    needs_survey: bool,
    /// The last survey failed for a reason that may pass.
    survey_failed: bool,
    /// Processes cannot be listed here: nobody is known but the root.
    blind: bool,
    /// Who may belong to the run, which cannot be known: found when it was over.
    doubtful: Vec<ProcStat>,
    counts: Counts,
}

impl Stopping {
    /// Sends the first signal, as [`prepare`](Stopping::prepare) and
    /// [`start`](Stopping::start) do.
    pub fn begin(
        stop: Stop,
        target: StopTarget,
        root: Option<ProcessHandle>,
        now: Instant,
    ) -> Stopping {
        let mut this = Stopping::prepare(stop, target, root);
        this.start(now);
        this
    }

    /// Finds whom the first signal is for, and sends none: for what is to be told of the
    /// processes as they were before. With SIGKILL as the first signal there is nothing to
    /// be found before. `root` is the program's handle, if anything of it is left; one of a
    /// process that was reaped tells of its group.
    ///
    /// Nothing fails: what cannot be had makes the stop coarser. Without `/proc` the tree
    /// is the group that the root leads, and else the root alone.
    pub fn prepare(stop: Stop, target: StopTarget, root: Option<ProcessHandle>) -> Stopping {
        let root_pid = target.root.pid();
        let root = root.map(|root| root.with_start_of(target.root));
        let mut this = Stopping {
            owner: ForkId::current(),
            stop,
            tree: ProcessTree::new(target, stop.scope, root),
            root_pid,
            progress: Vec::new(),
            order: Vec::new(),
            ready: ReadySet::new().ok(),
            phase: Phase::Grace {
                until: Deadline::NEVER,
            },
            signalled_after: None,
            found_before: 0,
            kill_begun: Duration::ZERO,
            kill_work: KILL_WORK,
            outruns: false,
            may_have_missed: false,
            whole_group: false,
            recheck_at: Deadline::NEVER,
            recheck_after: RECHECK.0,
            needs_survey: false,
            survey_failed: false,
            blind: false,
            doubtful: Vec::new(),
            counts: Counts::default(),
        };
        for (place, member) in this.tree.members().iter().enumerate() {
            let progress = Progress::begin(this.ready.as_ref(), place, member);
            this.progress.push(progress);
            this.order.push(place);
        }
        if stop.signal != Signal::KILL {
            this.survey(false);
        }
        this.found_before = this.progress.len();
        this
    }

    /// The whole tree of the root, as it was found before the first signal; none if no
    /// such look was made, or it has failed.
    pub fn tree(&self) -> Option<&ProcessTree> {
        let has_looked = self.counts.surveys > 0 && !self.blind && !self.survey_failed;
        (self.stop.scope == Scope::Tree && has_looked).then_some(&self.tree)
    }

    /// Sends the first signal to those that were found, and to those that they have
    /// started since.
    pub fn start(&mut self, now: Instant) {
        if self.stop.signal == Signal::KILL {
            self.begin_to_kill(now);
            return;
        }
        self.phase = Phase::Grace {
            until: now
                .checked_add(self.stop.grace)
                .map_or(Deadline::NEVER, Deadline::at),
        };
        self.signalled_after = Some(LastStarted::now());
        if self.means_group() {
            self.whole_group = self.signal_group(self.stop.signal);
        }
        self.send_first_signal();
        if self.stop.scope != Scope::Process {
            self.survey(false);
            self.send_first_signal();
        }
        self.step(now);
    }

    /// Does what is due at `now`.
    pub fn step(&mut self, now: Instant) {
        if !self.owner.is_current() {
            // A hook of the caller's has forked. What is left is told of, and left to the parent.
            self.phase = Phase::Done;
            return;
        }
        self.note_ended(now);
        match self.phase {
            Phase::Grace { until } => {
                if self.needs_survey {
                    self.survey(false);
                    self.send_first_signal();
                }
                if !self.survey_failed
                    && self.tree.members().iter().all(|m| m.gone)
                    && !self.may_have_others()
                {
                    self.finish();
                } else if until.reached(now) {
                    self.begin_to_kill(now);
                }
            }
            Phase::Freeze {
                until, kill_end, ..
            } => self.freeze_pass(now, until, kill_end),
            Phase::Kill { end } => {
                if self.needs_survey {
                    self.survey(false);
                    let mut all = self.tree.members().iter().zip(&self.progress);
                    let is_left = |done: &Progress| !done.killed && !done.kill_failed;
                    // One that was just found is worth more time, and one that no signal
                    // reaches is not.
                    let any_left = all.any(|(member, done)| done.awaits(member) && is_left(done));
                    if any_left && (now < end || self.kill_spent() < self.kill_work) {
                        self.freeze(now, now + KILL_BOUND);
                        return;
                    }
                    self.kill_all();
                }
                // A member that may not be signalled had the grace, and is not waited
                // for.
                let mut all = self.tree.members().iter().zip(&self.progress);
                let left = all.any(|(member, done)| done.awaits(member));
                let all_ended = !left && !self.survey_failed;
                if !all_ended && now < end {
                    return;
                }
                // However late it is: on a busy machine the time may have passed with no
                // step between.
                let has_found = self.finds_another();
                if self.kill_spent() >= self.kill_work {
                    self.kill_all();
                    self.finish();
                } else if has_found {
                    self.freeze(now, now + KILL_BOUND);
                } else if self.outruns && self.may_have_missed {
                    // The streams get a turn between two looks.
                    self.look_again(now);
                } else {
                    self.finish();
                }
            }
            Phase::Done => {}
        }
    }

    /// Looks once more when all have ended, and says whether somebody is there whom the
    /// surveys before have missed: while members end and others come it is the survey that
    /// has to be quick, and now nobody is in its way.
    fn finds_another(&mut self) -> bool {
        let before = self.progress.len();
        self.survey(false);
        let new = &self.tree.members()[before..];
        new.iter().any(|member| !member.gone)
    }

    /// The processor time that killing has taken.
    fn kill_spent(&self) -> Duration {
        time::thread_cpu().saturating_sub(self.kill_begun)
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
        if let Phase::Grace { .. } = self.phase
            && self.owner.is_current()
        {
            self.begin_to_kill(now);
        }
    }

    /// Whether a member was forced: frozen or killed.
    pub fn kills(&self) -> bool {
        self.progress.iter().any(|done| done.frozen || done.killed)
    }

    /// The processes that are still there, and those that may be. Final once it is
    /// [`finished`](Stopping::finished).
    pub fn survivors(&self) -> Vec<Survivor> {
        let left = self.tree.members().iter().filter(|member| !member.gone);
        let left = left.map(|member| Survivor {
            pid: Some(member.pid()),
            name: member.name.to_string(),
            state: member.state,
        });
        let doubtful = self.doubtful.iter().map(|stat| Survivor {
            pid: Some(stat.pid),
            name: stat.name.to_string(),
            state: Survivor::UNKNOWN,
        });
        let is_missed = self.phase == Phase::Done && self.outruns && self.may_have_missed;
        let is_hidden =
            self.stop.scope != Scope::Process && (self.blind || self.survey_failed || is_missed);
        let hidden = is_hidden.then(Survivor::hidden);
        left.chain(doubtful).chain(hidden).collect()
    }

    /// The counters so far.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Sends the first signal to the members that have not had it, and that are not the
    /// answer of others to it.
    fn send_first_signal(&mut self) {
        for &place in &self.order {
            let member = &self.tree.members()[place];
            if member.gone || self.progress[place].signalled.is_some() {
                continue;
            }
            // Who was there before the first signal is not asked about: what the system says of
            // numbers and times may be wrong.
            let answers = place >= self.found_before && self.is_answer(member);
            let progress = &mut self.progress[place];
            if answers {
                // All that it starts is part of the answer.
                progress.signalled = Some(LastStarted::NONE);
                continue;
            }
            let before = LastStarted::now();
            let mut is_sent = true;
            // A signal to the group misses no member.
            if !self.whole_group {
                let sent = member.handle.signal(self.stop.signal);
                progress.denied = is_denied(&sent);
                is_sent = sent.is_ok() || progress.denied;
            }
            progress.signalled = is_sent.then_some(before);
            // A stopped process acts on a signal only once it is continued.
            if matches!(member.state, 'T' | 't') && !progress.denied {
                let _ = member.handle.signal(Signal::CONT);
            }
        }
    }

    /// Whether a process was started after its parent had been signalled: it is the
    /// program's own answer to the signal (see the module).
    ///
    /// An orphan's parent has ended, mostly by the signal. What was started after the first
    /// of the signals counts as an answer then: `trap 'cleanup & exit' TERM` is met more
    /// often than a worker that is forked, and orphaned, in that moment.
    fn is_answer(&self, member: &Member) -> bool {
        let id = member.handle.id();
        if !self.signalled_after.is_some_and(|first| first.precedes(id)) {
            return false;
        }
        let parent = member.handle.stat().ok().map(|stat| stat.ppid);
        let signalled = match parent.and_then(|pid| self.tree.place_of(pid)) {
            Some(place) => self.progress[place].signalled,
            None => self.signalled_after,
        };
        signalled.is_some_and(|before| before.precedes(id))
    }

    /// Whether the stop is for the group of the root: by its scope, or because nobody
    /// else of the tree can be seen.
    fn means_group(&self) -> bool {
        self.stop.scope == Scope::Group || (self.stop.scope == Scope::Tree && self.blind)
    }

    /// Signals the whole group of the root in one step, if the root leads one that
    /// nobody else is in.
    fn signal_group(&mut self, signal: Signal) -> bool {
        if !self.tree.has_group_to_itself() {
            return false;
        }
        let Some(root) = self.tree.root() else {
            return false;
        };
        // The kernel goes by its own object, which means the group for ever.
        let by_pidfd = |fd| pidfd::send_group(fd, signal.number()).is_ok();
        if root.handle.pidfd().is_some_and(by_pidfd) {
            return true;
        }
        // By number only while the leader has it.
        let leads = job_control::group_of(self.root_pid) == Some(self.root_pid);
        leads
            && !root.handle.is_reaped()
            && signal::kill_group(self.root_pid, signal.number()).is_ok()
    }

    /// Whether there may be others in the group of the root, while processes cannot be
    /// listed. The root keeps its group until it is reaped, so this does not tell that
    /// there are.
    fn may_have_others(&self) -> bool {
        let leads = || job_control::group_of(self.root_pid) == Some(self.root_pid);
        let root = self.tree.root();
        self.blind
            && self.means_group()
            && root.is_some_and(|root| root.group_lives() || (!root.handle.is_reaped() && leads()))
    }
}

impl Drop for Stopping {
    /// Kills what is frozen: a stop that is given up half-way leaves no process stopped
    /// for ever.
    fn drop(&mut self) {
        // In a fork they are the parent's to end.
        if self.owner.is_current() {
            self.kill_frozen();
        }
    }
}
