//! `Procwright.map`: many commands, so many at a time.

mod callbacks;
mod dropped;
mod input;

use std::num::NonZero;
use std::os::fd::AsFd;
use std::sync::Arc;

use magnus::value::ReprValue;
use magnus::{
    Class, Error, Exception, IntoValue, Module, Object, RArray, RHash, RModule, RObject, RString,
    Ruby, Value, function, method,
};
use procwright::map::{
    self, Ended, Joblog, Journal, JournalError, Outcome, Past, Remote, Running, Step, StoppedBy,
};
use procwright_os::fork::ProcessOwned;
use procwright_os::sync::Mutex;
use rustix::io::Errno;

use crate::arguments::seconds;
use crate::cancel::Cancel;
use crate::errors::{exception, guarded, invalid_error, panic_error, spawn_error, system_error};
use crate::gvl::{self, without_gvl_briefly};
use crate::interruptible::{Interrupts, fork_error};
use crate::options::{Options, path};
use crate::report::status;
use crate::run;
use callbacks::{Calls, LineTap, MapCallbacks, News};
use input::{Asking, Commands, MapInput};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    callbacks::define(ruby, native)?;
    input::define(ruby, native)?;
    dropped::define(native)?;
    native.define_singleton_method("map", function!(start, 2))?;
    let class = native.define_class("Map", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("next", method!(Map::next, 1))?;
    class.define_method("take_cause", method!(Map::take_cause, 1))?;
    class.define_method("stop", method!(Map::stop, 0))?;
    class.define_method("close", method!(Map::close, 0))?;
    class.define_method("over?", method!(Map::is_over, 0))?;
    class.define_method("progress", method!(Map::progress, 0))
}

/// A map under way. In a fork nobody has it.
#[magnus::wrap(class = "Procwright::Native::Map", free_immediately)]
pub(crate) struct Map(ProcessOwned<Inner>);

struct Inner {
    /// None once it is over. No call waits for this lock: one that finds it taken is on another
    /// thread, or in a signal handler of the very wait.
    running: Mutex<Option<Running>>,
    remote: Remote,
    asking: Arc<Asking>,
    calls: Option<Arc<Calls>>,
}

/// Begins, and leaves the map to `holder`, as its `@native`: what an interrupt throws when this
/// returns would take the place of the value.
fn start(ruby: &Ruby, holder: RObject, hash: RHash) -> Result<(), Error> {
    guarded(|| {
        let options = Options { ruby, hash };
        let asking = options.get::<&MapInput>("input")?.asking();
        let callbacks = options.get::<Option<&MapCallbacks>>("callbacks")?;
        let calls = callbacks.map(MapCallbacks::calls);
        let journal = options.get::<Option<RHash>>("journal")?;
        let journal = journal.map(|hash| JournalOptions::from(Options { ruby, hash }));
        let journal = journal.transpose()?;
        let mut map = map::Map::fallible(Commands(Arc::clone(&asking)))
            // Copied while this thread has Ruby's lock, with which variables are set.
            .env_replace(std::env::vars_os())
            .deadline(seconds("deadline", options.get("deadline")?)?);
        if let Some(parallel) = options.get("parallel")? {
            map = map.parallel(parallel);
        }
        if let Some(ahead) = options.get("ahead")? {
            map = map.ahead(ahead);
        }
        if options.get::<bool>("ordered")? {
            map = map.ordered();
        }
        let failures = options.get::<Option<u64>>("stop_after_failures")?;
        if let Some(failures) = failures.and_then(NonZero::new) {
            map = map.stop_after_failures(failures);
        }
        if let Some(cancel) = options.get::<Option<&Cancel>>("cancel")? {
            map = map.cancel_on(&cancel.handle());
        }
        if let Some(calls) = &calls {
            map = with_callbacks(map, calls, options.get("events")?, options.get("lines")?);
        }
        let mut map = Some(map);
        let started = without_gvl_briefly(|| {
            let mut map = map.take()?;
            if let Some(journal) = &journal {
                match journal.open() {
                    Ok(journal) => map = map.journal(journal),
                    Err(error) => return Some(Err(map::Error::Journal(error))),
                }
            }
            Some(map.start())
        })?;
        let started = started.map_err(|panic| panic_error(&*panic))?;
        let running = match started {
            Some(started) => started.map_err(failed)?,
            None => return Err(exception("internal_error", ("started twice",))),
        };
        let remote = running.remote();
        let inner = Inner {
            running: Mutex::new(Some(running)),
            remote,
            asking,
            calls,
        };
        holder.ivar_set("@native", Map(ProcessOwned::new(inner)))
    })
}

