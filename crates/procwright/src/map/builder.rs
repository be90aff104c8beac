//! What to run, so many at a time, and by which rules.

use std::ffi::OsString;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Instant;

use super::error::Error;
use super::input::Commands;
#[cfg(feature = "serde")]
use super::journal::Journal;
use super::pool;
use super::running::Running;
use super::state::{Ending, EventHook, Rules, Shared, TapMaker};
use crate::error::{BoxError, Invalid};
use crate::run::Event;
use crate::spec::Spec;
use crate::spool::Memory;
use crate::taps::Tap;
use procwright_os::time::Timeout;
use procwright_process::Cancel;

/// The most commands at a time. A thread looks after each; what is meant by more is a mistake.
const MOST_PARALLEL: usize = 100_000;

/// Many commands to run, so many at a time: see the [module](crate::map).
#[must_use]
pub struct Map {
    commands: Commands,
    parallel: Option<usize>,
    ahead: Option<usize>,
    is_ordered: bool,
    after_failures: Option<(u64, Ending)>,
    deadline: Timeout,
    cancel: Option<Cancel>,
    tap: Option<TapMaker>,
    on_event: Option<EventHook>,
    env: Option<Vec<(OsString, OsString)>>,
    #[cfg(feature = "serde")]
    journal: Option<Journal>,
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map")
            .field("parallel", &self.parallel)
            .finish_non_exhaustive()
    }
}

impl Map {
    /// Runs what `commands` yields, as many at a time as there are processors.
    ///
    /// The iterator is asked for the next command when there is a place for it, on a thread of
    /// the map, so that it may block. What it is asked for while the map ends is not started,
    /// and the map does not wait for it.
    #[doc(alias = "xargs")]
    #[doc(alias = "parallel")]
    #[doc(alias = "ThreadPoolExecutor")]
    pub fn new<I>(commands: I) -> Map
    where
        I: IntoIterator<Item = Spec>,
        I::IntoIter: Send + 'static,
    {
        Map::fallible(commands.into_iter().map(Ok))
    }

    /// Runs what `commands` yields as [`Map::new`] does. An error of the iterator ends the map,
    /// and comes through as [`Error::Input`].
    pub fn fallible<I>(commands: I) -> Map
    where
        I: IntoIterator<Item = Result<Spec, BoxError>>,
        I::IntoIter: Send + 'static,
    {
        Map {
            commands: Box::new(commands.into_iter()),
            parallel: None,
            ahead: None,
            is_ordered: false,
            after_failures: None,
            deadline: Timeout::NEVER,
            cancel: None,
            tap: None,
            on_event: None,
            env: None,
            #[cfg(feature = "serde")]
            journal: None,
        }
    }

    /// Sets how many run at a time, 1 to 100,000; as many as there are processors unless it is
    /// set. Where not so many threads can be had, fewer run at a time.
    #[doc(alias = "max_workers")]
    pub fn parallel(mut self, commands: usize) -> Self {
        self.parallel = Some(commands);
        self
    }

    /// Sets how many results may wait to be taken before nothing more is started: as many as run
    /// at a time unless it is set, or 100 where that is more. With [`Map::ordered`] those wait as
    /// well that have overtaken a slower command.
    #[doc(alias = "buffersize")]
    pub fn ahead(mut self, results: usize) -> Self {
        self.ahead = Some(results);
        self
    }

    /// Gives the results in the order of the input, and not as the commands end.
    pub fn ordered(mut self) -> Self {
        self.is_ordered = true;
        self
    }

    /// Stops when so many commands have failed: nothing more is started, and what runs is
    /// stopped. Without this all are run, whatever becomes of the others.
    #[doc(alias = "halt")]
    #[doc(alias = "fail_fast")]
    pub fn stop_after_failures(mut self, failures: NonZero<u64>) -> Self {
        self.after_failures = Some((failures.get(), Ending::Stop));
        self
    }

    /// Starts nothing more when so many commands have failed, and lets what runs go on to its end.
    /// Of this and [`Map::stop_after_failures`] the last counts.
    #[doc(alias = "halt")]
    pub fn start_no_more_after_failures(mut self, failures: NonZero<u64>) -> Self {
        self.after_failures = Some((failures.get(), Ending::NoMore));
        self
    }

    /// Limits the time of the whole map, from its start. Nothing is started after it, and what
    /// runs then is stopped, with the reason [`Timeout`](crate::Reason::Timeout). Each command
    /// may have a timeout of its own besides.
    pub fn deadline(mut self, after: impl Into<Timeout>) -> Self {
        self.deadline = after.into();
        self
    }

    /// Lets `cancel` end the map from another thread.
    pub fn cancel_on(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Has `make` called for each command that is about to start, with its place in the input,
    /// for a tap that gets its output while it comes: in the place of a relay where the command
    /// has one ([`Command::relay_with`](crate::Command::relay_with)), beside the capture
    /// otherwise ([`Command::tap_both`](crate::Command::tap_both)). The call is made on a
    /// thread of the map.
    pub fn tap_with<F>(mut self, make: F) -> Self
    where
        F: Fn(u64, &Spec) -> Option<Box<dyn Tap>> + Send + Sync + 'static,
    {
        self.tap = Some(Box::new(make));
        self
    }

    /// Calls `hook` with the place of a command in the input and what its run has to tell, as
    /// [`Command::on_event`](crate::Command::on_event) does: on a thread of that run. An error is
    /// the failure of that command.
    pub fn on_event<F>(mut self, hook: F) -> Self
    where
        F: Fn(u64, &Event) -> Result<(), BoxError> + Send + Sync + 'static,
    {
        self.on_event = Some(Arc::new(hook));
        self
    }

    /// Sets the environment of those commands that have none of their own. That of this process
    /// at each start, unless it is set.
    pub fn env_replace<I, K, V>(mut self, env: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let env = env.into_iter().map(|(k, v)| (k.into(), v.into()));
        self.env = Some(env.collect());
        self
    }

    /// Keeps a journal, by which a later map knows what has been done: see [`Journal`].
    #[cfg(feature = "serde")]
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Begins. Commands are started from now on, whether or not results are taken.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Resources`] and [`Error::Journal`]. Nothing was started then, and the iterator
    /// has not been asked.
    pub fn start(self) -> Result<Running, Error> {
        self.start_into()
    }

    /// Begins, and captures into memory of the caller's kind.
    ///
    /// # Errors
    /// As [`Map::start`].
    pub fn start_into<M: Memory>(self) -> Result<Running<M>, Error> {
        let parallel = self.parallel.unwrap_or_else(processors);
        if !(1..=MOST_PARALLEL).contains(&parallel) {
            return Err(Error::Invalid(Invalid::new(
                "parallel",
                format!("is {parallel}"),
                format!("pass how many may run at a time, from 1 to {MOST_PARALLEL}"),
            )));
        }
        let rules = Rules {
            parallel,
            ahead: self.ahead.unwrap_or(parallel.max(100)),
            is_ordered: self.is_ordered,
            after_failures: self.after_failures,
            deadline: self.deadline.starting(Instant::now()),
            cancel: self.cancel,
            tap: self.tap,
            on_event: self.on_event,
            env: self.env,
        };
        #[cfg(feature = "serde")]
        if let Some(journal) = &self.journal {
            journal.begin()?;
        }
        let shared = Shared::new(
            rules,
            self.commands,
            #[cfg(feature = "serde")]
            self.journal,
        );
        let shared = Arc::new(shared.map_err(Error::Resources)?);
        pool::add_thread(&shared).map_err(Error::Resources)?;
        Ok(Running::new(shared))
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}
