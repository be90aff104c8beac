//! The loop of runs that are joined: a step of each, and one wait for all.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::between::Between;
use super::{JoinedRuns, JointStop};
use crate::drain::{InlineTurn, Moved, PollOwner};
use crate::run::collected::Failure;
use crate::run::engine::event_loop::{LATE_TURNS, Next, moment, watched};
use crate::run::engine::run_state::Run;
use crate::run::error::Foreign;
use crate::run::output::Reason;
use crate::run::watch::Demand;
use crate::spool::Memory;
use procwright_os::poll::{self, Flags};
use procwright_os::signal::NoSigpipe;
use procwright_os::time::Deadline;
use procwright_process::holders::RunPipe;

/// How long a function that has been cut is waited for. It may go on for ever, and a thread cannot
/// be ended.
const COMES_OUT: Duration = Duration::from_secs(2);

/// Whose descriptor is polled.
#[derive(Clone, Copy)]
enum Owner {
    Stage(usize, PollOwner),
    /// What is between the run of this place and the next one.
    Between(usize),
    Cancel,
    Watch,
}

impl<M: Memory> JoinedRuns<'_, M> {
    /// Goes on until nothing is left to wait for, or the caller is to have a turn, or, in a fork
    /// that a hook has made, at once. Returns whether all are over.
    pub(crate) fn drive(&mut self) -> bool {
        self.runs.iter_mut().for_each(|run| run.attend(false));
        let are_over = self.drive_on();
        self.runs.iter_mut().for_each(|run| run.attend(true));
        are_over
    }

    fn drive_on(&mut self) -> bool {
        let feeds = self.runs.iter().any(|run| run.streams.feeds());
        let _no_sigpipe = feeds.then(NoSigpipe::new);
        while !self.runs.iter().any(Run::is_in_fork) {
            let mut deadline = Deadline::NEVER;
            let mut stop = None;
            for (place, run) in self.runs.iter_mut().enumerate() {
                if run.is_closed() {
                    continue;
                }
                match run.step() {
                    Next::Over => run.close(),
                    Next::Stop(reason) => stop = stop.or(Some((reason, Some(place)))),
                    Next::Turn(until) => deadline = deadline.min(until),
                    // The caller takes turns with all, and not with one of them: it is asked
                    // again at once.
                    Next::Pause => deadline = Deadline::at(Instant::now()),
                }
            }
            self.tick(Instant::now());
            // A hook may have forked: what is left is the parent's.
            if self.runs.iter().any(Run::is_in_fork) {
                return false;
            }
            if self.runs.iter().all(Run::is_closed) {
                if self.stop.is_some() {
                    self.cut(Instant::now());
                }
                if self.passing_on().next().is_none() {
                    return true;
                }
            }
            if std::mem::take(&mut self.is_to_pause) {
                return false;
            }
            let now = Instant::now();
            let stop = stop.or_else(|| Some((self.reason_to_stop(now)?, None)));
            match stop {
                Some((reason, by)) => self.begin_stop(reason, by, now),
                None => {
                    let deadline = deadline.min(self.next_deadline());
                    self.turn(deadline.min(self.next_tick()));
                }
            }
        }
        false
    }

    /// Why all are to be stopped now, if they are.
    fn reason_to_stop(&mut self, now: Instant) -> Option<Reason> {
        if self.stop.is_some() {
            return None;
        }
        let is_cancelled = || {
            self.hooks
                .cancel
                .as_ref()
                .is_some_and(|one| one.is_cancelled())
        };
        if self.is_unwanted || self.failure.is_some() || is_cancelled() {
            return Some(Reason::Cancelled);
        }
        let reason = if self.deadline.reached(now) {
            Reason::Timeout
        } else if self.idle_deadline(now).reached(now) {
            Reason::IdleTimeout
        } else {
            self.late_turns = 0;
            self.look(now);
            return None;
        };
        // A deadline that is seen before the pipes is not believed at once, as with one run.
        let has_expired = self.hooks.timeout.has_expired() || self.hooks.idle_timeout.has_expired();
        self.late_turns += 1;
        (has_expired || self.late_turns > LATE_TURNS).then_some(reason)
    }

    /// The time at which all have been silent for too long.
    pub(super) fn idle_deadline(&self, now: Instant) -> Deadline {
        if self.hooks.idle_timeout.is_never() {
            return Deadline::NEVER;
        }
        // The silence is ours while a consumer holds up a stream.
        let last = match self.runs.iter().any(|run| run.streams.is_held()) {
            true => Some(now),
            false => self.last_read(),
        };
        self.hooks
            .idle_timeout
            .starting(last.unwrap_or(self.started))
    }

    fn next_deadline(&self) -> Deadline {
        if self.stop.is_some() {
            return self.give_up;
        }
        let now = Instant::now();
        self.deadline
            .min(self.idle_deadline(now))
            .min(self.next_look(now))
    }

    /// Begins the stop of all that are left, the last one first.
    fn begin_stop(&mut self, reason: Reason, by: Option<usize>, now: Instant) {
        for (place, joint) in self.joints.iter_mut().enumerate() {
            joint.note_stop(self.shape.behind(place).len());
        }
        // All are prepared before the first signal: or the end of one would be the end of the
        // input of the next, which would seem to have ended by itself.
        let mut prepared = Vec::with_capacity(self.runs.len());
        // Of several that read the same one, the first is to stop what that has left behind.
        let mut inherited = None;
        for place in 0..self.runs.len() {
            let run = &self.runs[place];
            // One that is over may have left a reader behind, for whom what is before it waits.
            let is_over = run.is_closed() && self.pipe_before(place).is_none();
            if is_over || run.is_stopping() {
                continue;
            }
            if by != Some(place) && !run.program.has_exited() && run.program.running.has_exited() {
                self.note_end(place);
                let run = &mut self.runs[place];
                run.exited(now);
                if run.is_over(now) {
                    continue;
                }
            }
            let own = match reason {
                // The limit was another's.
                Reason::OutputLimit | Reason::Timeout | Reason::IdleTimeout
                    if by.is_some_and(|other| other != place) =>
                {
                    Reason::Cancelled
                }
                _ => reason,
            };
            let before = self.shape.before(place).map(|(before, _)| before);
            let inherits = inherited.is_none() || inherited != before;
            inherited = before;
            let heirs = inherits.then(|| self.heirs_before(place));
            let others = heirs.into_iter().flatten().chain(self.pipe_before(place));
            let others = others.collect();
            let diagnosis = match by {
                None => self.diagnosis(reason, place),
                Some(_) => self.runs[place].diagnosis(own),
            };
            self.runs[place].prepare_stop(own, diagnosis, others, now);
            prepared.push(place);
        }
        let is_limit = matches!(reason, Reason::Timeout | Reason::IdleTimeout);
        let is_over = prepared.is_empty() && self.passing_on().next().is_none();
        if is_over && by.is_none() && is_limit {
            // All had ended by themselves, in time.
            return;
        }
        self.stop.get_or_insert(JointStop { reason, by });
        if let Some(stopping) = self.hooks.stopping.as_ref().filter(|_| !self.is_unwanted) {
            // Relaxed: it leads to no other memory, and the signals behind it are system calls.
            stopping.store(true, Ordering::Relaxed);
        }
        // From the last to the first: one that has seen the end of its input before its own
        // signal takes half of it for all, and a loader commits.
        for place in prepared.into_iter().rev() {
            self.runs[place].send_first_signal();
        }
        if self.is_hurried {
            self.hurry();
        }
    }

    /// The pipes into the run of this place of which the program before it is gone and its run is
    /// over: then nobody else stops those that it has left behind with an end to write.
    fn heirs_before(&self, place: usize) -> Vec<RunPipe> {
        let before = self.shape.all_before(place);
        let over = before.filter(|before| self.runs[*before].is_closed());
        over.filter_map(|before| self.joints[before].write_end())
            .collect()
    }

    /// The pipe into the run of this place from a thread of ours that passes on.
    fn pipe_before(&self, place: usize) -> Option<RunPipe> {
        let (before, reader) = self.shape.before(place)?;
        self.joints[before].between.as_ref()?.read_end(reader)
    }

    /// Buffers, functions, fans and a merge that pass on, by the places of the runs that they are behind.
    fn passing_on(&self) -> impl Iterator<Item = (usize, &Between)> {
        let joints = self.joints.iter().enumerate();
        let between = joints.filter_map(|(place, joint)| Some((place, joint.between.as_ref()?)));
        between.filter(|(_, between)| between.awaited_fd().is_some())
    }

    /// Has nothing more passed on: those that the bytes were for are gone, or cannot be ended.
    /// A function that does not come out is not waited for any longer than that of a stop.
    fn cut(&mut self, now: Instant) {
        self.passing_on().for_each(|(_, between)| between.cut());
        self.give_up = self.give_up.min(Deadline::at(now + COMES_OUT));
        if self.give_up.reached(now) {
            let betweens = self.joints.iter_mut();
            let betweens = betweens.filter_map(|joint| joint.between.as_mut());
            betweens.for_each(Between::give_up);
        }
    }

    /// Takes note of the end of what is behind the run of this place.
    fn note_end_of_between(&mut self, place: usize) {
        let between = self.joints[place].between.as_mut();
        if let Some(Err(failure)) = between.map(Between::note_end) {
            self.failure.get_or_insert((Some(place), failure));
        }
    }

    /// Ends the grace of all.
    fn hurry(&mut self) {
        let left = self.runs.iter_mut().filter(|run| !run.is_closed());
        left.for_each(|run| run.demand(Demand::Kill));
    }

    /// Looks at the pipe behind a program that has ended, as soon as that is seen.
    fn note_end(&mut self, place: usize) {
        if let Some(joint) = self.joints.get_mut(place) {
            joint.behind_writer = joint.look();
        }
    }

    /// Moves what can be moved; if that was nothing, waits until something can be, or a
    /// program has ended, or `deadline` comes.
    fn turn(&mut self, deadline: Deadline) {
        let mut turns: Vec<InlineTurn> = Vec::new();
        turns.resize_with(self.runs.len(), InlineTurn::default);
        let (mut sleeps, mut deadline) = (true, deadline);
        for (run, turn) in self.runs.iter_mut().zip(&mut turns) {
            if run.is_closed() {
                continue;
            }
            match run.streams.move_bytes(turn) {
                Ok(Moved::Nothing) => {}
                Ok(Moved::Some | Moved::Flood) => sleeps = false,
                Err(error) => {
                    run.note_refusal(error);
                    sleeps = false;
                }
            }
            deadline = deadline.min(run.streams.next_look());
        }
        let then = Instant::now();
        let until = match sleeps {
            true => deadline,
            false => Deadline::at(then),
        };
        let mut is_watch_ready = false;
        match self.wait(until) {
            Ok(ready) => {
                for owner in ready {
                    match owner {
                        Owner::Stage(place, owner) => {
                            let run = &mut self.runs[place];
                            if let Err(error) = run.streams.note_ready(owner, &mut turns[place]) {
                                run.note_refusal(error);
                            }
                        }
                        Owner::Between(place) => self.note_end_of_between(place),
                        Owner::Watch => is_watch_ready = true,
                        // `reason_to_stop` asks it.
                        Owner::Cancel => {}
                    }
                }
                let runs = self.runs.iter_mut().filter(|run| !run.is_closed());
                runs.for_each(|run| run.streams.note_wait(then, sleeps));
            }
            // A signal handler has run: see `Inline::turn`.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                if let Some(run) = self.runs.iter_mut().find(|run| !run.is_closed()) {
                    run.note_refusal(error);
                }
            }
        }
        if is_watch_ready {
            self.ask_watch();
        }
        for (place, turn) in turns.into_iter().enumerate() {
            let [has_ended, ..] = turn.ready;
            if has_ended {
                self.note_end(place);
            }
            if !self.runs[place].is_closed() {
                self.runs[place].after_turn(turn);
            }
        }
    }

    fn wait(&self, deadline: Deadline) -> io::Result<Vec<Owner>> {
        let mut fds = Vec::with_capacity(2 * self.runs.len() + 2);
        let mut owners = Vec::with_capacity(fds.capacity());
        for (place, run) in self.runs.iter().enumerate() {
            if run.is_closed() {
                continue;
            }
            let watched = watched(&run.program, &run.phase, &run.host);
            run.streams.awaits(watched, &mut |fd, owner| {
                fds.push(fd);
                owners.push(Owner::Stage(place, owner));
            })?;
        }
        for (place, between) in self.passing_on() {
            if let Some(fd) = between.awaited_fd() {
                fds.push(poll::Fd::from_borrowed_fd(fd, Flags::IN));
                owners.push(Owner::Between(place));
            }
        }
        if let Some(cancel) = self.hooks.cancel.as_ref().filter(|_| self.stop.is_none()) {
            fds.push(poll::Fd::from_borrowed_fd(cancel.as_fd(), Flags::IN));
            owners.push(Owner::Cancel);
        }
        if let Some(watch) = &self.hooks.watch {
            fds.push(poll::Fd::from_borrowed_fd(watch.fd(), Flags::IN));
            owners.push(Owner::Watch);
        }
        poll::poll(&mut fds, deadline)?;
        let ready = fds.iter().zip(owners);
        let ready = ready.filter(|(fd, _)| !fd.revents().is_empty());
        Ok(ready.map(|(_, owner)| owner).collect())
    }

    /// Asks the watch of all what it wants. It is told of the last program that is left.
    fn ask_watch(&mut self) {
        let left = self.runs.iter().rev().find(|run| !run.is_closed());
        // Behind the last program there may be something that still passes on.
        let left = left.or(self.runs.last());
        let (Some(run), Some(watch)) = (left, &mut self.hooks.watch) else {
            return;
        };
        let is_running = !run.program.has_exited();
        let moment = moment(&run.streams, &run.program.running, is_running, &run.phase);
        let is_stopping = moment.stopping;
        let demand = match watch.ready(moment) {
            Ok(demand) => demand,
            Err(error) => {
                let failure = (None, Failure::Foreign(Foreign::Watch, error));
                self.failure.get_or_insert(failure);
                match is_stopping {
                    true => Demand::Kill,
                    false => Demand::Stop,
                }
            }
        };
        self.demand(demand);
    }

    /// Notes what the caller wants, or a watch.
    pub(crate) fn demand(&mut self, demand: Demand) {
        match demand {
            Demand::Nothing => {}
            Demand::Pause => self.is_to_pause = true,
            Demand::Stop => self.is_unwanted = true,
            Demand::Kill => {
                self.is_unwanted = true;
                self.is_hurried = true;
                if self.stop.is_some() {
                    self.hurry();
                }
            }
        }
    }
}
