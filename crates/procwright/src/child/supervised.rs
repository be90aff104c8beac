//! A child that may be stopped for one of its limits.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::limit_stop::PastLimitStop;
use super::limits::{Limits, ReachedBound};
use super::processes::{Before, stream_of};
use super::shared_child::{ChildIsBusy, SharedChild};
use super::streams::WatchedFlow;
use crate::drain::News;
use crate::looks::{Looks, PromptLooks};
use crate::std_stream::PerStream;
use crate::stream::StallWatch;
use procwright_explain::Diagnosis;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;
use procwright_process::Stopping;
use procwright_process::holders::RunPipe;

/// Time until the next try when a call was looking at the child at the very moment at which
/// it was to be stopped.
const BRIEFLY: Duration = Duration::from_millis(1);

/// Time until the next try to tell of a wait for input whose prompt is still to be read.
const BEHIND: Duration = Duration::from_millis(10);

/// A child, its limits, and how far it is.
#[derive(Debug)]
pub(super) struct SupervisedChild {
    limits: Limits,
    child: Arc<SharedChild>,
    /// The outputs that are read ahead. A bare pipe has none: whoever reads it sees its end.
    flows: PerStream<Option<WatchedFlow>>,
    /// Tells which of them are full.
    full: Arc<StallWatch>,
    /// Readable once the program has ended.
    pidfd: OwnedFd,
    /// Readable once it is cancelled. Its own, for a set has each descriptor once.
    cancel: Option<OwnedFd>,
    has_exited: bool,
    deadline: Deadline,
    /// The earliest time at which silence may have lasted too long.
    idle_deadline: Deadline,
    looks: Looks,
    /// The looks at whether it waits for input, if somebody wants to know.
    prompts: Option<PromptLooks>,
    /// Has the supervisor look at it again.
    news: News,
    stop: Option<Box<ChildStop>>,
    /// After its stop: the time until which copies may go on with what they have.
    copies_until: Option<Instant>,
}

/// For how long copies may go on after a stop for a limit: the program may have written up to its
/// last moment. As after that of a run.
const PATIENCE: Duration = Duration::from_millis(500);

/// The stop of a child, under way.
#[derive(Debug)]
struct ChildStop {
    reached: ReachedBound,
    began: Instant,
    machine: Stopping,
    before: Before,
    /// What was found out shortly before about why the program does not end.
    diagnosis: Option<Box<Diagnosis>>,
    open: PerStream<bool>,
    held_after_exit: bool,
}

/// What is to be done for a child next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextLook {
    /// A look when there is news of it, or at this time.
    At(Deadline),
    /// Nothing: it is over.
    Over,
}

impl SupervisedChild {
    pub(super) fn new(
        limits: Limits,
        child: Arc<SharedChild>,
        flows: PerStream<Option<WatchedFlow>>,
        full: Arc<StallWatch>,
        pidfd: OwnedFd,
        cancel: Option<OwnedFd>,
        news: News,
    ) -> SupervisedChild {
        let started = child.started();
        SupervisedChild {
            deadline: limits.timeout.starting(started),
            idle_deadline: limits.idle_timeout.starting(started),
            looks: Looks::new(started, None),
            prompts: limits.for_input.as_ref().map(|_| PromptLooks::new(started)),
            news,
            limits,
            child,
            flows,
            full,
            pidfd,
            cancel,
            has_exited: false,
            stop: None,
            copies_until: None,
        }
    }

