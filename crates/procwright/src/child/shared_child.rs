//! The part of a child that its feed holds as well: all but its streams.

use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::child_process::ChildProcess;
use super::copies::{ChildCopies, CopyEnd};
use super::limit_stop::{LimitStop, PastLimitStop};
use super::limits::ReachedBound;
use super::processes::{Before, stream_of, writers_of};
use crate::error::BoxError;
use crate::std_stream::{PerStream, StdStream};
use crate::trace::Trace;
use procwright_os::fork::ForkId;
use procwright_os::oom::OomKills;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::proc;
use procwright_os::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use procwright_os::time::Deadline;
use procwright_os::wait::Usage;
use procwright_process::holders::{Holders, RunPipe};
use procwright_process::{
    Exit, Orphans, Process, Scope, Stop, StopTarget, Stopping, Survivor, WatchedBeside,
};

/// A child without its streams.
#[derive(Debug)]
pub(super) struct SharedChild {
    /// The process whose child it is. A fork of that neither stops it nor waits for a lock
    /// of `running`, whose owner it may not have.
    owner: ForkId,
    /// The process. Without its descriptor once that is of no use: children are kept for long
    /// by those who have many, and hold none when they are over. Locked for as long as it takes
    /// to clone or to replace it.
    process: Mutex<Process>,
    /// The process by its number, which needs no lock and no descriptor: who it is, and for a
    /// fork in which nobody may ever unlock the other.
    by_number: Process,
    running: Mutex<ChildProcess>,
    /// The trace of `running`, which needs no lock: a stop holds that for long.
    trace: Trace,
    started: Instant,
    /// The pipes, and what stands for the child's terminal.
    pipes: Vec<RunPipe>,
    /// Session that it was started in.
    session: Option<i32>,
    /// The policy by which it is stopped, unless a call says otherwise.
    pub(super) stop: Stop,
    /// How many calls of the caller's are stopping it, or are about to.
    stop_calls: AtomicUsize,
    /// The stop for a limit, of a child that has any.
    limit_stop: Option<LimitStop>,
    /// Who gets copies of its outputs.
    copies: Option<ChildCopies>,
    /// Who had the streams when they were ended with the program.
    left: Mutex<PerStream<Option<Holders>>>,
    /// Whether a stop has found the program alive: what ended it is that stop, for all that
    /// anybody can tell.
    was_cut_short: AtomicBool,
    /// The processes that the latest stop could not end, once there was one.
    stopped: Mutex<Option<Vec<Survivor>>>,
    /// The error that cut its input short, until a wait has told it.
    failed: Mutex<Option<BoxError>>,
}

/// How a child ended, and what it used.
pub(crate) struct ChildEnd {
    pub(crate) exit: Exit,
    /// The time from its start until its end was seen.
    pub(crate) duration: Duration,
    pub(crate) usage: Option<Usage>,
    pub(crate) max_rss: Option<u64>,
    pub(crate) oom_kills: Option<OomKills>,
    /// Whether a stop has found the program alive.
    pub(crate) was_cut_short: bool,
    /// The processes that a stop could not end, if there was one.
    pub(crate) stopped: Option<Vec<Survivor>>,
    /// The stop for a limit, if that was reached.
    pub(crate) limit_stop: Option<PastLimitStop>,
    /// Who had the streams when they were ended with the program.
    pub(crate) left: PerStream<Option<Holders>>,
}

impl SharedChild {
    pub(super) fn new(
        running: ChildProcess,
        process: Process,
        started: Instant,
        pipes: Vec<RunPipe>,
        stop: Stop,
        limit_stop: Option<LimitStop>,
        copies: Option<ChildCopies>,
    ) -> SharedChild {
        SharedChild {
            owner: ForkId::current(),
            by_number: process.by_number(),
            process: Mutex::new(process),
            trace: running.trace(),
            session: running.session(),
            running: Mutex::new(running.hand_out()),
            started,
            pipes,
            stop,
            stop_calls: AtomicUsize::new(0),
            limit_stop,
            copies,
            left: Mutex::default(),
            was_cut_short: AtomicBool::new(false),
            stopped: Mutex::new(None),
            failed: Mutex::new(None),
        }
    }

