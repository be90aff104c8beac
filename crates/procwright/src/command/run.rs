//! One call from the start to the result, and options for that alone.

use std::sync::Arc;
use std::time::Duration;

use super::builder::Command;
use super::ongoing::Ongoing;
use crate::error::BoxError;
use crate::run::{self, Collected, Error, Event, Failure, Output, Reason, Watch};
use crate::spec::Until;
use crate::spool::Memory;
use procwright_os::time::Timeout;
use procwright_process::{Cancel, Stop};

impl<'a> Command<'a> {
    /// Limits the time of the whole run; of a child of [`spawn`](Command::spawn), the time
    /// until it has ended and its streams have: it is stopped then, by its [`Stop`], whether
    /// or not anybody waits for it or holds it, and its [`report`](crate::Child::report) says
    /// so. Of one with bare pipes, which its caller reads, the time until it has ended.
    ///
    /// [`Stop`]: procwright_process::Stop
    #[doc(alias = "alarm")]
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.spec.timeout = timeout.into();
        self
    }

    /// Limits the time without a byte on either captured stream. While a stream of a child
    /// of [`spawn`](Command::spawn) is full, because nobody reads it, the silence is not the
    /// program's.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.spec.idle_timeout = timeout.into();
        self
    }

    /// Sets how the run is stopped when it has to be.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.spec.stop = stop;
        self
    }

    /// Sets when the run is over; of a child of [`spawn`](Command::spawn), when its streams
    /// are.
    #[must_use]
    pub fn until(mut self, until: Until) -> Self {
        self.spec.until = until;
        self
    }

    /// Lets `cancel` end the run, or the child of a [`spawn`](Command::spawn), from another
    /// thread. If it is cancelled already, nothing is
    /// started: [`Error::Cancelled`].
    #[must_use]
    pub fn cancel_on(mut self, cancel: &Cancel) -> Self {
        self.hooks.cancel = Some(cancel.clone());
        self
    }

    /// Calls `hook` with what the run has to tell while it goes on, on a thread of its
    /// own that starts with the first event: a hook that blocks holds up neither the
    /// program nor a deadline. An error stops the run and comes through. The run is over
    /// when the hook has returned; from a timeout or another stop on it waits for that as
    /// for every callback, no longer than the grace and half a second more. The hook then
    /// goes on behind its back, and an error of it goes nowhere.
    ///
    /// Without a hook, or where no thread can be made, each event is a line on stderr if
    /// that takes it at once, since a wait that nobody explains is what this library is
    /// against.
    #[must_use]
    pub fn on_event<F>(mut self, hook: F) -> Self
    where
        F: FnMut(&Event) -> Result<(), BoxError> + Send + 'static,
    {
        self.hooks.on_event = Some(Box::new(hook));
        self
    }

    /// Finds out, once the run has gone on for `after`, why the program has not ended, and
    /// tells it by [`on_event`](Command::on_event): [`Event::Explained`], with who waits for
    /// whom, and whether it waits for input. The program goes on.
    ///
    /// All processes are looked at twice, 200 ms apart, on a thread of its own: neither the
    /// streams nor a deadline waits for that. What cannot be found out is told by that event,
    /// and is no error. Nothing is told if the run is over first.
    ///
    /// Before a timeout or an idle timeout of a second or more, that is found out unasked:
    /// [`Report::diagnosis`](crate::Report::diagnosis).
    ///
    /// ```
    /// use procwright::{Cancel, Command, Event};
    /// use std::time::Duration;
    ///
    /// let enough = Cancel::new()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let cancel = enough.clone();
    /// Command::new("sleep")
    ///     .arg("60")
    ///     .explain_after(Duration::from_millis(100))
    ///     .on_event(move |event| {
    ///         tell.send(event.to_string())?;
    ///         Ok(cancel.cancel())
    ///     })
    ///     .cancel_on(&enough)
    ///     .stopped_is_ok()
    ///     .run()?;
    /// let text = told.recv()?;
    /// assert!(text.starts_with("sleep 60 has not ended after 0.1 s: "), "{text}");
    /// assert!(!text.contains("Nothing hangs: "), "{text}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn explain_after(mut self, after: Duration) -> Self {
        self.hooks.explain_after = Some(after);
        self
    }

    /// Has [`on_event`](Command::on_event), or of a child of [`spawn`](Command::spawn)
    /// [`on_stream_event`](Command::on_stream_event), told when the program begins to wait for
    /// input, or one that it has started: on its terminal, or on a stdin that somebody holds.
    /// Off unless it is asked for.
    ///
    /// The event, [`Event::InputWanted`], comes once for each wait, and has the prompt, where
    /// the output comes to us: of a [`pty`](Command::pty), or captured. A program is looked at
    /// once its output has paused for 0.1 s, and while it stays silent again after twice as
    /// long each time, 16 times at most: one that begins to wait without a word is noticed after
    /// at most as long again as it was silent. What sleeps with a time limit is not said to
    /// wait, nor what may not be looked at, such as programs of other users; and where there is
    /// no `/proc` nothing is told. A stage of a [`Pipeline`](crate::Pipeline) cannot have it.
    ///
    /// ```
    /// use procwright::{Cancel, Command, Event, Stdin};
    ///
    /// let (reader, _writer) = std::io::pipe()?; // nobody answers
    /// let enough = Cancel::new()?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// let cancel = enough.clone();
    /// Command::shell("printf 'Go on? '; read answer")
    ///     .stdin(Stdin::Fd(std::sync::Arc::new(reader.into())))
    ///     .input_wanted()
    ///     .on_event(move |event| {
    ///         if let Event::InputWanted { prompt, .. } = event {
    ///             tell.send(prompt.clone())?;
    ///         }
    ///         Ok(cancel.cancel())
    ///     })
    ///     .cancel_on(&enough)
    ///     .stopped_is_ok()
    ///     .run()?;
    /// assert_eq!(told.recv()?.as_deref(), Some("Go on? "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn input_wanted(mut self) -> Self {
        self.hooks.input_wanted = true;
        self
    }

    /// Says how [`Until::Exit`] is written where this run is described, for front ends: an
    /// event that goes to stderr, for want of a hook, names it. [`Event::explain_to`] and
    /// [`Report::explain_to`](crate::Report::explain_to) have the like for other texts.
    #[must_use]
    pub fn until_exit_written_as(mut self, words: &'static str) -> Self {
        self.hooks.until_exit = Some(words);
        self
    }

    /// Looks after a descriptor of the caller's while the run goes on: signals of
    /// a host, a message that ends the run.
    #[must_use]
    pub fn watch(mut self, watch: impl Watch + 'a) -> Self {
        self.hooks.watch = Some(Box::new(watch));
        self
    }

    /// Says that orphans of the run become children of this process, which is a
    /// sub-reaper (`PR_SET_CHILD_SUBREAPER`) and makes one run at a time. A stop
    /// of the tree then finds them without fail.
    #[doc(alias = "PR_SET_CHILD_SUBREAPER")]
    #[must_use]
    pub fn adopts_orphans(mut self) -> Self {
        self.hooks.adopts = true;
        self
    }

    /// Has these exit codes mean success, as 0 does: `grep` exits with 1 if nothing matches,
    /// `diff` if there is a difference. They are what [`Output::success`], the report of a child
    /// and a [map](crate::map) go by, and a [pipeline](crate::Pipeline) of which this is a stage.
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let output = Command::new("grep").arg("pear").ok_codes([1]).check().run()?;
    /// assert_eq!(output.status().code(), Some(1));
    /// assert!(output.success());
    /// # Ok::<(), procwright::Error>(())
    /// ```
    #[must_use]
    pub fn ok_codes(mut self, codes: impl IntoIterator<Item = i32>) -> Self {
        self.spec.ok_codes.extend(codes);
        self
    }

    /// Makes an exit with anything but code 0, or one of [`ok_codes`](Command::ok_codes), an
    /// [`Error::Failed`].
    #[must_use]
    pub fn check(mut self) -> Self {
        self.check = true;
        self
    }

    /// Makes a run that was stopped (by a timeout, a limit, a cancel) an
    /// ordinary result, whose report's reason says so.
    #[must_use]
    pub fn stopped_is_ok(mut self) -> Self {
        self.stopped_is_error = false;
        self
    }

    /// Runs the program and returns when the run is over.
    ///
    /// # Blocking
    /// Until the program has ended and every holder of its pipes is gone
    /// ([`Until::Eof`]), or the program alone ([`Until::Exit`]), or so long after the latest
    /// byte ([`Until::Silent`]), and every callback has
    /// returned; at most until the timeout plus the grace of the stop plus two seconds.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Spawn`] and [`Error::Cancelled`] before anything runs;
    /// [`Error::Stopped`] if it had to be stopped, with all that was read;
    /// [`Error::Failed`] if it failed and [`check`](Command::check) was asked
    /// for; [`Error::Foreign`] if a callback or a producer failed; [`Error::Forked`] in a
    /// fork that a watch, or the hook of the clock, has made and returned in.
    #[doc(alias = "subprocess.run")]
    #[doc(alias = "output")]
    #[doc(alias = "status")]
    pub fn run(self) -> Result<Output, Error> {
        let (check, stopped_is_error) = (self.check, self.stopped_is_error);
        let collected: Collected<Vec<u8>> = self.run_into()?;
        let output = Output {
            report: collected.report,
            stdout: collected.stdout.unwrap_or_default(),
            stderr: collected.stderr.unwrap_or_default(),
            merged: collected.merged,
        };
        match collected.failure {
            Some(Failure::Foreign(what, source)) => Err(Error::Foreign {
                what,
                command: output.report.command(),
                source,
                output: Box::new(output),
            }),
            Some(Failure::Io(source)) => Err(Error::Io {
                command: output.report.command(),
                source,
                output: Box::new(output),
            }),
            None if stopped_is_error && output.report.reason != Reason::Finished => {
                Err(Error::Stopped(Box::new(output)))
            }
            None if check && !output.success() => Err(Error::Failed(Box::new(output))),
            None => Ok(output),
        }
    }

    /// Runs the program and captures into memory of the caller's kind.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Spawn`], [`Error::Cancelled`] and [`Error::Forked`] only.
    pub fn run_into<M: Memory>(self) -> Result<Collected<M>, Error> {
        self.begin_into()?.finish()
    }

    /// Starts the program, for callers who have to be elsewhere now and then while
    /// it runs: see [`Ongoing`].
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Spawn`] and [`Error::Cancelled`] only.
    pub fn begin_into<M: Memory>(self) -> Result<Ongoing<'a, M>, Error> {
        let spec = Arc::new(self.spec);
        let started = run::start(&spec, self.hooks);
        let run = started.map_err(|unstarted| Error::unstarted(unstarted, &spec))?;
        Ok(Ongoing::new(run))
    }
}
