//! The loop of a run, and what it looks at in each turn.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use super::host::Host;
use super::program::Program;
use super::run_state::{Run, RunPhase};
use crate::child::ChildProcess;
use crate::drain::{Inline, InlineTurn, WATCH};
use crate::run::collected::Failure;
use crate::run::error::Foreign;
use crate::run::output::Reason;
use crate::run::watch::{Demand, Moment};
use crate::spool::Memory;
use crate::std_stream::PerStream;
use crate::taps::ConsumerRole;
use procwright_os::signal::NoSigpipe;
use procwright_os::time::Deadline;

/// How many turns a deadline that has come is not yet believed: one finds out what
/// is ready, a second one reads.
pub(super) const LATE_TURNS: u8 = 2;

/// What comes next in a run.
pub(super) enum Next {
    /// A turn of the streams, until this time at most.
    Turn(Deadline),
    /// The begin of its stop, for this reason.
    Stop(Reason),
    /// A turn of the caller's, or nothing more, in a fork.
    Pause,
    /// Nothing: it is over.
    Over,
}

/// What a run waits for beside its streams: see [`Run::after_turn`].
pub(super) fn watched<'f>(
    program: &'f Program,
    phase: &'f RunPhase,
    host: &'f Host<'_>,
) -> [Option<BorrowedFd<'f>>; WATCH] {
    let (stop_fd, cancel_fd) = match phase {
        RunPhase::Stopping(stop) => (stop.machine.fd(), None),
        RunPhase::Moving { .. } | RunPhase::Over(_) => (None, host.cancel_fd()),
    };
    [program.awaited_fd(), stop_fd, cancel_fd, host.watch_fd()]
}