    /// The process; its clones are one.
    pub(super) fn process(&self) -> Process {
        match self.is_ours() {
            true => self.process.lock().clone(),
            // A thread that the fork does not have may have the lock.
            false => match self.process.try_lock() {
                Some(process) => process.clone(),
                None => self.by_number.clone(),
            },
        }
    }

    pub(super) fn pid(&self) -> i32 {
        self.by_number.pid()
    }

    /// How it ended, none while it is alive. Does not wait. Reaps it, unless it has left
    /// processes that are found by its number.
    pub(super) fn try_wait(&self) -> Option<Exit> {
        // The process is asked first, so that its clones know it too.
        let exit = self.process().exit()?;
        let Some(mut running) = self.try_running() else {
            // Another thread is stopping it, and will reap it.
            return Some(exit);
        };
        running.note_end();
        self.let_go(&running);
        running.ended().map(|(exit, _)| exit)
    }

    /// Closes the descriptor of the process once it is reaped.
    fn let_go(&self, running: &ChildProcess) {
        if running.pidfd().is_some() || !self.is_ours() {
            return;
        }
        let without = self.process().without_pidfd();
        if let Some(without) = without {
            // The last clone closes the descriptor, and not under the lock.
            let _with = std::mem::replace(&mut *self.process.lock(), without);
        }
    }

    /// Stops it; see [`Child::stop`](super::Child::stop).
    pub(super) fn stop_beside(
        &self,
        stop: Stop,
        mut beside: Option<WatchedBeside<'_>>,
    ) -> Vec<Survivor> {
        if !self.is_ours() {
            return self.left_to_parent();
        }
        let _call = StopCall::begin(self);
        // The lock is held all the while, so that no other thread reaps it and frees its
        // number.
        let mut running = loop {
            self.await_limit_stop(&mut beside);
            let running = self.running();
            // One may have begun meanwhile, which is done with this lock.
            if self.limit_stop_under_way().is_none() {
                break running;
            }
        };
        let trace = running.trace();
        trace.say(|| format!("stop: {stop}"));
        let process = self.process();
        if process.exit().is_none() {
            // Before the first signal: who sees the program end by that, in another thread, is
            // to know why.
            self.was_cut_short.store(true, Ordering::SeqCst);
        }
        let target = self.stop_target(self.pipes.clone());
        let survivors = process.stop_all(stop, target, beside);
        for survivor in &survivors {
            trace.say(|| format!("left: {survivor}"));
        }
        // Clones of the process learn the status here, before it is gone.
        let _ = process.exit();
        // What is left of its group is found by the next stop.
        match survivors.is_empty() && stop.scope() != Scope::Process {
            true => running.collect(),
            false => running.note_end(),
        };
        self.let_go(&running);
        *self.stopped.lock() = Some(survivors.clone());
        survivors
    }

    fn stop_target(&self, pipes: Vec<RunPipe>) -> StopTarget {
        StopTarget {
            root: self.by_number.proc_id(),
            pipes,
            session: self.session,
            orphans: Orphans::Unknown,
        }
    }

    /// Waits while it is being stopped for a limit: two stops at once would send the first
    /// signal twice, which programs take for "at once".
    fn await_limit_stop(&self, beside: &mut Option<WatchedBeside<'_>>) {
        let Some(limit_stop) = &self.limit_stop else {
            return;
        };
        while let Some(over) = limit_stop.under_way() {
            let theirs = beside.as_ref().map(|(fd, _)| *fd);
            let fds = theirs.into_iter().chain([over]);
            let mut fds: Vec<_> = fds.map(|fd| Fd::from_borrowed_fd(fd, Flags::IN)).collect();
            let polled = poll::poll(&mut fds, Deadline::NEVER);
            let rang = polled.is_ok() && !fds[0].revents().is_empty();
            if let (true, Some((_, ring))) = (rang, beside.as_mut())
                && ring()
            {
                limit_stop.hurry();
            }
        }
    }