    /// Readable once the program has ended.
    pub(super) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Readable once it is cancelled.
    pub(super) fn cancel_fd(&self) -> Option<BorrowedFd<'_>> {
        self.cancel.as_ref().map(AsFd::as_fd)
    }

    /// Readable when the stop under way is to be looked at.
    pub(super) fn stop_fd(&self) -> Option<BorrowedFd<'_>> {
        self.stop.as_ref()?.machine.fd()
    }

    /// Notes that the program has ended.
    fn exited(&mut self) {
        if !std::mem::replace(&mut self.has_exited, true) && self.limits.ends_at_exit {
            // Before a reader can know of the end.
            let is_held = |flow: &Option<WatchedFlow>| {
                let flow = flow.as_ref();
                flow.is_some_and(|flow| !flow.watch.has_no_writer())
            };
            self.child.note_left(self.flows.as_ref().map(is_held));
            self.finish_flows();
        }
    }

    /// Does what is due.
    pub(super) fn look(&mut self, now: Instant) -> NextLook {
        // Asked here as well: a set may have refused the descriptor.
        if !self.has_exited && is_readable(self.pidfd()) {
            self.exited();
        }
        if let Some(until) = self.copies_until {
            return self.look_after_copies(until, now);
        }
        if self.stop.is_none() {
            if self.is_over() {
                return NextLook::Over;
            }
            match self.reached(now) {
                None => {
                    let next_examination = self.examine(now);
                    let next = self.deadline.min(self.idle_deadline);
                    let next_prompt = self.look_for_input_wanted(now);
                    return NextLook::At(next.min(next_examination).min(next_prompt));
                }
                Some(reached) => {
                    if let Err(busy) = self.begin_stop(reached, now) {
                        return NextLook::At(match busy {
                            // We are told when that is over.
                            ChildIsBusy::Stopped => Deadline::NEVER,
                            ChildIsBusy::Briefly => Deadline::at(now + BRIEFLY),
                        });
                    }
                }
            }
        }
        match &mut self.stop {
            Some(stop) => {
                if self
                    .child
                    .limit_stop()
                    .is_some_and(|stop| stop.is_hurried())
                {
                    stop.machine.kill_now(now);
                }
                stop.machine.step(now);
                if !stop.machine.finished() {
                    return NextLook::At(stop.machine.deadline());
                }
                self.end_stop();
                self.copies_until = Some(now + PATIENCE);
                self.look_after_copies(now + PATIENCE, now)
            }
            None => NextLook::Over,
        }
    }

    /// Leaves the copies behind that have not ended some time after the stop: a wait for the child
    /// must not wait for them.
    fn look_after_copies(&self, until: Instant, now: Instant) -> NextLook {
        if self.copies_have_ended() {
            return NextLook::Over;
        }
        if now < until {
            return NextLook::At(Deadline::at(until));
        }
        if let Some(copies) = self.child.copies() {
            copies.leave();
        }
        NextLook::Over
    }

    fn copies_have_ended(&self) -> bool {
        let copies = self.child.copies();
        copies.is_none_or(|copies| copies.have_ended())
    }

    /// True if the program has ended, all of its streams and their copies.
    fn is_over(&self) -> bool {
        self.has_exited && self.open_flows().next().is_none() && self.copies_have_ended()
    }

    fn open_flows(&self) -> impl Iterator<Item = &WatchedFlow> {
        let flows = self.flows.values().flatten();
        flows.filter(|flow| !flow.watch.has_ended())
    }

    /// The limit that is reached now, if one is.
    fn reached(&mut self, now: Instant) -> Option<ReachedBound> {
        let cancel = self.limits.cancel.as_ref();
        if cancel.is_some_and(|cancel| cancel.is_cancelled()) {
            return Some(ReachedBound::Cancel);
        }
        if let Some(bytes) = self.limits.bytes
            && self
                .flows
                .values()
                .flatten()
                .any(|flow| flow.watch.is_over_limit())
        {
            return Some(ReachedBound::Bytes(bytes));
        }
        if self.deadline.reached(now) {
            match self.ended_in_time() {
                true => self.deadline = Deadline::NEVER,
                false => return Some(ReachedBound::Timeout(self.limits.timeout.duration())),
            }
        }
        if self.idle_deadline.reached(now) && !self.was_heard(now) {
            return Some(ReachedBound::IdleTimeout(
                self.limits.idle_timeout.duration(),
            ));
        }
        None
    }

    /// True if the deadline has come only because threads of ours were not scheduled: the
    /// program has ended, and nobody else can write. A timeout that has expired before it
    /// began is reached, whatever there is.
    fn ended_in_time(&self) -> bool {
        !self.limits.timeout.has_expired()
            && self.has_exited
            && self.open_flows().all(|flow| flow.watch.has_no_writer())
            && self.copies_have_ended()
    }

    /// True if the silence is not the program's, or has not lasted: then it may be too long
    /// later on, and the next look is when it could be.
    fn was_heard(&mut self, now: Instant) -> bool {
        if self.limits.idle_timeout.has_expired() {
            return false;
        }
        self.idle_deadline = self.limits.idle_timeout.starting(self.last_heard());
        if !self.idle_deadline.reached(now) {
            return true;
        }
        // Whoever does not read what is kept is silent, and not the program; and bytes that
        // the pump has not come to read are no silence.
        // Copies that work off what they have are ours, too.
        let is_done = self.has_exited && self.open_flows().next().is_none();
        let is_unread =
            is_done || self.full.any_held() || self.open_flows().any(|one| one.watch.has_unread());
        if is_unread {
            self.idle_deadline = self.limits.idle_timeout.starting(now);
        }
        is_unread
    }

    /// The time of the latest output, or of the start.
    fn last_heard(&self) -> Instant {
        let flows = self.flows.values().flatten();
        let last = flows.filter_map(|flow| flow.watch.last_read()).max();
        last.unwrap_or(self.child.started())
    }

    /// Begins to find out why the program does not end, if it is time for that. Gives the time
    /// at which it is.
    fn examine(&mut self, now: Instant) -> Deadline {
        if self.next_examination().reached(now) {
            // Output since then has put the end of the silence off.
            let heard = self.limits.idle_timeout.starting(self.last_heard());
            if heard.instant() > self.idle_deadline.instant() {
                self.idle_deadline = heard;
            }
        }
        if self.next_examination().reached(now) {
            let news = self.news.clone();
            let pid = self.child.pid();
            self.looks.begin(vec![pid], Ok(move || news.tell()), now);
        }
        self.next_examination()
    }

    fn next_examination(&self) -> Deadline {
        match self.has_exited {
            true => Deadline::NEVER,
            false => self.looks.next([
                (self.deadline, self.limits.timeout),
                (self.idle_deadline, self.limits.idle_timeout),
            ]),
        }
    }

    /// Tells of a wait for input that was found, and looks for one if it is time for that. Gives
    /// the time at which it is.
    fn look_for_input_wanted(&mut self, now: Instant) -> Deadline {
        let latest = self.last_heard();
        let pid = self.child.pid();
        // What is told has the prompt, which the pump may not have come to read.
        if self.prompts.as_ref().is_some_and(PromptLooks::has_found) && self.is_behind() {
            return Deadline::at(now + BEHIND);
        }
        let Some(prompts) = self.prompts.as_mut().filter(|_| !self.has_exited) else {
            return Deadline::NEVER;
        };
        prompts.heard(Some(latest));
        let found = prompts.found();
        if prompts.next().reached(now) {
            let news = self.news.clone();
            prompts.begin(pid, Ok(move || news.tell()));
        }
        let (next, is_silent) = (prompts.next(), prompts.are_on());
        if let (Some(waiting), Some(listener)) = (found, &self.limits.for_input) {
            listener.tell(waiting, self.prompt());
        }
        // What ends this silence brings the next look nearer; what goes on without a pause wakes
        // nobody.
        if is_silent {
            self.open_flows().for_each(|flow| flow.watch.tell_of_next());
            if self.last_heard() > latest {
                // It came before that, and nobody is told.
                return Deadline::at(now);
            }
        }
        next
    }

    /// True if there is output that the pump will read at once, and has not noted yet. What
    /// waits for a reader of ours may do so for long.
    fn is_behind(&self) -> bool {
        !self.full.any_held() && self.open_flows().any(|flow| flow.watch.is_behind())
    }

    /// The unfinished line of the stream that has come last.
    fn prompt(&self) -> Option<String> {
        let flows = self.flows.values().flatten();
        let last = flows.max_by_key(|flow| flow.watch.last_read())?;
        last.last_words.as_ref()?.unfinished_line()
    }

    /// What was found out shortly before a limit about why the program does not end.
    fn diagnosis(&self, reached: ReachedBound) -> Option<Box<Diagnosis>> {
        let since = match reached {
            _ if self.has_exited => return None,
            ReachedBound::Timeout(_) => self.child.started(),
            ReachedBound::IdleTimeout(_) => self.last_heard(),
            ReachedBound::Bytes(_) | ReachedBound::Cancel => return None,
        };
        self.looks.latest(since, self.child.pid())
    }

    fn begin_stop(&mut self, reached: ReachedBound, now: Instant) -> Result<(), ChildIsBusy> {
        let diagnosis = self.diagnosis(reached);
        let open = self.open_streams();
        let pipes = self.open_pipes(open);
        let (machine, before) = self.child.begin_limit_stop(reached, &pipes, now)?;
        let held = open.stdout || open.stderr;
        self.stop = Some(Box::new(ChildStop {
            reached,
            began: now,
            machine,
            before,
            diagnosis,
            open,
            held_after_exit: self.has_exited && held && !self.limits.ends_at_exit,
        }));
        Ok(())
    }

    fn end_stop(&mut self) {
        // Who was not reached may hold the streams: their readers do not wait for that.
        self.finish_flows();
        let Some(stop) = self.stop.take() else {
            return;
        };
        let stop = *stop;
        self.child.end_limit_stop(PastLimitStop {
            reached: stop.reached,
            duration: stop.began.elapsed(),
            ended_after: self.child.started().elapsed(),
            survivors: stop.machine.survivors(),
            activities: stop.before.activities,
            holders: stop.before.holders,
            diagnosis: stop.diagnosis,
            open: stop.open,
            held_after_exit: stop.held_after_exit,
        });
    }

    /// Has the streams end with what is in their pipes now.
    fn finish_flows(&self) {
        self.open_flows().for_each(|flow| flow.stream.finish());
    }

    fn open_streams(&self) -> PerStream<bool> {
        let is_open = |flow: &Option<WatchedFlow>| {
            let flow = flow.as_ref();
            flow.is_some_and(|flow| !flow.watch.has_ended())
        };
        self.flows.as_ref().map(is_open)
    }

    /// The pipes whose other ends may still be held.
    fn open_pipes(&self, open: PerStream<bool>) -> Vec<RunPipe> {
        let pipes = self.child.pipes().iter();
        let is_open = |pipe: &&RunPipe| match stream_of(pipe) {
            Some(stream) => open[stream] || self.flows[stream].is_none(),
            None => true,
        };
        pipes.filter(is_open).cloned().collect()
    }
}

/// True if `fd` is readable at this moment.
fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let fd = Fd::from_borrowed_fd(fd, Flags::IN);
    poll::wait_one(fd, Deadline::at(Instant::now())).unwrap_or(false)
}
