//! What the threads of a map and the consumer of its results share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use super::ended::{Ended, Outcome};
use super::error::{Error, StoppedBy};
use super::input::{Commands, Input};
use crate::error::BoxError;
use crate::run::{Demand, Event, Moment, Watch};
use crate::spec::Spec;
use crate::spool::Memory;
use crate::taps::Tap;
use procwright_os::sync::{Condvar, Mutex, MutexGuard};
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;
use procwright_process::Cancel;

/// Makes the taps of a command when it is about to start.
pub(super) type TapMaker = Box<dyn Fn(u64, &Spec) -> Option<Box<dyn Tap>> + Send + Sync>;

/// Called with the place of a command in the input and what its run tells.
pub(super) type EventHook = Arc<dyn Fn(u64, &Event) -> Result<(), BoxError> + Send + Sync>;

/// The rules of a map, which do not change while it runs.
pub(super) struct Rules {
    pub(super) parallel: usize,
    /// How many results may wait to be taken before nothing more is started.
    pub(super) ahead: usize,
    pub(super) is_ordered: bool,
    /// How many failures end it, and how.
    pub(super) after_failures: Option<(u64, Ending)>,
    pub(super) deadline: Deadline,
    pub(super) cancel: Option<Cancel>,
    pub(super) tap: Option<TapMaker>,
    pub(super) on_event: Option<EventHook>,
    /// The environment of commands that have none.
    pub(super) env: Option<Vec<(std::ffi::OsString, std::ffi::OsString)>>,
}

/// How far a map is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Commands that were taken from the input.
    pub taken: u64,
    /// Commands that run at this moment.
    pub running: u64,
    /// Commands that were run, and have succeeded.
    pub succeeded: u64,
    /// Commands that were run and have failed, or could not be started.
    pub failed: u64,
    /// Commands that the end of the map has stopped: by a cancel, or since others had failed. Those
    /// that the deadline has stopped have failed: they timed out.
    pub stopped: u64,
    /// Commands that were not run, since the journal tells of their success.
    pub succeeded_before: u64,
    /// Commands that were not run, since the journal tells of their failure.
    pub failed_before: u64,
    /// Commands that were not run, since the journal tells of a start without an end.
    pub unknown: u64,
    /// True if the input has no more.
    pub all_taken: bool,
    /// Times of all commands that were run and have ended, together.
    pub ran_for: Duration,
    /// Times since their starts of those that run at this moment, together.
    pub running_for: Duration,
}

/// How sharp an end is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    #[default]
    None,
    /// Nothing more is started.
    NoMore,
    /// What runs is stopped.
    Stop,
    /// What runs is stopped without more grace.
    Kill,
}

/// What a map shares.
pub(super) struct Shared<M> {
    pub(super) rules: Rules,
    #[cfg(feature = "serde")]
    pub(super) journal: Option<super::journal::Journal>,
    state: Mutex<State<M>>,
    /// Notified when there may be a command for a thread that has none.
    changed: Condvar,
    /// Rung when there may be something for the consumer.
    pub(super) ready: Wake,
}

pub(super) struct State<M> {
    input: Input,
    /// The results by the order in which they are given out.
    ended: BTreeMap<u64, Ended<M>>,
    /// Place of the next result to be put among those that come as they end.
    next_end: u64,
    /// Place of the next result to be given out.
    next_out: u64,
    /// Without `running_for`, which grows by itself.
    progress: Progress,
    /// When the map began.
    begun: Instant,
    /// Times from then to the starts of the commands that run, together.
    starts: Duration,
    error: Option<Error>,
    stopped_by: Option<StoppedBy>,
    /// Place in the input of the failure that has ended it.
    cause: Option<u64>,
    /// True if what ran was stopped for that: not if it was to go on to its end, and the caller
    /// has stopped it.
    is_stopped_for_cause: bool,
    ending: Ending,
    /// A bell for each thread, which its run looks after.
    bells: Vec<Arc<Wake>>,
    /// Threads that wait for a command.
    idle: usize,
    /// All threads, to be joined at the end.
    threads: Vec<JoinHandle<()>>,
    /// The thread that is inside the input.
    asking: Option<ThreadId>,
}