    /// Readable once it has been stopped for a limit; none unless that is under way.
    pub(super) fn limit_stop_under_way(&self) -> Option<BorrowedFd<'_>> {
        match self.is_ours() {
            true => self.limit_stop.as_ref()?.under_way(),
            false => None,
        }
    }

    /// The stop for a limit, once that is over.
    pub(super) fn past_limit_stop(&self) -> Option<PastLimitStop> {
        match self.is_ours() {
            true => self.limit_stop.as_ref()?.past(),
            false => None,
        }
    }

    pub(super) fn limit_stop(&self) -> Option<&LimitStop> {
        self.limit_stop.as_ref()
    }

    /// Begins to stop it for a limit. `open` are the streams that have not ended.
    /// [`end_limit_stop`](SharedChild::end_limit_stop) has to follow.
    ///
    /// # Errors
    /// Who has it now: this never waits.
    pub(super) fn begin_limit_stop(
        &self,
        reached: ReachedBound,
        open: &[RunPipe],
        now: Instant,
    ) -> Result<(Stopping, Before), ChildIsBusy> {
        if self.is_stopped_by_call() {
            return Err(ChildIsBusy::Stopped);
        }
        let Some(mut running) = self.try_running() else {
            return Err(match self.is_stopped_by_call() {
                true => ChildIsBusy::Stopped,
                false => ChildIsBusy::Briefly,
            });
        };
        self.trace
            .say(|| format!("stop, {}: {}", reached.name(), self.stop));
        // Its number has to lead to its processes until they are gone.
        running.keep_number(true);
        // The handle of the start, and none by number: it may have been reaped, and its number
        // be a stranger's. Its descriptor tells of its group even then.
        let process = self.process();
        let root = || Some(process.handle());
        let target = self.stop_target(open.to_vec());
        let mut machine = Stopping::prepare(self.stop, target.clone(), root());
        let before = Before::first_signal_of(&machine, target, root(), open);
        if let Some(limit_stop) = &self.limit_stop {
            // Before anybody can see the child end by the signal.
            limit_stop.begin();
        }
        machine.start(now);
        Ok((machine, before))
    }

    fn is_stopped_by_call(&self) -> bool {
        self.stop_calls.load(Ordering::SeqCst) > 0
    }

    /// Reaps it, when it has been stopped for a limit.
    pub(super) fn end_limit_stop(&self, past: PastLimitStop) {
        for survivor in &past.survivors {
            self.trace.say(|| format!("left: {survivor}"));
        }
        // Clones of the process learn the status here, before it is gone.
        let _ = self.process().exit();
        let mut running = self.running();
        running.keep_number(false);
        match past.survivors.is_empty() && self.stop.scope() != Scope::Process {
            true => running.collect(),
            false => running.note_end(),
        };
        self.let_go(&running);
        drop(running);
        if let Some(limit_stop) = &self.limit_stop {
            limit_stop.end(past);
        }
    }

    /// Its processes as they are, its pipes of which `open` are open outputs, and when it was
    /// started, in ticks since boot.
    pub(super) fn processes(&self, open: PerStream<bool>) -> (Before, Vec<RunPipe>, u64) {
        let is_open = |pipe: &&RunPipe| stream_of(pipe).is_none_or(|stream| open[stream]);
        let pipes: Vec<RunPipe> = self.pipes.iter().filter(is_open).cloned().collect();
        let root = self.is_ours().then(|| self.process().handle());
        let before = Before::now(self.stop_target(pipes.clone()), root, &pipes);
        (before, pipes, self.by_number.proc_id().start_ticks())
    }

    /// Notes who holds the streams, which end with the program: those whose `open` says that
    /// somebody does.
    pub(super) fn note_left(&self, open: PerStream<bool>) {
        if let Some(left) = self.holders(open) {
            *self.left.lock() = left;
        }
    }

    /// Who holds the outputs that are `open`; none if there are no such outputs. Looks through
    /// all processes.
    pub(super) fn holders(&self, open: PerStream<bool>) -> Option<PerStream<Option<Holders>>> {
        let is_open = |pipe: &&RunPipe| stream_of(pipe).is_some_and(|stream| open[stream]);
        let pipes: Vec<RunPipe> = self.pipes.iter().filter(is_open).cloned().collect();
        let started = self.by_number.proc_id().start_ticks();
        (!pipes.is_empty()).then(|| writers_of(&pipes, started))
    }

    /// Who gets copies of its outputs, if anybody does; nobody in a fork.
    pub(super) fn copies(&self) -> Option<&ChildCopies> {
        self.copies.as_ref().filter(|_| self.is_ours())
    }

    /// What came of the copies of a stream so far.
    pub(super) fn copy_ends(&self, stream: StdStream) -> Vec<CopyEnd> {
        let copies = self.copies();
        copies.map_or_else(Vec::new, |copies| copies.ends_of(stream))
    }

    pub(super) fn pipes(&self) -> &[RunPipe] {
        &self.pipes
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// False in a fork of the process that has started it.
    pub(super) fn is_ours(&self) -> bool {
        self.owner.is_current()
    }

    /// What a stop in a fork leaves: the program, if it lives. It is the parent's to stop.
    fn left_to_parent(&self) -> Vec<Survivor> {
        if self.process().exit().is_some() {
            return Vec::new();
        }
        let pid = self.pid();
        let (name, state) = match proc::stat(pid) {
            Ok(stat) => (stat.name.to_string(), stat.state),
            Err(_) => ("?".to_owned(), '?'),
        };
        vec![Survivor::new(pid, name, state)]
    }

    /// Waits while it is being stopped.
    fn running(&self) -> MutexGuard<'_, ChildProcess> {
        self.running.lock()
    }

    /// The process, none while it is being stopped.
    fn try_running(&self) -> Option<MutexGuard<'_, ChildProcess>> {
        self.running.try_lock()
    }

    pub(super) fn trace(&self) -> Trace {
        self.trace
    }

    /// How it ended and what it used; none before, and while it is being stopped for a limit.
    pub(super) fn end(&self) -> Option<ChildEnd> {
        let exit = self.try_wait()?;
        if self.limit_stop_under_way().is_some() {
            return None;
        }
        let survivors = match self.is_ours() {
            true => self.stopped.lock().clone(),
            false => None,
        };
        let running = self.try_running();
        let running = running.as_ref();
        let seen = running.and_then(|running| running.seen());
        let seen = seen.unwrap_or_else(Instant::now) - self.started;
        let limit_stop = self.past_limit_stop();
        Some(ChildEnd {
            exit,
            duration: limit_stop
                .as_ref()
                .map_or(seen, |stop| seen.max(stop.ended_after)),
            usage: running.and_then(|running| running.ended()?.1),
            max_rss: running.and_then(|running| running.max_rss()),
            oom_kills: running.and_then(|running| running.oom_kills().cloned()),
            was_cut_short: self.was_cut_short.load(Ordering::SeqCst),
            stopped: survivors,
            limit_stop,
            left: match self.is_ours() {
                true => self.left.lock().clone(),
                false => PerStream::default(),
            },
        })
    }

    /// Stops it because its input failed. The next wait tells the error, once.
    pub(super) fn stop_for_input(&self, error: BoxError) {
        *self.failed() = Some(error);
        // Nobody reads the input of a program whose end the caller has seen, and what that
        // has left is the caller's to stop.
        if self.running().ended().is_none() {
            self.stop_beside(self.stop, None);
        }
    }

    /// The error that cut its input short, if no wait has told it.
    pub(super) fn take_failure(&self) -> Option<BoxError> {
        if !self.is_ours() {
            return None;
        }
        self.failed().take()
    }

    fn failed(&self) -> MutexGuard<'_, Option<BoxError>> {
        self.failed.lock()
    }
}

/// Who keeps a child from being stopped for a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildIsBusy {
    /// A call of the caller's stops it, and has the supervisor look when that is over.
    Stopped,
    /// A call looks at it.
    Briefly,
}

/// A call of the caller's that stops the child.
struct StopCall<'a>(&'a SharedChild);

impl<'a> StopCall<'a> {
    fn begin(child: &'a SharedChild) -> StopCall<'a> {
        // Before the lock is taken: who finds that taken knows for how long.
        child.stop_calls.fetch_add(1, Ordering::SeqCst);
        StopCall(child)
    }
}

impl Drop for StopCall<'_> {
    fn drop(&mut self) {
        self.0.stop_calls.fetch_sub(1, Ordering::SeqCst);
        if let Some(limit_stop) = &self.0.limit_stop {
            // A limit that was reached meanwhile has waited for this.
            limit_stop.look_again();
        }
    }
}