fn with_callbacks(mut map: map::Map, calls: &Arc<Calls>, events: bool, lines: bool) -> map::Map {
    if events {
        let calls = Arc::clone(calls);
        map = map.on_event(move |index, event| {
            callbacks::tell(&calls, index, News::Event(event.clone()))
        });
    }
    if lines {
        let calls = Arc::clone(calls);
        map = map.tap_with(move |index, _| {
            let calls = Arc::clone(&calls);
            Some(Box::new(LineTap { calls, index }))
        });
    }
    map
}

/// A journal, as `lib/procwright/journal.rb` asks for it.
struct JournalOptions {
    path: std::path::PathBuf,
    resume: bool,
    rerun_failed: bool,
    rerun_unknown: bool,
    sync: bool,
    joblog: Option<std::path::PathBuf>,
}

impl JournalOptions {
    fn from(options: Options<'_>) -> Result<JournalOptions, Error> {
        Ok(JournalOptions {
            path: path(options.get::<RString>("path")?),
            resume: options.get("resume")?,
            rerun_failed: options.get("rerun_failed")?,
            rerun_unknown: options.get("rerun_unknown")?,
            sync: options.get("sync")?,
            joblog: options.get::<Option<RString>>("joblog")?.map(path),
        })
    }

    fn open(&self) -> Result<Journal, JournalError> {
        let mut journal = match self.resume {
            true => Journal::resume(&self.path)?,
            false => Journal::create(&self.path)?,
        };
        if self.rerun_failed {
            journal = journal.rerun_failed();
        }
        if self.rerun_unknown {
            journal = journal.rerun_unknown();
        }
        if self.sync {
            journal = journal.synced();
        }
        if let Some(path) = &self.joblog {
            journal = journal.joblog(Joblog::open(path, self.resume)?);
        }
        Ok(journal)
    }
}

impl Map {
    /// Waits for the next result, and appends it to `into`, as its place, what it is, its parts,
    /// what has broken it off, its line, and the place of the failure that has ended the map, where
    /// it is that one or was stopped for it. Appends nothing at the end.
    ///
    /// What an interrupt throws ends the map, and comes through when nothing of it is left.
    fn next(ruby: &Ruby, rb_self: &Map, into: RArray) -> Result<(), Error> {
        guarded(|| {
            let inner = rb_self.inner()?;
            let Some(mut place) = inner.running.try_lock() else {
                let words = "a result of this map is being waited for on another thread";
                return Err(Error::new(ruby.exception_thread_error(), words));
            };
            let Some(running) = place.as_mut() else {
                return Ok(());
            };
            let step = match running.try_next() {
                Some(step) => Ok(step),
                None => wait(running),
            };
            match step {
                Ok(Step::Ended(ended)) => into.push(come(ruby, ended)?),
                Ok(Step::Failed(error)) => {
                    *place = None;
                    Err(failed(error))
                }
                Ok(_) => {
                    *place = None;
                    Ok(())
                }
                Err(Interrupted::Forked(error)) => Err(error),
                Err(Interrupted::Thrown(error)) => {
                    let ended = place.take().map(|running| inner.end(running, Some(error)));
                    ended.unwrap_or(Ok(()))
                }
            }
        })
    }

