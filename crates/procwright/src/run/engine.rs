//! The life of a run: one loop on the caller's thread that moves bytes, watches
//! the clock and steps a stop, and never waits for anything but all of them.

use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::output::{Reason, Report, StreamInfo};
use super::tap::Consumer;
use super::{
    Attached, Cancel, Demand, Duty, Event, EventHook, Extras, Foreign, FullFile, Kind, Moment,
    Outcome, Producer, Tee, Trouble, Watch, quote,
};
use crate::child::{self, OurEnds, Running, Unstarted};
use crate::drain::{Drain, Feed, Inline, Input, Store, Turn};
use crate::error::{SpawnError, Step};
use crate::holders::{self, Holders, PipeId, Role, RunPipe};
use crate::ident::ProcId;
use crate::process::{Exit, Scope, Stopping, Target, Tree, Unknown};
use crate::spec::{Beyond, Limit, Sink, Spec, Stdin, Until};
use crate::spool::Memory;
use crate::spool::fifo::{BoxError, Fifo};
use crate::sys::poll::{self, Flags};
use crate::sys::proc;
use crate::sys::signal::NoSigpipe;
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// A second after the program's exit somebody is told who still holds its
/// pipes: long enough that no ordinary run says anything, short enough that a
/// person at a terminal has not yet begun to wonder.
const HELD_AFTER: Duration = Duration::from_secs(1);

/// How long, from the beginning of a stop, consumers may go on with what they
/// have: enough to write it to a disk, too short for a callback that sleeps for
/// ever to hold up a timeout.
const PATIENCE: Duration = Duration::from_millis(500);

const NAMES: [&str; 2] = ["stdout", "stderr"];

/// Runs `spec` and returns when nothing of it is left to wait for.
pub(crate) fn execute<M: Memory>(spec: &Spec, extras: Extras<'_>) -> Result<Outcome<M>, Unstarted> {
    spec.check()?;
    let mut taps = extras.taps;
    for (taps, file) in taps.iter_mut().zip(full_files(spec)?) {
        taps.extend(file);
    }
    for (stream, taps) in taps.iter_mut().enumerate() {
        taps.extend(relay(spec, stream)?);
    }
    let slow = extras.producer.is_some() || taps.iter().any(|taps| !taps.is_empty());
    let wake = match slow {
        true => Some(Arc::new(Wake::new().map_err(no_descriptor)?)),
        false => None,
    };
    let feeds = extras.producer.is_some() || matches!(spec.stdin, Stdin::Bytes(_));

    let started = Instant::now();
    let started_ticks = proc::now_ticks();
    let (running, ends) = child::start(spec, feeds)?;
    // From here on the child exists, and every way out stops and reaps it.
    let mut run = Run {
        spec,
        started,
        started_ticks,
        deadline: spec.timeout.starting(started),
        pipes: pipes(&ends),
        running,
        exited_at: None,
        said_held: false,
        inline: Inline::new([None, None], None, None, false),
        consumers: Vec::new(),
        cancel: extras.cancel,
        on_event: extras.on_event,
        watch: extras.watch,
        demanded: false,
        adopts: extras.adopts,
        stop: None,
        trouble: None,
        last_looks: 0,
        killing: false,
        refused: false,
        given_up: false,
    };
    if let Err(error) = run.connect(ends, extras.producer, taps, wake) {
        // No drain will tell those that have started of an end.
        for consumer in &run.consumers {
            consumer.fifo.end();
        }
        run.fail(Trouble::Io(error));
    }
    run.drive();
    Ok(run.conclude())
}

fn no_descriptor(error: io::Error) -> SpawnError {
    SpawnError::new(Step::Pipe, "", error)
}