/// A command that a thread has taken.
pub(super) struct Taken {
    pub(super) index: u64,
    /// When it was taken, from the beginning of the map on.
    pub(super) start: Duration,
    pub(super) spec: Arc<Spec>,
    /// True if one thread more could have a command at this moment.
    pub(super) wants_thread: bool,
}

impl<M: Memory> Shared<M> {
    pub(super) fn new(
        rules: Rules,
        commands: Commands,
        #[cfg(feature = "serde")] journal: Option<super::journal::Journal>,
    ) -> std::io::Result<Shared<M>> {
        Ok(Shared {
            rules,
            #[cfg(feature = "serde")]
            journal,
            state: Mutex::new(State {
                input: Input::Idle(commands),
                ended: BTreeMap::new(),
                next_end: 0,
                next_out: 0,
                progress: Progress::default(),
                begun: Instant::now(),
                starts: Duration::ZERO,
                error: None,
                stopped_by: None,
                cause: None,
                is_stopped_for_cause: false,
                ending: Ending::None,
                bells: Vec::new(),
                idle: 0,
                threads: Vec::new(),
                asking: None,
            }),
            changed: Condvar::new(),
            ready: Wake::new()?,
        })
    }

    /// Notes one thread more, whose runs look after `bell`.
    pub(super) fn add_thread(&self, bell: Arc<Wake>) {
        self.state.lock().bells.push(bell);
    }

    /// Takes back what [`Shared::add_thread`] noted.
    pub(super) fn remove_thread(&self, bell: &Arc<Wake>) {
        self.state
            .lock()
            .bells
            .retain(|other| !Arc::ptr_eq(other, bell));
    }

    /// Waits for a command, and takes it; none if no more is to be started.
    pub(super) fn take_command(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        loop {
            self.look_at_the_end(&mut state);
            if state.ending != Ending::None || matches!(state.input, Input::Done) {
                return None;
            }
            if state.has_room(&self.rules)
                && let Some(commands) = state.input.take()
            {
                let (after, taken) = self.ask(state, commands);
                if taken.is_some() {
                    return taken;
                }
                state = after;
                continue;
            }
            state.idle += 1;
            state = self.changed.wait(state);
            state.idle -= 1;
        }
    }