    /// Appends to `into` the failure that has ended the map, if its turn has not come: in that it
    /// comes once more, as `:taken`.
    fn take_cause(ruby: &Ruby, rb_self: &Map, into: RArray) -> Result<(), Error> {
        guarded(|| {
            let mut place = rb_self.inner()?.running.try_lock();
            let running = place.as_mut().and_then(|place| place.as_mut());
            match running.and_then(Running::take_cause) {
                Some(ended) => into.push(come(ruby, ended)?),
                None => Ok(()),
            }
        })
    }

    /// Starts nothing more, and stops what runs. Returns at once.
    fn stop(&self) -> Result<(), Error> {
        guarded(|| {
            self.inner()?.remote.stop();
            Ok(())
        })
    }

    /// Stops what runs, and returns when it has ended.
    fn close(&self) -> Result<(), Error> {
        guarded(|| {
            let Ok(inner) = self.inner() else {
                return Ok(());
            };
            let Some(mut place) = inner.running.try_lock() else {
                // Whoever waits for a result is told of the end.
                inner.remote.stop();
                return Ok(());
            };
            let running = place.take();
            drop(place);
            running.map_or(Ok(()), |running| inner.end(running, None))
        })
    }

    /// True if the end has come out, or it was closed.
    fn is_over(&self) -> bool {
        let Ok(inner) = self.inner() else {
            return true;
        };
        inner
            .running
            .try_lock()
            .is_some_and(|place| place.is_none())
    }

    /// How far it is, and what has stopped it.
    fn progress(ruby: &Ruby, rb_self: &Map) -> Result<RHash, Error> {
        guarded(|| {
            let remote = &rb_self.inner()?.remote;
            let progress = remote.progress();
            let hash = ruby.hash_new();
            for (name, count) in [
                ("taken", progress.taken),
                ("running", progress.running),
                ("succeeded", progress.succeeded),
                ("failed", progress.failed),
                ("stopped", progress.stopped),
                ("succeeded_before", progress.succeeded_before),
                ("failed_before", progress.failed_before),
                ("unknown", progress.unknown),
            ] {
                hash.aset(ruby.to_symbol(name), count)?;
            }
            hash.aset(ruby.to_symbol("all_taken"), progress.all_taken)?;
            let by = remote.stopped_by().map(StoppedBy::name);
            let by = by.map(|name| ruby.to_symbol(name));
            hash.aset(ruby.to_symbol("stopped_by"), by)?;
            Ok(hash)
        })
    }

    /// # Errors
    /// In a fork: the locks may be held by threads that are not there.
    fn inner(&self) -> Result<&Inner, Error> {
        match self.0.is_ours() {
            true => Ok(&self.0),
            false => Err(failed(map::Error::Forked)),
        }
    }
}

/// What has ended a wait before there was a result.
enum Interrupted {
    Thrown(Error),
    /// A handler has forked, and this is the fork.
    Forked(Error),
}

/// Waits for what comes next.
fn wait(running: &mut Running) -> Result<Step, Interrupted> {
    let interrupts = Interrupts::watch().map_err(Interrupted::Thrown)?;
    let process = std::process::id();
    loop {
        let checked = interrupts.check();
        if std::process::id() != process {
            return Err(Interrupted::Forked(fork_error(None, checked)));
        }
        checked.map_err(Interrupted::Thrown)?;
        let step = interrupts.without_gvl_unchecked(|| running.next_unless(interrupts.as_fd()));
        match step {
            Some(Ok(Some(step))) => return Ok(step),
            Some(Ok(None)) | None => {}
            Some(Err(panic)) => return Err(Interrupted::Thrown(panic_error(&*panic))),
        }
    }
}