/// The files of `keep_full`, made before anything starts.
fn full_files(spec: &Spec) -> Result<[Option<Attached>; 2], SpawnError> {
    let mut files = [None, None];
    let Some(path) = &spec.keep_full else {
        return Ok(files);
    };
    let mut beside = path.clone().into_os_string();
    beside.push(".stderr");
    let paths: [&Path; 2] = [path, beside.as_ref()];
    for ((file, path), captured) in files.iter_mut().zip(paths).zip(spec.captures()) {
        if captured {
            let tap = FullFile::create(path)
                .map_err(|e| SpawnError::new(Step::Open, path.to_string_lossy(), e))?;
            *file = Some((Kind::Chunks(Box::new(tap)), Duty::Keeps(path.to_path_buf())));
        }
    }
    Ok(files)
}

/// What passes a stream on to the caller's own, if it is to be.
fn relay(spec: &Spec, stream: usize) -> Result<Option<Attached>, SpawnError> {
    let sink = if stream == 0 {
        &spec.stdout
    } else {
        &spec.stderr
    };
    if !matches!(sink, Sink::Relay) {
        return Ok(None);
    }
    let own = match stream {
        0 => io::stdout().as_fd().try_clone_to_owned(),
        _ => io::stderr().as_fd().try_clone_to_owned(),
    };
    let tee = Tee::new(own.map_err(|e| SpawnError::new(Step::Dup, NAMES[stream], e))?);
    Ok(Some((Kind::Chunks(Box::new(tee)), Duty::Relays)))
}

/// What the run's pipes are called, for whoever asks who holds them.
fn pipes(ends: &OurEnds) -> Vec<RunPipe> {
    let mut pipes = Vec::new();
    if let Some(fd) = &ends.stdin
        && let Ok(id) = PipeId::of(fd)
    {
        pipes.push(RunPipe {
            id,
            role: Role::Reads,
            label: "stdin",
        });
    }
    for (end, label) in ends.outputs.iter().zip(NAMES) {
        if let Some(end) = end
            && let Ok(id) = PipeId::of(end)
        {
            pipes.push(RunPipe {
                id,
                role: Role::Writes,
                label,
            });
        }
    }
    pipes
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
}

/// A run under way.
struct Run<'a, M> {
    spec: &'a Spec,
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
    /// The watch wants the run stopped.
    demanded: bool,
    adopts: bool,
    stop: Option<Stop>,
    trouble: Option<Trouble>,
    /// Turns since a deadline came.
    last_looks: u8,
    /// The watch wants no more grace.
    killing: bool,
    /// The system has refused us once, and the streams were given up.
    refused: bool,
    /// The system refuses to let us wait.
    given_up: bool,
}