    /// Asks the input for a command without the lock.
    fn ask<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<M>>,
        mut commands: Commands,
    ) -> (MutexGuard<'s, State<M>>, Option<Taken>) {
        state.asking = Some(std::thread::current().id());
        drop(state);
        let answer = super::input::ask(&mut commands);
        let mut state = self.state.lock();
        state.asking = None;
        let taken = match answer {
            Ok(Some(spec)) => {
                state.input = Input::Idle(commands);
                self.look_at_the_end(&mut state);
                // Asked for before the end, and come behind it: nobody has been told of it.
                (state.ending == Ending::None).then(|| state.take(spec, &self.rules))
            }
            Ok(None) => {
                state.input = Input::Done;
                state.progress.all_taken = true;
                self.ready.ring();
                drop(state);
                drop(commands);
                state = self.state.lock();
                None
            }
            Err(error) => {
                self.fail_with(&mut state, error);
                state.input = Input::Done;
                drop(state);
                drop(commands);
                state = self.state.lock();
                None
            }
        };
        self.changed.notify_all();
        (state, taken)
    }

    /// Notes a cancel and a deadline that has come.
    fn look_at_the_end(&self, state: &mut State<M>) {
        if self.rules.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
            self.end(state, Ending::Stop, Some(StoppedBy::Cancel));
        }
        if self.rules.deadline.reached(Instant::now()) {
            // What runs has a timeout that comes no later.
            self.end(state, Ending::NoMore, Some(StoppedBy::Deadline));
        }
    }

    /// Notes what became of a command, which was taken at `start`.
    pub(super) fn put(&self, index: u64, start: Duration, spec: Arc<Spec>, outcome: Outcome<M>) {
        let mut ended = Ended {
            index,
            spec,
            outcome,
            cause: None,
        };
        let mut state = self.state.lock();
        state.starts = state.starts.saturating_sub(start);
        let time = state.begun.elapsed().saturating_sub(start);
        let progress = &mut state.progress;
        progress.running -= 1;
        if matches!(ended.outcome, Outcome::Ran(_)) {
            progress.ran_for += time;
        }
        match &ended.outcome {
            Outcome::Ran(_) | Outcome::NotStarted(_) => match ended.success() {
                true => progress.succeeded += 1,
                false if ended.was_stopped() => progress.stopped += 1,
                false => progress.failed += 1,
            },
            Outcome::Before(past) => match past.success() {
                true => progress.succeeded_before += 1,
                false => progress.failed_before += 1,
            },
            Outcome::Unknown(_) => progress.unknown += 1,
            // It comes of a taking alone.
            Outcome::Taken => {}
        }
        if let Some((most, ending)) = self.rules.after_failures
            && progress.failed >= most
        {
            // What nobody has noted yet came first all the same.
            self.look_at_the_end(&mut state);
            let (was_stopped_by, was) = (state.stopped_by, state.ending);
            self.end(&mut state, ending, Some(StoppedBy::Failures));
            if was_stopped_by.is_none() && state.stopped_by == Some(StoppedBy::Failures) {
                state.cause = Some(index);
                state.is_stopped_for_cause = was < Ending::Stop && ending >= Ending::Stop;
            }
        }
        if ended.was_stopped() && state.is_stopped_for_cause || state.cause == Some(index) {
            ended.cause = state.cause;
        }
        let place = match self.rules.is_ordered {
            true => index,
            false => state.next_end,
        };
        state.next_end += 1;
        state.ended.insert(place, ended);
        self.look_at_the_end(&mut state);
        drop(state);
        self.changed.notify_one();
        self.ready.ring();
    }

    /// Ends the map with an error.
    pub(super) fn fail(&self, error: Error) {
        self.fail_with(&mut self.state.lock(), error);
    }

    fn fail_with(&self, state: &mut State<M>, error: Error) {
        // The first is the cause.
        state.error.get_or_insert(error);
        self.end(state, Ending::Stop, Some(StoppedBy::Error));
    }

    /// Starts nothing more, and stops what runs as `ending` says.
    pub(super) fn stop(&self, ending: Ending, by: Option<StoppedBy>) {
        self.end(&mut self.state.lock(), ending, by);
    }

    fn end(&self, state: &mut State<M>, ending: Ending, by: Option<StoppedBy>) {
        if by.is_some() && !state.is_over() {
            state.stopped_by = state.stopped_by.or(by);
        }
        if ending <= state.ending {
            return;
        }
        state.ending = ending;
        for bell in &state.bells {
            bell.ring();
        }
        self.changed.notify_all();
        self.ready.ring();
    }

    /// The next result, an error, or the end; none if there is nothing at this moment.
    pub(super) fn look(&self) -> Option<Next<M>> {
        let mut state = self.state.lock();
        self.look_at_the_end(&mut state);
        let out = state.next_out;
        if let Some(ended) = state.ended.remove(&out) {
            state.next_out += 1;
            drop(state);
            self.changed.notify_one();
            return Some(Next::Ended(ended));
        }
        if !state.is_over() {
            return None;
        }
        Some(match state.error.take() {
            Some(error) => Next::Failed(error),
            None => Next::Over,
        })
    }

    /// The failure that has ended the map, if its turn has not come yet: it is left there as
    /// taken.
    pub(super) fn take_cause(&self) -> Option<Ended<M>> {
        let mut state = self.state.lock();
        let cause = state.cause?;
        let mut waiting = state.ended.values_mut();
        let ended = waiting.find(|one| one.index == cause)?;
        if matches!(ended.outcome, Outcome::Taken) {
            return None;
        }
        Some(Ended {
            index: ended.index,
            spec: Arc::clone(&ended.spec),
            outcome: std::mem::replace(&mut ended.outcome, Outcome::Taken),
            cause: ended.cause,
        })
    }

    /// True if no command runs, and none will.
    pub(super) fn is_over(&self) -> bool {
        self.state.lock().is_over()
    }

    /// Notes a thread that is to be joined at the end.
    pub(super) fn keep_handle(&self, thread: JoinHandle<()>) {
        self.state.lock().threads.push(thread);
    }

    /// Waits until the threads have ended, but for one that is inside the input, perhaps for
    /// ever. To be called when the map is over: none of them begins anything more. What is left
    /// of a thread drops what the caller gave the map, and a front end's interpreter may be
    /// gone by the time it does.
    fn join(&self) {
        let (threads, asking) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.threads), state.asking)
        };
        let own = std::thread::current().id();
        for thread in threads {
            let id = thread.thread().id();
            if id != own && Some(id) != asking {
                // A panic of its own has been told of.
                let _ = thread.join();
            }
        }
    }

    /// Waits for the threads, and gives up what later maps need. To be called when this one is
    /// over.
    pub(super) fn close(&self) {
        self.join();
        #[cfg(feature = "serde")]
        if let Some(journal) = &self.journal {
            journal.end();
        }
    }

    pub(super) fn ending(&self) -> Ending {
        self.state.lock().ending
    }

    pub(super) fn progress(&self) -> Progress {
        let state = self.state.lock();
        let running = u32::try_from(state.progress.running).unwrap_or(u32::MAX);
        let until_now = state.begun.elapsed().saturating_mul(running);
        Progress {
            running_for: until_now.saturating_sub(state.starts),
            ..state.progress
        }
    }

    pub(super) fn stopped_by(&self) -> Option<StoppedBy> {
        self.state.lock().stopped_by
    }
}

