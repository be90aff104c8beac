//! The life of a run: one loop on the caller's thread that moves bytes, watches
//! the clock and steps a stop, and never waits for anything but all of them.

mod conclude;
mod connect;
mod held;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::output::Reason;
use super::tap::Consumer;
use super::{Demand, Duty, EventHook, Every, Extras, Foreign, Kind, Moment, Trouble, Watch};
use crate::cancel::Cancel;
use crate::child::{self, Running, Unstarted};
use crate::drain::{Inline, Turn};
use crate::error::{Invalid, SpawnError, Step};
use crate::holders::{Holders, RunPipe};
use crate::ident::ProcId;
use crate::process::{Stopping, Target};
use crate::spec::{Spec, Stdin, Until};
use crate::spool::Memory;
use crate::sys::signal::NoSigpipe;
use crate::sys::wake::Wake;
use crate::sys::{poll, proc};

use crate::time::Deadline;
use crate::trace::Trace;
use connect::{full_files, plain_relay};
use held::{HELD_AFTER, activities};

/// How long, from the beginning of a stop, consumers may go on with what they
/// have: enough to write it to a disk, too short for a callback that sleeps for
/// ever to hold up a timeout.
const PATIENCE: Duration = Duration::from_millis(500);

const NAMES: [&str; 2] = ["stdout", "stderr"];

/// Starts `spec`. Nothing is moved, and no clock looked at, before [`Run::drive`].
pub(crate) fn start<'a, M: Memory>(
    spec: &Arc<Spec>,
    extras: Extras<'a>,
) -> Result<Run<'a, M>, Unstarted> {
    check(spec)?;
    let mut taps = extras.taps;
    for (taps, file) in taps.iter_mut().zip(full_files(spec)?) {
        taps.extend(file);
    }
    let mut both = extras.both;
    match extras.relay {
        Some(relay) => both.push((Kind::Pieces(relay), Duty::Relays)),
        None => {
            for (stream, taps) in taps.iter_mut().enumerate() {
                taps.extend(plain_relay(spec, stream)?);
            }
        }
    }
    let consumes = !both.is_empty() || taps.iter().any(|taps| !taps.is_empty());
    let slow = extras.producer.is_some() || consumes;
    let wake = match slow {
        true => Some(Arc::new(Wake::new().map_err(no_descriptor)?)),
        false => None,
    };
    let feeds = extras.producer.is_some() || matches!(spec.stdin, Stdin::Bytes(_));

    let started = Instant::now();
    let started_ticks = proc::now_ticks();
    let mut early = false;
    let (running, ends) = child::start(spec, feeds, None, Trace::begin(), || {
        // What has happened before there is a program to answer it.
        let watch = extras.watch.as_ref();
        early = watch.is_some_and(|watch| is_readable(watch.fd()));
    })?;
    // From here on the child exists, and every way out stops and reaps it.
    let mut run = Run {
        spec: Arc::clone(spec),
        started,
        started_ticks,
        deadline: spec.timeout.starting(started),
        pipes: ends.pipes(),
        running,
        exited_at: None,
        said_held: false,
        inline: Inline::new([None, None], None, None, None, false, false),
        consumers: Vec::new(),
        cancel: extras.cancel,
        on_event: extras.on_event,
        watch: extras.watch,
        every: extras
            .every
            .map(|(period, tell)| Every::new(period, tell, started)),
        demanded: false,
        adopts: extras.adopts,
        stop: None,
        trouble: None,
        last_looks: 0,
        killing: false,
        pausing: false,
        refused: false,
        given_up: false,
        over: false,
    };
    if let Err(error) = run.connect(ends, extras.producer, taps, both, wake) {
        // No drain will tell those that have started of an end.
        for consumer in &run.consumers {
            consumer.fifo.end_all();
        }
        run.fail(Trouble::Io(error));
    }
    if early {
        run.ask_watch(false);
    }
    Ok(run)
}