impl<M: Memory> Run<'_, M> {
    /// Puts drains, consumers and a feed to the ends of the pipes.
    fn connect(
        &mut self,
        ends: OurEnds,
        producer: Option<Producer>,
        taps: [Vec<Attached>; 2],
        wake: Option<Arc<Wake>>,
    ) -> io::Result<()> {
        let now = self.started;
        let mut drains = [None, None];
        for (stream, (end, taps)) in ends.outputs.into_iter().zip(taps).enumerate() {
            let Some(end) = end else { continue };
            let mut queues = Vec::new();
            for ((tap, duty), wake) in taps.into_iter().zip(wake.iter().cycle()) {
                let consumer = Consumer::start(tap, duty, stream, wake)?;
                queues.push(Arc::clone(&consumer.fifo));
                self.consumers.push(consumer);
            }
            drains[stream] = Some(Drain::new(
                end.fd,
                end.probe,
                self.store(stream),
                queues,
                now,
            ));
        }
        let feed = match (ends.stdin, producer, &wake) {
            (Some(fd), Some(producer), Some(wake)) => {
                let queue = Fifo::new(Arc::clone(wake));
                produce(producer, Arc::clone(&queue))?;
                Some(Feed::new(fd, Input::Queue(queue)))
            }
            (Some(fd), ..) => match &self.spec.stdin {
                Stdin::Bytes(bytes) => Some(Feed::new(fd, Input::Bytes(bytes.clone()))),
                _ => None,
            },
            (None, ..) => None,
        };
        self.inline = Inline::new(drains, feed, wake, self.spec.merged);
        Ok(())
    }

    fn store(&self, stream: usize) -> Store<M> {
        if !self.spec.keeps()[stream] {
            let limit = self.spec.limit.filter(|limit| limit.beyond == Beyond::Fail);
            return Store::nothing(limit.map(|limit| limit.bytes));
        }
        match self.spec.limit {
            None => Store::whole(),
            Some(Limit {
                bytes,
                beyond: Beyond::HeadAndTail,
            }) => Store::ends(bytes),
            Some(Limit {
                bytes,
                beyond: Beyond::Fail,
            }) => Store::capped(bytes),
        }
    }

    fn drive(&mut self) {
        let _no_sigpipe = self.inline.feeds().then(NoSigpipe::new);
        loop {
            let now = Instant::now();
            self.look(now);
            if let Some(stop) = &mut self.stop {
                if self.killing {
                    stop.machine.kill_now(now);
                }
                stop.machine.step(now);
                if stop.machine.finished() {
                    self.after_stop(now);
                }
            }
            if self.is_over(now) {
                return;
            }
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
                self.inline.close(consumer.stream);
                if is_broken_pipe(&error) {
                    continue;
                }
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
        // While a consumer of ours holds up the stream, the silence is ours.
        if self.spec.idle_timeout.is_never() || self.inline.is_held() {
            return Deadline::NEVER;
        }
        let last = self.inline.last_read().unwrap_or(self.started);
        self.spec.idle_timeout.starting(last)
    }

    fn next_deadline(&self) -> Deadline {
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
        if ended {
            self.exited(now);
        }
        if watched && let Some(watch) = &mut self.watch {
            let moment = Moment {
                pid: self.running.pid(),
                stopping: self.stop.is_some(),
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
            self.demanded |= demand != Demand::Nothing;
            // Also when it is the first demand, before there is a stop.
            self.killing |= demand == Demand::Kill;
        }
        if let Some(error) = turn.feed_failed {
            self.fail(Trouble::Foreign(Foreign::Stdin, error));
        }
    }

    /// The program has ended. All that it wrote is in its pipes.
    fn exited(&mut self, now: Instant) {
        self.exited_at = Some(now);
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
        let machine = Stopping::begin(self.spec.stop, target, self.running.pidfd(), now);
        self.stop = Some(Stop {
            reason,
            machine,
            patience: Deadline::at(now + PATIENCE),
            processes,
            held,
            open: self.inline.open_streams(),
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

    /// The pipes whose other ends may still be held.
    fn open_pipes(&self) -> Vec<RunPipe> {
        let open = self.inline.open_streams();
        let is_open = |pipe: &&RunPipe| match pipe.label {
            "stdout" => open[0],
            "stderr" => open[1],
            _ => true,
        };
        self.pipes.iter().filter(is_open).copied().collect()
    }

    /// Who holds the writing ends of the output pipes among `pipes`.
    fn holders(&self, pipes: &[RunPipe]) -> [Option<Holders>; 2] {
        let ids: Vec<PipeId> = pipes.iter().map(|pipe| pipe.id).collect();
        let mut found = [None, None];
        if ids.is_empty() {
            return found;
        }
        // A second of doubt about the ticks.
        let since = self.started_ticks.saturating_sub(100);
        let mut ends = holders::of_pipes(&ids, std::process::id().cast_signed(), since)
            .ok()
            .map(Vec::into_iter);
        for pipe in pipes {
            let ends = ends.as_mut().and_then(Iterator::next);
            let Some(index) = NAMES.iter().position(|name| *name == pipe.label) else {
                continue;
            };
            found[index] = Some(match ends {
                Some(ends) => {
                    // Who holds our end as well is a copy of ourselves, forked by
                    // another thread and about to become its program.
                    let mut writers = ends.writers;
                    writers
                        .list
                        .retain(|writer| !ends.readers.list.contains(writer));
                    writers
                }
                // Nobody could look, which is not "nobody".
                None => Holders::default(),
            });
        }
        found
    }

    fn tell_held(&mut self, now: Instant) {
        let due = self
            .exited_at
            .is_some_and(|exited| now >= exited + HELD_AFTER);
        if !due || self.said_held || self.inline.all_ended() {
            return;
        }
        self.said_held = true;
        let open = self.open_pipes();
        let held = self.holders(&open);
        let mut streams = Vec::new();
        let mut holders = Vec::new();
        let mut complete = true;
        for (name, found) in NAMES.iter().zip(held) {
            let Some(found) = found else { continue };
            streams.push(*name);
            complete &= found.complete;
            for holder in found.list {
                if !holders.contains(&holder) {
                    holders.push(holder);
                }
            }
        }
        let event = Event::Held {
            command: quote(&self.spec.argv),
            streams: streams.join(" and "),
            holders,
            complete,
        };
        match &mut self.on_event {
            Some(on_event) => {
                if let Err(error) = on_event(&event) {
                    self.fail(Trouble::Foreign(Foreign::Event, error));
                }
            }
            // Never silent: see `Command::on_event`.
            None => say(&event),
        }
    }

    fn conclude(mut self) -> Outcome<M> {
        let held = self.still_held();
        let collected = self.running.collect();
        let (status, usage) = match self.running.ended() {
            Some((exit, usage)) if collected => (exit, usage),
            _ => (Exit::Unknown(Unknown::StillRunning), None),
        };
        let cut = self.stop.as_ref().map_or([false; 2], |stop| stop.open);
        for consumer in &self.consumers {
            consumer.leave();
        }
        let (reason, survivors, processes, seen) = match self.stop {
            None => (Reason::Finished, Vec::new(), Vec::new(), [None, None]),
            Some(stop) => (
                stop.reason,
                stop.machine.survivors(),
                stop.processes,
                stop.held,
            ),
        };
        let (drains, merged) = self.inline.into_parts();
        let mut infos = [None, None];
        let mut data = [None, None];
        for (stream, (drain, (held, seen))) in drains
            .into_iter()
            .zip(held.into_iter().zip(seen))
            .enumerate()
        {
            let Some(drain) = drain else { continue };
            // Somebody holds it, but nobody was found: there are processes that
            // cannot be seen from here.
            let unseen = held.as_ref().is_some_and(|held| held.list.is_empty());
            let mut held = merge(seen, held);
            held.complete &= !unseen;
            let mut info = StreamInfo {
                bytes: drain.bytes(),
                blocked: drain.blocked(),
                complete: !cut[stream] && !drain.has_failed(),
                held_by_complete: held.complete,
                held_by: held.list,
                ..StreamInfo::default()
            };
            for consumer in self.consumers.iter().filter(|c| c.stream == stream) {
                note_consumer(consumer, &mut info);
            }
            if drain.keeps() {
                data[stream] = Some(keep(drain, &mut info, &mut self.trouble));
            }
            infos[stream] = Some(info);
        }
        let [stdout_info, stderr_info] = infos;
        let [stdout, stderr] = data;
        Outcome {
            report: Report {
                argv: self.spec.argv.clone(),
                pid: self.running.pid(),
                status,
                reason,
                duration: self.started.elapsed(),
                cpu_user: usage.map(|usage| usage.user),
                cpu_system: usage.map(|usage| usage.system),
                max_rss_bytes: self.running.max_rss(),
                survivors,
                stdout_info,
                stderr_info,
                processes,
            },
            stdout,
            stderr,
            merged,
            trouble: self.trouble,
        }
    }

    /// Who holds a stream that was left before its end. Asks the pipes first:
    /// the processes are looked through only if somebody is there.
    fn still_held(&self) -> [Option<Holders>; 2] {
        let cut = self.inline.drains().map(|drain| {
            let left = drain.filter(|drain| drain.was_left());
            left.and_then(Drain::fd).is_some_and(|fd| {
                let mut fds = [poll::Fd::from_borrowed_fd(fd, Flags::empty())];
                let _ = poll::poll(&mut fds, Deadline::at(Instant::now()));
                !fds[0].revents().contains(Flags::HUP)
            })
        });
        let pipes: Vec<RunPipe> = self
            .pipes
            .iter()
            .filter(|pipe| {
                NAMES
                    .iter()
                    .zip(cut)
                    .any(|(name, cut)| cut && *name == pipe.label)
            })
            .copied()
            .collect();
        self.holders(&pipes)
    }
}

fn is_broken_pipe(error: &BoxError) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// What every process of the run is doing, a line each.
fn activities(target: &Target) -> Vec<String> {
    let members = Tree::new(target.clone(), Scope::Tree).survey(&mut |_| {});
    let members = members.unwrap_or_default();
    let living = members.iter().filter(|stat| !stat.is_gone());
    living
        .filter_map(|stat| holders::activity(stat.pid, &target.pipes).ok())
        .map(|activity| activity.to_string())
        .collect()
}

/// Writes to stderr, if it takes that without a wait. Not by `eprintln`, which
/// panics when stderr is a closed pipe or a full disk, and the program would be
/// left running.
fn say(event: &Event) {
    let stderr = io::stderr();
    let mut fds = [poll::Fd::new(&stderr, Flags::OUT)];
    let now = Deadline::at(Instant::now());
    if poll::poll(&mut fds, now).is_ok_and(|ready| ready > 0) {
        let _ = writeln!(&stderr, "procwright: {event}");
    }
}

/// Pulls stdin from `producer` on a thread of its own.
fn produce(mut producer: Producer, queue: Arc<Fifo>) -> io::Result<()> {
    std::thread::Builder::new()
        .name("procwright-stdin".into())
        .spawn(move || {
            let finishing = FinishOnDrop(&queue);
            let error = loop {
                match producer() {
                    Some(Ok(chunk)) => {
                        if !chunk.is_empty() && !queue.put(chunk) {
                            break None;
                        }
                    }
                    Some(Err(error)) => break Some(error),
                    None => break None,
                }
            };
            drop(producer);
            std::mem::forget(finishing);
            queue.finish(error);
        })?;
    Ok(())
}

/// A producer that panics must not leave the program waiting for more.
struct FinishOnDrop<'a>(&'a Fifo);

impl Drop for FinishOnDrop<'_> {
    fn drop(&mut self) {
        self.0.finish(Some("the producer of stdin panicked".into()));
    }
}

fn merge(seen: Option<Holders>, held: Option<Holders>) -> Holders {
    match (seen, held) {
        (Some(mut seen), Some(held)) => {
            for holder in held.list {
                if !seen.list.contains(&holder) {
                    seen.list.push(holder);
                }
            }
            seen.complete &= held.complete;
            seen
        }
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Holders {
            list: Vec::new(),
            complete: true,
        },
    }
}

fn note_consumer(consumer: &Consumer, info: &mut StreamInfo) {
    let undelivered = consumer.fifo.undelivered();
    match &consumer.duty {
        Duty::Keeps(path) => {
            info.kept_at = Some(PathBuf::clone(path));
            info.kept_error = match &consumer.error {
                Some(error) => Some(format!("{error}; {undelivered} bytes are missing")),
                None if undelivered > 0 => {
                    Some(format!("{undelivered} bytes were not written in time"))
                }
                None => None,
            };
        }
        Duty::Required | Duty::Relays | Duty::Optional => info.undelivered_bytes += undelivered,
    }
}

/// Takes the kept bytes out of a drain and counts them.
fn keep<M: Memory>(drain: Drain<M>, info: &mut StreamInfo, trouble: &mut Option<Trouble>) -> M {
    let (kept, ends) = drain.into_kept();
    let kept = kept.unwrap_or_else(|error| {
        trouble.get_or_insert(Trouble::Io(error));
        M::new()
    });
    info.kept_bytes = kept.as_bytes().len() as u64;
    info.dropped_bytes = info.bytes - info.kept_bytes;
    info.dropped_at = ends.filter(|_| info.dropped_bytes > 0);
    kept
}