impl<M> State<M> {
    /// True if a command that is taken now may be started.
    fn has_room(&self, rules: &Rules) -> bool {
        let waiting = self.ended.len();
        self.progress.running < rules.parallel as u64
            && self.progress.running + (waiting as u64) < (rules.parallel + rules.ahead) as u64
    }

    fn take(&mut self, spec: Spec, rules: &Rules) -> Taken {
        let index = self.progress.taken;
        let start = self.begun.elapsed();
        self.starts += start;
        self.progress.taken += 1;
        self.progress.running += 1;
        Taken {
            index,
            start,
            spec: Arc::new(spec),
            wants_thread: self.idle == 0 && self.bells.len() < rules.parallel,
        }
    }

    fn is_over(&self) -> bool {
        let no_more = self.ending != Ending::None || matches!(self.input, Input::Done);
        no_more && self.progress.running == 0
    }
}

/// What the consumer gets.
pub(super) enum Next<M> {
    Ended(Ended<M>),
    Failed(Error),
    Over,
}

/// A run's look at the end of its map.
pub(super) struct EndWatch<'a, M> {
    pub(super) shared: &'a Shared<M>,
    pub(super) bell: &'a Wake,
}

impl<M> Watch for EndWatch<'_, M> {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::AsFd as _;
        self.bell.as_fd()
    }

    fn ready(&mut self, _moment: Moment<'_>) -> Result<Demand, BoxError> {
        // Silenced first: a ring that comes behind the look is not lost.
        self.bell.silence();
        let ending = self.shared.state.lock().ending;
        Ok(match ending {
            Ending::None | Ending::NoMore => Demand::Nothing,
            Ending::Stop => Demand::Stop,
            Ending::Kill => Demand::Kill,
        })
    }
}