/// Finds what can be found wrong in a run before it prepares anything.
pub(crate) fn check(spec: &Spec) -> Result<(), Invalid> {
    spec.check()?;
    if matches!(spec.stdin, Stdin::Pipe) {
        let hint = "pass bytes, an iterator or a reader, or use spawn()";
        return Err(Invalid::new(
            "stdin",
            "is a pipe that nobody would write to",
            hint,
        ));
    }
    if spec.channel.is_some() {
        return Err(Invalid::new(
            "channel",
            "is for spawn(), not for run()",
            "spawn the child, and take its end of the queue there",
        ));
    }
    Ok(())
}

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let fd = poll::Fd::from_borrowed_fd(fd, poll::Flags::IN);
    poll::one(fd, Deadline::at(Instant::now())).unwrap_or(false)
}

fn no_descriptor(error: io::Error) -> SpawnError {
    SpawnError::new(Step::Pipe, "", error)
}

/// A stop under way, and what was seen when it began.
struct Stop {
    reason: Reason,
    machine: Stopping,
    /// Until when consumers may finish what they have.
    patience: Deadline,
    processes: Vec<String>,
    held: [Option<Holders>; 2],
    /// Which streams had not ended.
    open: [bool; 2],
    /// That it came to SIGKILL was traced.
    told_kill: bool,
}

/// A run under way.
pub(crate) struct Run<'a, M> {
    spec: Arc<Spec>,
    started: Instant,
    /// The same in the unit of `/proc`: nothing of the run is older.
    started_ticks: u64,
    deadline: Deadline,
    pipes: Vec<RunPipe>,
    running: Running,
    /// Set when the program has ended. It stays a zombie until the run is over,
    /// so that its pid and group keep meaning it while others are stopped.
    exited_at: Option<Instant>,
    said_held: bool,
    inline: Inline<M>,
    consumers: Vec<Consumer>,
    cancel: Option<Cancel>,
    on_event: Option<EventHook<'a>>,
    watch: Option<Box<dyn Watch + 'a>>,
    every: Option<Every<'a>>,
    /// The watch wants the run stopped.
    demanded: bool,
    adopts: bool,
    stop: Option<Stop>,
    trouble: Option<Trouble>,
    /// Turns since a deadline came.
    last_looks: u8,
    /// The watch wants no more grace.
    killing: bool,
    /// The watch wants the caller to have a turn.
    pausing: bool,
    /// The system has refused us once, and the streams were given up.
    refused: bool,
    /// The system refuses to let us wait.
    given_up: bool,
    /// Nothing is left to wait for: what is wanted from then on comes too late.
    over: bool,
}