impl Inner {
    /// Stops what runs, and returns when it has ended. What is thrown meanwhile ends the grace,
    /// and is returned; `raised` goes before that.
    fn end(&self, mut running: Running, mut raised: Option<Error>) -> Result<(), Error> {
        self.remote.stop();
        let interrupts = match Interrupts::watch() {
            Ok(interrupts) => interrupts,
            Err(error) => {
                // No descriptor for interrupts: then without them, and without a grace.
                self.remote.kill();
                drop(running);
                return Err(raised.unwrap_or(error));
            }
        };
        let process = std::process::id();
        loop {
            interrupts.clear();
            let thrown = gvl::check_interrupts_beside(raised.as_ref());
            if std::process::id() != process {
                return Err(fork_error(raised, thrown));
            }
            if let Err(error) = thrown {
                raised.get_or_insert(error);
                self.remote.kill();
            }
            let step = interrupts.without_gvl_unchecked(|| running.next_unless(interrupts.as_fd()));
            match step {
                None | Some(Ok(None | Some(Step::Ended(_)))) => {}
                Some(Ok(Some(_)) | Err(_)) => break,
            }
        }
        raised.map_or(Ok(()), Err)
    }
}

impl Drop for Inner {
    /// Nobody has the map any more. What runs is stopped, without keeping the collector waiting.
    fn drop(&mut self) {
        self.asking.close();
        if let Some(calls) = &self.calls {
            calls.close();
        }
        let running = std::mem::take(&mut *self.running.lock());
        if let Some(running) = running {
            self.remote.stop();
            dropped::end_behind(running, self.remote.clone());
        }
    }
}

/// A command that has ended, in parts.
fn come(ruby: &Ruby, ended: Ended) -> Result<RArray, Error> {
    let line = ended.summary();
    let nil = || ruby.qnil().as_value();
    let (kind, parts, error) = match ended.outcome {
        Outcome::Ran(collected) => {
            let (hash, failure) = run::parts(ruby, *collected, &[])?;
            ("ran", hash.as_value(), failure.and_then(exception_of))
        }
        Outcome::NotStarted(error) => ("not_started", nil(), exception_of(spawn_error(&error))),
        Outcome::Before(past) => ("before", past_parts(ruby, &past)?.as_value(), None),
        Outcome::Unknown(past) => ("unknown", past_parts(ruby, &past)?.as_value(), None),
        Outcome::Taken => ("taken", nil(), None),
        _ => ("unknown", nil(), None),
    };
    let array = ruby.ary_new();
    array.push(ended.index)?;
    array.push(ruby.to_symbol(kind))?;
    array.push(parts)?;
    array.push(error)?;
    array.push(line)?;
    array.push(ended.cause)?;
    Ok(array)
}

/// The exception, which is not raised.
fn exception_of(error: Error) -> Option<Exception> {
    error.value().and_then(Exception::from_value)
}

/// Start, success, duration, words and status of what a journal tells.
fn past_parts(ruby: &Ruby, past: &Past) -> Result<RArray, Error> {
    let end = past.end.as_ref();
    let status = past.status().map(|exit| status(ruby, exit)).transpose()?;
    let parts: [Value; 5] = [
        past.started_at.into_value_with(ruby),
        end.map(|end| end.success).into_value_with(ruby),
        end.map(|end| end.duration.as_secs_f64())
            .into_value_with(ruby),
        end.map(|end| &*end.words).into_value_with(ruby),
        status.into_value_with(ruby),
    ];
    Ok(ruby.ary_new_from_values(&parts))
}

/// The exception for an error of the map.
fn failed(error: map::Error) -> Error {
    let words = error.to_string();
    match error {
        map::Error::Invalid(error) => invalid_error(&error),
        map::Error::Resources(error) => system_error(&error, words),
        map::Error::Journal(JournalError::Io { source, .. }) => {
            exception("journal_error", (words, source.raw_os_error()))
        }
        map::Error::Journal(_) => exception("journal_error", (words, None::<i32>)),
        map::Error::Forked => system_error(&Errno::CHILD.into(), words),
        // That of the input has the exception that the input has raised in its place.
        _ => exception("internal_error", (words,)),
    }
}