impl<M: Memory> Run<'_, M> {
    /// Goes on until nothing is left to wait for, or until the caller wants a turn, or, in a
    /// fork that a hook has made, at once. Returns whether it is over.
    pub(crate) fn drive(&mut self) -> bool {
        if !self.is_closed() {
            self.attend(false);
            if self.drive_on() {
                self.close();
            }
            self.attend(true);
        }
        self.is_closed()
    }

    /// Says whether the program is looked after. A panic in a hook leaves one that nobody will
    /// end, wherever it is caught: then the drop kills it.
    pub(super) fn attend(&mut self, attended: bool) {
        self.program.running.attend(attended);
    }

    /// True once nothing is left to wait for.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.phase, RunPhase::Over(_))
    }

    /// Notes that nothing is left to wait for.
    pub(super) fn close(&mut self) {
        self.over_at = Some(Instant::now());
        self.phase = match std::mem::take(&mut self.phase) {
            RunPhase::Stopping(stop) => RunPhase::Over(Some(stop)),
            RunPhase::Moving { .. } | RunPhase::Over(_) => RunPhase::Over(None),
        };
    }

    fn drive_on(&mut self) -> bool {
        let _no_sigpipe = self.streams.feeds().then(NoSigpipe::new);
        loop {
            let deadline = match self.step() {
                Next::Over => return true,
                Next::Pause => return false,
                Next::Stop(reason) => {
                    self.begin_stop(reason, Instant::now());
                    continue;
                }
                Next::Turn(deadline) => deadline,
            };
            let watched = watched(&self.program, &self.phase, &self.host);
            match self.streams.turn(watched, deadline) {
                Ok(turn) => self.after_turn(turn),
                Err(error) => self.note_refusal(error),
            }
        }
    }

    /// Does what is to be done before the next turn of the streams.
    pub(super) fn step(&mut self) -> Next {
        if std::mem::take(&mut self.host.watch_was_early) {
            self.ask_watch(false);
        }
        if self.is_in_fork() {
            return Next::Pause;
        }
        let now = Instant::now();
        self.note_consumers();
        self.note_events();
        if let RunPhase::Moving { .. } = self.phase
            && !self.note_silence(now)
            && let Some(reason) = self.reason_to_stop(now)
        {
            return Next::Stop(reason);
        }
        self.step_stop(now);
        if self.is_over(now) {
            return Next::Over;
        }
        if std::mem::take(&mut self.host.pause) {
            return Next::Pause;
        }
        self.tick(now);
        match self.is_in_fork() {
            true => Next::Pause,
            false => Next::Turn(self.next_deadline()),
        }
    }

    /// Notes which consumers have finished or failed.
    fn note_consumers(&mut self) {
        let mut failures = Vec::new();
        for consumer in &mut self.consumers {
            for stream in consumer.newly_broken() {
                self.streams.close(stream);
            }
            if !consumer.just_finished() || consumer.error.is_none() {
                continue;
            }
            let what = match consumer.role {
                ConsumerRole::Required => Foreign::Callback,
                ConsumerRole::Relay => Foreign::Relay,
                ConsumerRole::Optional | ConsumerRole::FullFile(_) => continue,
            };
            let Some(error) = consumer.error.take() else {
                continue;
            };
            if consumer.role == ConsumerRole::Relay {
                let streams = consumer.streams.chosen();
                streams.for_each(|stream| self.streams.close(stream));
            }
            failures.push(Failure::Foreign(what, error));
        }
        failures.into_iter().for_each(|failure| self.fail(failure));
    }

    /// Notes that the hook for events has failed, and tells it when no more events can
    /// come: its end is waited for as that of a consumer is.
    fn note_events(&mut self) {
        let Some(events) = &self.host.events else {
            return;
        };
        if self.program.has_exited() && self.streams.all_ended() {
            events.end();
        }
        if let Some(error) = events.take_error() {
            self.fail(Failure::Foreign(Foreign::Event, error));
        }
    }

    /// Ends the streams once they have been silent for as long as
    /// [`Until::Silent`](crate::Until::Silent) says. Returns whether the time for that has
    /// come; what came late is found by the turns that a deadline gets, and is no silence.
    fn note_silence(&mut self, now: Instant) -> bool {
        let silent_at = self.silence_deadline();
        // Of a silence and a timeout that are both seen late the earlier one counts.
        let is_time = silent_at.reached(now) && silent_at.min(self.deadline) == silent_at;
        if is_time && !self.may_be_mistaken(now) {
            self.program.running.trace().say(|| "silent since the exit");
            self.finish_streams();
        }
        is_time
    }

    /// The time at which the streams have been silent long enough to end.
    fn silence_deadline(&self) -> Deadline {
        // A stream that is held up by a consumer is not silent, and one on a thread of its
        // own comes back from there before it is.
        if self.streams.is_held() || self.streams.is_split() || self.streams.all_ended() {
            return Deadline::NEVER;
        }
        let last_read = self.streams.last_read();
        self.spec.until.silent_at(self.program.exited_at, last_read)
    }

    /// Why the run is to be stopped now, if it is.
    fn reason_to_stop(&mut self, now: Instant) -> Option<Reason> {
        let reason = if self.host.wants_end() || self.failure.is_some() {
            Reason::Cancelled
        } else if self.streams.over_limit() {
            Reason::OutputLimit
        } else if self.deadline.reached(now) {
            Reason::Timeout
        } else if self.idle_deadline().reached(now) {
            Reason::IdleTimeout
        } else {
            if let RunPhase::Moving { late_turns, .. } = &mut self.phase {
                *late_turns = 0;
            }
            self.tell_holders(now);
            self.look(now);
            self.look_for_input_wanted(now);
            return None;
        };
        let is_deadline = matches!(reason, Reason::Timeout | Reason::IdleTimeout);
        (!is_deadline || !self.may_be_mistaken(now)).then_some(reason)
    }

    /// True if a deadline may have come only because we were not scheduled:
    ///
    /// 1. The program ends, or writes.
    /// 2. The deadline comes.
    /// 3. We run again, and see the clock before the pipes.
    ///
    /// The program was in time, and unread bytes are no silence. After [`LATE_TURNS`]
    /// the pipes have been looked at, and the clock is right.
    fn may_be_mistaken(&mut self, now: Instant) -> bool {
        // A timeout that has expired before it began stops whatever there is.
        if self.spec.timeout.has_expired() || self.spec.idle_timeout.has_expired() {
            return false;
        }
        if let RunPhase::Moving { late_turns, .. } = &mut self.phase {
            *late_turns += 1;
            if *late_turns <= LATE_TURNS {
                return true;
            }
        }
        self.is_over(now)
    }

    pub(super) fn idle_deadline(&self) -> Deadline {
        // The silence is ours while a consumer holds up the stream, or works off what
        // it has after the program's end.
        let has_exited = self.program.has_exited();
        // After the exit a silence may be what the run waits for, and no fault.
        let is_done =
            has_exited && (self.streams.all_ended() || self.spec.until.silence().is_some());
        if self.spec.idle_timeout.is_never() || self.streams.is_held() || is_done {
            return Deadline::NEVER;
        }
        let last = self.streams.last_read().unwrap_or(self.started);
        self.spec.idle_timeout.starting(last)
    }

    fn next_deadline(&self) -> Deadline {
        let own = match &self.phase {
            RunPhase::Stopping(stop) => stop.deadline(),
            RunPhase::Moving { told_holders, .. } => {
                let told = match self.program.exited_at {
                    Some(exited) if !told_holders && !self.streams.all_ended() => {
                        self.held_at(exited)
                    }
                    _ => Deadline::NEVER,
                };
                let silent = self.silence_deadline();
                self.deadline
                    .min(self.idle_deadline())
                    .min(silent)
                    .min(told)
                    .min(self.next_look())
                    .min(self.next_prompt_look())
            }
            RunPhase::Over(_) => Deadline::NEVER,
        };
        self.host.next_tick().min(own)
    }

    /// Looks at what became ready in a turn of the streams.
    pub(super) fn after_turn(&mut self, turn: InlineTurn) {
        let now = Instant::now();
        let [has_ended, _stop, _cancel, is_watch_ready] = turn.ready;
        // A signal, say, that the program answered by its end:
        //
        // 1. The poll looks at the watch, and finds nothing.
        // 2. The signal comes, to the watch and to the program.
        // 3. The program ends by it.
        // 4. The poll looks at the pidfd, and finds the end.
        //
        // The watch is asked first, or the signal would seem to come after the end.
        if is_watch_ready || (has_ended && self.host.watch_is_ready()) {
            self.ask_watch(!self.program.has_exited());
        }
        if self.is_in_fork() {
            return;
        }
        if has_ended {
            self.exited(now);
        }
        if let Some(error) = turn.feed_failed {
            self.fail(Failure::Foreign(Foreign::Stdin, error));
        }
    }

    /// Asks the watch what it wants. `is_running` says whether the program was there
    /// when it became ready.
    fn ask_watch(&mut self, is_running: bool) {
        let moment = moment(
            &self.streams,
            &self.program.running,
            is_running,
            &self.phase,
        );
        if let Some(error) = self.host.ask_watch(moment) {
            self.fail(Failure::Foreign(Foreign::Watch, error));
        }
    }

    /// Notes what the caller of a run that pauses wants.
    pub(crate) fn demand(&mut self, demand: Demand) {
        self.host.note(demand);
    }

    /// Calls the hook of the clock if it is time for that.
    fn tick(&mut self, now: Instant) {
        let is_running = !self.program.has_exited();
        let ticker = self.host.ticker.as_mut();
        if let Some(hook) = ticker.and_then(|ticker| ticker.due(now)) {
            let running = &self.program.running;
            hook(moment(&self.streams, running, is_running, &self.phase));
        }
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        if self.refusals > 1 {
            return true;
        }
        let has_consumed =
            self.consumers.iter().all(|consumer| consumer.finished) && self.host.has_told_events();
        match &self.phase {
            RunPhase::Moving { .. } => {
                self.program.has_exited()
                    && self.streams.all_ended()
                    && has_consumed
                    && self.failure.is_none()
            }
            RunPhase::Stopping(stop) => {
                stop.machine.finished()
                    && self.streams.all_ended()
                    && (has_consumed || stop.patience.reached(now))
            }
            RunPhase::Over(_) => true,
        }
    }
}

/// How far a run is. Made of its parts: the hook that is told of it is another.
pub(super) fn moment<'m, M: Memory>(
    streams: &'m Inline<M>,
    running: &ChildProcess,
    is_running: bool,
    phase: &RunPhase,
) -> Moment<'m> {
    let PerStream { stdout, stderr } = streams.flows();
    let stop = match phase {
        RunPhase::Stopping(stop) => Some(stop),
        RunPhase::Moving { .. } | RunPhase::Over(_) => None,
    };
    Moment {
        pid: running.pid(),
        stopping: stop.is_some(),
        killing: stop.is_some_and(|stop| stop.machine.kills()),
        running: is_running,
        pty: streams.terminal(),
        stdout,
        stderr,
    }
}