impl<M: Memory> Run<'_, M> {
    /// Goes on until nothing is left to wait for, or until the watch wants a pause.
    /// Whether it is over.
    pub(crate) fn drive(&mut self) -> bool {
        if !self.over {
            // What a panic leaves in the middle is nobody's, whoever catches it.
            self.running.attend(false);
            self.over = self.drive_on();
            self.running.attend(true);
        }
        self.over
    }

    fn drive_on(&mut self) -> bool {
        let _no_sigpipe = self.inline.feeds().then(NoSigpipe::new);
        loop {
            let now = Instant::now();
            self.look(now);
            if let Some(stop) = &mut self.stop {
                if self.killing {
                    stop.machine.kill_now(now);
                }
                stop.machine.step(now);
                if !stop.told_kill && stop.machine.kills() {
                    stop.told_kill = true;
                    self.running
                        .trace()
                        .say(|| "kill: SIGKILL to all that are left");
                }
                if stop.machine.finished() {
                    self.after_stop(now);
                }
            }
            if self.is_over(now) {
                return true;
            }
            if std::mem::take(&mut self.pausing) {
                return false;
            }
            self.tick(now);
            let watch = [
                self.running.pidfd().filter(|_| self.exited_at.is_none()),
                self.stop.as_ref().and_then(|stop| stop.machine.fd()),
                self.cancel
                    .as_ref()
                    .filter(|_| self.stop.is_none())
                    .map(AsFd::as_fd),
                self.watch.as_ref().map(|watch| watch.fd()),
            ];
            match self.inline.turn(watch, self.next_deadline()) {
                Ok(turn) => self.after(turn),
                Err(error) => self.refused(error),
            }
        }
    }

    /// Looks at everything that may end the run.
    fn look(&mut self, now: Instant) {
        for consumer in &mut self.consumers {
            for stream in consumer.newly_broken() {
                self.inline.close(stream);
            }
            if !consumer.look() || consumer.error.is_none() {
                continue;
            }
            let what = match consumer.duty {
                Duty::Required => Foreign::Callback,
                Duty::Relays => Foreign::Relay,
                Duty::Optional | Duty::Keeps(_) => continue,
            };
            let Some(error) = consumer.error.take() else {
                continue;
            };
            if consumer.duty == Duty::Relays {
                let streams = (0..2).filter(|&stream| consumer.streams[stream]);
                streams.for_each(|stream| self.inline.close(stream));
            }
            if self.trouble.is_none() {
                self.trouble = Some(Trouble::Foreign(what, error));
            }
        }
        if self.stop.is_some() {
            return;
        }
        let cancelled = self.demanded || self.cancel.as_ref().is_some_and(Cancel::is_cancelled);
        let reason = if cancelled || self.trouble.is_some() {
            Reason::Cancelled
        } else if self.inline.over_limit() {
            Reason::OutputLimit
        } else if self.deadline.reached(now) {
            Reason::Timeout
        } else if self.idle_deadline().reached(now) {
            Reason::IdleTimeout
        } else {
            self.last_looks = 0;
            self.tell_held(now);
            match &self.trouble {
                None => return,
                Some(_) => Reason::Cancelled,
            }
        };
        if matches!(reason, Reason::Timeout | Reason::IdleTimeout) && self.may_be_mistaken(now) {
            return;
        }
        self.begin_stop(reason, now);
    }

    /// Whether a deadline came while we were not looking. What happened before
    /// it goes first: a program that ended in time is not called late because we
    /// were, and bytes that lie there unread are no silence. One turn finds out
    /// who is ready, a second one reads; then the clock is right.
    fn may_be_mistaken(&mut self, now: Instant) -> bool {
        // What has expired before it began is to stop whatever there is.
        if self.spec.timeout.has_expired() || self.spec.idle_timeout.has_expired() {
            return false;
        }
        self.last_looks += 1;
        self.last_looks <= 2 || self.is_over(now)
    }

    fn idle_deadline(&self) -> Deadline {
        // While a consumer of ours holds up the stream, or works off what it has
        // after the program's end, the silence is ours.
        let is_done = self.exited_at.is_some() && self.inline.all_ended();
        if self.spec.idle_timeout.is_never() || self.inline.is_held() || is_done {
            return Deadline::NEVER;
        }
        let last = self.inline.last_read().unwrap_or(self.started);
        self.spec.idle_timeout.starting(last)
    }

    fn next_deadline(&self) -> Deadline {
        let tick = self.every.as_ref().map_or(Deadline::NEVER, Every::next);
        tick.min(self.own_deadline())
    }

    fn own_deadline(&self) -> Deadline {
        if let Some(stop) = &self.stop {
            return stop.machine.deadline().min(match stop.machine.finished() {
                true => stop.patience,
                false => Deadline::NEVER,
            });
        }
        let held = match (self.exited_at, self.said_held) {
            (Some(exited), false) if !self.inline.all_ended() => Deadline::at(exited + HELD_AFTER),
            _ => Deadline::NEVER,
        };
        self.deadline.min(self.idle_deadline()).min(held)
    }

    /// After a turn of the streams.
    fn after(&mut self, turn: Turn) {
        let now = Instant::now();
        let [ended, _stop, _cancel, watched] = turn.ready;
        // What the program may have answered by its end came before that, but
        // possibly after the look at the watch that found nothing.
        let answered = ended && self.watch.as_ref().is_some_and(|w| is_readable(w.fd()));
        if watched || answered {
            self.ask_watch(self.exited_at.is_none());
        }
        if ended {
            self.exited(now);
        }
        if let Some(error) = turn.feed_failed {
            self.fail(Trouble::Foreign(Foreign::Stdin, error));
        }
    }

    fn ask_watch(&mut self, running: bool) {
        let Some(watch) = &mut self.watch else { return };
        let moment = Moment {
            running,
            ..moment(&self.inline, &self.running, self.stop.is_some())
        };
        let demand = watch.ready(moment).unwrap_or_else(|error| {
            // Of several the first is the cause; the next is impatience.
            self.trouble
                .get_or_insert(Trouble::Foreign(Foreign::Watch, error));
            match moment.stopping {
                true => Demand::Kill,
                false => Demand::Stop,
            }
        });
        self.demand(demand);
    }

    /// Does what the watch wants, or the caller of a run that pauses.
    pub(crate) fn demand(&mut self, demand: Demand) {
        self.pausing |= demand == Demand::Pause;
        self.demanded |= matches!(demand, Demand::Stop | Demand::Kill);
        // Also when it is the first demand, before there is a stop.
        self.killing |= demand == Demand::Kill;
    }

    /// Tells who wants to know by the clock.
    fn tick(&mut self, now: Instant) {
        let due = self
            .every
            .as_mut()
            .filter(|every| every.next().reached(now));
        if let Some(every) = due {
            let moment = Moment {
                running: self.exited_at.is_none(),
                ..moment(&self.inline, &self.running, self.stop.is_some())
            };
            every.tell(moment, now);
        }
    }

    /// The program has ended. All that it wrote is in its pipes.
    fn exited(&mut self, now: Instant) {
        self.exited_at = Some(now);
        self.running.trace().say(|| "the program has exited");
        self.running.take_terminal();
        self.inline.exited();
        if self.spec.until == Until::Exit && self.stop.is_none() {
            self.finish_streams();
        }
    }

    fn finish_streams(&mut self) {
        self.inline.stop_feeding();
        if let Err(error) = self.inline.finish() {
            self.refused(error);
        }
    }

    /// Reading or waiting failed: the streams are given up, what was read of
    /// them stays.
    fn refused(&mut self, error: io::Error) {
        // Not for any other trouble: the stop that it began must go on.
        self.given_up = std::mem::replace(&mut self.refused, true);
        self.inline.abandon();
        self.fail(Trouble::Io(error));
    }

    fn fail(&mut self, trouble: Trouble) {
        // The first one is the cause; a second is a consequence.
        self.trouble.get_or_insert(trouble);
    }

    /// Which process the program is or was. Where the host ignores SIGCHLD or
    /// reaps what it did not start, the number may be a stranger's by now, and
    /// whoever is named here gets killed.
    fn root(&self) -> ProcId {
        let pid = self.running.pid();
        let gone = ProcId::unread(pid, self.started_ticks);
        let stat = proc::stat(pid);
        // Read first and asked second: it held its number when it was read.
        if !self.running.has_exited() {
            return stat.map_or(gone, |stat| ProcId::from(&stat));
        }
        // Ended and not reaped, it is a zombie.
        match proc::stat(pid) {
            Ok(stat) if stat.is_gone() => ProcId::from(&stat),
            _ => gone,
        }
    }

    fn begin_stop(&mut self, reason: Reason, now: Instant) {
        let stop = self.spec.stop;
        let trace = self.running.trace();
        trace.say(|| format!("stop, {}: {stop}", reason.name()));
        let root = self.root();
        let open = self.open_pipes();
        let target = Target {
            root,
            pipes: open.clone(),
            adopts: self.adopts,
        };
        // Seen before the first signal: afterwards all that could be told is
        // who obeyed.
        let processes = activities(&target);
        let held = self.holders(&open);
        let machine = Stopping::begin(stop, target, self.running.pidfd(), now);
        self.stop = Some(Stop {
            reason,
            machine,
            patience: Deadline::at(now + PATIENCE),
            processes,
            held,
            open: self.inline.open_streams(),
            told_kill: false,
        });
    }

    /// All that was to be stopped is gone, or given up.
    fn after_stop(&mut self, now: Instant) {
        if self.exited_at.is_none() && self.running.has_exited() {
            self.exited(now);
        }
        if !self.inline.all_ended() {
            self.finish_streams();
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        if self.given_up {
            return true;
        }
        let consumed = self.consumers.iter().all(|consumer| consumer.finished);
        match &self.stop {
            None => {
                self.exited_at.is_some()
                    && self.inline.all_ended()
                    && consumed
                    && self.trouble.is_none()
            }
            Some(stop) => {
                stop.machine.finished()
                    && self.inline.all_ended()
                    && (consumed || stop.patience.reached(now))
            }
        }
    }
}

/// How far a run is whose program runs. Of its parts: the one that is told of it
/// is another.
fn moment<'m, M: Memory>(inline: &'m Inline<M>, running: &Running, stopping: bool) -> Moment<'m> {
    let [stdout, stderr] = inline.flows();
    Moment {
        pid: running.pid(),
        stopping,
        running: true,
        pty: inline.terminal(),
        stdout,
        stderr,
    }
}
