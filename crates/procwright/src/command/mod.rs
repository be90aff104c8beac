//! The builder that a run or a child starts from.

mod ongoing;
mod pty;
mod spawn;
mod taps;
mod validate;

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;

use crate::cancel::Cancel;
use crate::error::Invalid;
use crate::process::{Signal, Stop};
use crate::queue::Channel;
use crate::run::{self, Error, Event, Extras, Foreign, Output, Producer, Reason, Watch};
use crate::spec::{Account, Limit, Rlimit, Sink, Spec, Stdin, Until};
use crate::spool::Memory;
use crate::time::Timeout;

pub use ongoing::Ongoing;

/// An error of code that takes part in a run: an iterator, a callback.
pub use crate::spool::fifo::BoxError;

/// A program to run, and how.
///
/// By default it reads nothing, both outputs are captured whole, there is no
/// timeout, and when it must be stopped the whole tree gets SIGTERM and five
/// seconds later SIGKILL.
///
/// ```
/// use procwright::Command;
///
/// let output = Command::new("echo").arg("hello").run()?;
/// assert_eq!(output.stdout, b"hello\n");
/// assert!(output.success());
/// # Ok::<(), procwright::Error>(())
/// ```
pub struct Command<'a> {
    spec: Spec,
    extras: Extras<'a>,
    check: bool,
    stopped_is_error: bool,
}

impl std::fmt::Debug for Command<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

/// All that came of a run whose data went into memory of the caller's own kind.
///
/// What [`Command::run_into`] returns. Unlike [`Command::run`] it makes no
/// error of a timeout or a failed check: a front end of another language turns
/// these into its own exceptions.
#[derive(Debug)]
#[non_exhaustive]
pub struct Collected<M> {
    /// All but the data.
    pub report: run::Report,
    /// The captured bytes, none where nothing was captured.
    pub stdout: Option<M>,
    /// The captured bytes, none where nothing was captured.
    pub stderr: Option<M>,
    /// The order in which both were read, if asked for.
    pub merged: Option<Vec<crate::Segment>>,
    /// The error of somebody else's code that ended the run, if one did.
    pub failure: Option<Failure>,
}

/// What ended a run that neither the program nor the caller wanted to end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// Code that takes part in the run failed.
    Foreign(Foreign, BoxError),
    /// The system failed us.
    Io(std::io::Error),
}

impl<'a> Command<'a> {
    /// Runs `program`, looked up in `PATH` if it has no slash.
    pub fn new(program: impl Into<OsString>) -> Command<'a> {
        Command::from_spec(Spec::new([program.into()]))
    }

    /// Runs `line` by `/bin/sh -c`.
    pub fn shell(line: impl Into<OsString>) -> Command<'a> {
        Command::from_spec(Spec::shell(line))
    }

    /// Runs what `spec` says.
    pub fn from_spec(spec: Spec) -> Command<'a> {
        Command {
            spec,
            extras: Extras::default(),
            check: false,
            stopped_is_error: true,
        }
    }

    /// What has been said so far.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.spec.argv.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.spec.argv.extend(args);
        self
    }

    /// Sets a variable on top of the environment.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.spec.extra_env.push((key.into(), Some(value.into())));
        self
    }

    /// Removes a variable from the environment.
    #[must_use]
    pub fn env_remove(mut self, key: impl Into<OsString>) -> Self {
        self.spec.extra_env.push((key.into(), None));
        self
    }

    /// Replaces the whole environment. What [`Command::env`] sets comes on top.
    #[must_use]
    pub fn env_replace<I, K, V>(mut self, env: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let env = env.into_iter().map(|(k, v)| (k.into(), v.into()));
        self.spec.env = Some(env.collect());
        self
    }

    /// Sets the working directory. A relative program is looked for there.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.spec.cwd = Some(cwd.into());
        self
    }

    /// Becomes another user. Groups stay as they are unless given too.
    #[must_use]
    pub fn user(mut self, user: Account) -> Self {
        self.spec.user = Some(user);
        self
    }

    /// Becomes another group.
    #[must_use]
    pub fn group(mut self, group: Account) -> Self {
        self.spec.group = Some(group);
        self
    }

    /// Sets the supplementary groups.
    #[must_use]
    pub fn extra_groups(mut self, groups: Vec<Account>) -> Self {
        self.spec.extra_groups = Some(groups);
        self
    }

    /// Sets the file mode creation mask.
    #[must_use]
    pub fn umask(mut self, mask: u32) -> Self {
        self.spec.umask = Some(mask);
        self
    }

    /// Sets a resource limit, by the name of setrlimit(2) in lower case, such
    /// as `nofile`. `u64::MAX` is no limit.
    #[must_use]
    pub fn rlimit(mut self, resource: impl Into<String>, soft: u64, hard: u64) -> Self {
        self.spec.rlimits.push(Rlimit {
            resource: resource.into(),
            soft,
            hard,
        });
        self
    }

    /// Adds to the nice value, as `nice(1)` does.
    #[must_use]
    pub fn nice(mut self, increment: i32) -> Self {
        self.spec.nice = Some(increment);
        self
    }

    /// Joins a process group, 0 for a new one of its own.
    #[must_use]
    pub fn process_group(mut self, group: i32) -> Self {
        self.spec.process_group = Some(group);
        self
    }

    /// Starts a session of its own, without a controlling terminal.
    #[must_use]
    pub fn new_session(mut self) -> Self {
        self.spec.new_session = true;
        self
    }

    /// Makes the program's group the foreground group of the controlling
    /// terminal, if the caller's is that, and puts the caller's back at the
    /// program's end: see [`Spec::foreground`](crate::Spec::foreground).
    #[must_use]
    pub fn foreground(mut self) -> Self {
        self.spec.foreground = true;
        self
    }

    /// Has the kernel send `signal` to the program when this process ends.
    ///
    /// Needs one thread for the life of this process, since the kernel watches
    /// the thread that started the program. The program's own children do not
    /// inherit it, and a program that changes its credentials loses it.
    #[must_use]
    pub fn die_with_parent(mut self, signal: Signal) -> Self {
        self.spec.die_with_parent = Some(signal);
        self
    }

    /// Lets the program watch this process: it can call
    /// [`Monitor::of_parent`](crate::liveness::Monitor::of_parent), which tells it
    /// of our end for one load. (The other way round there is
    /// [`Child::monitor`](crate::Child::monitor), which needs nothing.)
    ///
    /// The program gets two descriptors, of the first two numbers from 20 on that
    /// [`pass_fd`](Command::pass_fd) leaves, and the variable `PROCWRIGHT_PARENT`.
    /// The first such start makes a [`Token`](crate::liveness::Token) for all of
    /// them, which this process holds until its end, and with it a thread. Where
    /// there are no tokens the program watches us by our number.
    #[must_use]
    pub fn liveness(mut self) -> Self {
        self.spec.liveness = true;
        self
    }

    /// Gives a child of [`spawn`](Command::spawn) a [queue](crate::queue): with
    /// [`Channel::FromChild`] it sends, by
    /// [`Sender::of_parent`](crate::queue::Sender::of_parent), to
    /// [`Child::receiver`](crate::Child::receiver); with [`Channel::ToChild`] it
    /// receives, by [`Receiver::of_parent`](crate::queue::Receiver::of_parent), from
    /// [`Child::sender`](crate::Child::sender). Each side is told of the other's end
    /// by the queue itself.
    ///
    /// ```no_run
    /// use procwright::Command;
    /// use procwright::queue::{Channel, Error};
    ///
    /// let mut child = Command::new("worker").channel(Channel::FromChild).spawn()?;
    /// let mut results = child.receiver()?;
    /// loop {
    ///     match results.recv() {
    ///         Ok(result) => println!("{} bytes", result.len()),
    ///         Err(Error::Closed) => break, // it has ended
    ///         Err(error) => return Err(error.into()),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The program gets one to four descriptors, of the first numbers from 20 on that
    /// [`pass_fd`](Command::pass_fd) and [`liveness`](Command::liveness) leave, and the
    /// variable `PROCWRIGHT_CHANNEL`. It may become another program by exec (`env`,
    /// `nice`); those that it starts have no part in it.
    #[must_use]
    pub fn channel(mut self, channel: Channel) -> Self {
        self.spec.channel = Some(channel);
        self
    }

    /// The same, of a queue of this shape if it is made here. A child that receives
    /// says itself what its queue is like
    /// ([`Options::of_parent`](crate::queue::Options::of_parent)).
    #[cfg(not(procwright_loom))]
    #[must_use]
    pub fn channel_with(mut self, channel: Channel, options: crate::queue::Options) -> Self {
        self.spec.channel_options = options;
        self.channel(channel)
    }

    /// Gives the program a descriptor, under the number that it has here.
    #[must_use]
    pub fn pass_fd(mut self, fd: impl Into<OwnedFd>, number: i32) -> Self {
        self.spec.extra_fds.push((Arc::new(fd.into()), number));
        self
    }

    /// What the program reads.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.spec.stdin = stdin;
        self
    }

    /// The program reads these bytes.
    #[must_use]
    pub fn stdin_bytes(self, bytes: impl Into<Bytes>) -> Self {
        self.stdin(Stdin::Bytes(bytes.into()))
    }

    /// The program reads what the caller would.
    #[must_use]
    pub fn stdin_inherit(self) -> Self {
        self.stdin(Stdin::Inherit)
    }

    /// The program reads what an iterator yields. It runs on a thread of its
    /// own; an error stops the run and comes through. A child of
    /// [`spawn`](Command::spawn) is stopped by it as well, and
    /// [`Child::wait`](crate::Child::wait) says so.
    ///
    /// If the run ends while the iterator is inside `next`, its thread ends when
    /// that returns, and the run does not wait for it.
    #[must_use]
    pub fn stdin_iter<I>(mut self, chunks: I) -> Self
    where
        I: IntoIterator<Item = Result<Bytes, BoxError>>,
        I::IntoIter: Send + 'static,
    {
        let mut chunks = chunks.into_iter();
        self.extras.producer = Some(Box::new(move || chunks.next()));
        self
    }

    /// The program reads what a reader gives. As [`Command::stdin_iter`].
    #[must_use]
    pub fn stdin_reader(mut self, mut reader: impl Read + Send + 'static) -> Self {
        let producer: Producer = Box::new(move || {
            let mut chunk = vec![0; 64 * 1024];
            loop {
                return match reader.read(&mut chunk) {
                    Ok(0) => None,
                    Ok(n) => {
                        chunk.truncate(n);
                        Some(Ok(chunk.into()))
                    }
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(e) => Some(Err(e.into())),
                };
            }
        });
        self.extras.producer = Some(producer);
        self
    }

    /// Where stdout goes.
    #[must_use]
    pub fn stdout(mut self, sink: Sink) -> Self {
        self.spec.stdout = sink;
        self
    }

    /// Where stderr goes.
    #[must_use]
    pub fn stderr(mut self, sink: Sink) -> Self {
        self.spec.stderr = sink;
        self
    }

    /// Limits the time of the whole run.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.spec.timeout = timeout.into();
        self
    }

    /// Limits the time without a byte on either captured stream.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.spec.idle_timeout = timeout.into();
        self
    }

    /// How the run is stopped when it has to be.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.spec.stop = stop;
        self
    }

    /// When the run is over.
    #[must_use]
    pub fn until(mut self, until: Until) -> Self {
        self.spec.until = until;
        self
    }

    /// How much output is kept.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.spec.limit = Some(limit);
        self
    }

    /// Keeps all output in a file too: stdout in this one, stderr in one with
    /// `.stderr` appended to its name.
    #[must_use]
    pub fn keep_full(mut self, path: impl Into<PathBuf>) -> Self {
        self.spec.keep_full = Some(path.into());
        self
    }

    /// Records in which order the two streams were read. A spawned child's
    /// [`merged`](crate::Child::merged) then gives both as one, line by line, in
    /// place of its stdout and stderr.
    #[must_use]
    pub fn merged(mut self) -> Self {
        self.spec.merged = true;
        self
    }

    /// Lets `cancel` end the run from another thread.
    #[must_use]
    pub fn cancel_on(mut self, cancel: &Cancel) -> Self {
        self.extras.cancel = Some(cancel.clone());
        self
    }

    /// Gets what the run has to tell while it goes on. An error stops the run
    /// and comes through. Without a hook it is
    /// written to stderr, a line each, since a wait that nobody explains is what
    /// this library is against.
    #[must_use]
    pub fn on_event<F>(mut self, hook: F) -> Self
    where
        F: FnMut(&Event) -> Result<(), BoxError> + 'a,
    {
        self.extras.on_event = Some(Box::new(hook));
        self
    }

    /// Looks after a descriptor of the caller's while the run goes on: signals of
    /// a host, a message that ends the run.
    #[must_use]
    pub fn watch(mut self, watch: impl Watch + 'a) -> Self {
        self.extras.watch = Some(Box::new(watch));
        self
    }

    /// Says that orphans of the run become children of this process, which is a
    /// sub-reaper (`PR_SET_CHILD_SUBREAPER`) and makes one run at a time. A stop
    /// of the tree then finds them without fail.
    #[must_use]
    pub fn adopts_orphans(mut self) -> Self {
        self.extras.adopts = true;
        self
    }

    /// Makes an exit with anything but code 0 an [`Error::Failed`].
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
    /// ([`Until::Eof`]), or the program alone ([`Until::Exit`]); at most until
    /// the timeout plus the grace of the stop plus two seconds.
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Spawn`] before anything runs;
    /// [`Error::Stopped`] if it had to be stopped, with all that was read;
    /// [`Error::Failed`] if it failed and [`check`](Command::check) was asked
    /// for; [`Error::Foreign`] if a callback or a producer failed.
    pub fn run(self) -> Result<Output, Error> {
        let (check, stopped_is_error) = (self.check, self.stopped_is_error);
        let spec_argv = self.spec.argv.clone();
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
                command: run::quote(&spec_argv),
                source,
                output: Box::new(output),
            }),
            Some(Failure::Io(source)) => Err(Error::Io {
                command: run::quote(&spec_argv),
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
    /// [`Error::Invalid`] and [`Error::Spawn`] only.
    pub fn run_into<M: Memory>(self) -> Result<Collected<M>, Error> {
        self.begin_into().map(Ongoing::finish)
    }

    /// Starts the program, for callers who have to be elsewhere now and then while
    /// it runs: see [`Ongoing`].
    ///
    /// # Errors
    /// As [`run_into`](Command::run_into).
    pub fn begin_into<M: Memory>(self) -> Result<Ongoing<'a, M>, Error> {
        let Command { spec, extras, .. } = self;
        if extras.listener.is_some() {
            let hint = "a run reads its streams; what it has to tell comes by on_event";
            let invalid = Invalid::new("on_stream_event", "is for spawn(), not for run()", hint);
            return Err(Error::Invalid(invalid));
        }
        let captures = spec.captures();
        for (stream, name) in [(0, "stdout"), (1, "stderr")] {
            if !extras.taps[stream].is_empty() && !captures[stream] {
                return Err(Error::Invalid(Invalid::new(
                    "a callback or copy",
                    format!("of {name} needs that stream captured"),
                    "what the program writes elsewhere is not seen here",
                )));
            }
        }
        if !extras.both.is_empty() && captures == [false; 2] {
            return Err(Error::Invalid(Invalid::new(
                "a copy of both streams",
                "needs at least one of them captured or relayed",
                "what the program writes elsewhere is not seen here",
            )));
        }
        let relays = |sink: &Sink| matches!(sink, Sink::Relay);
        if extras.relay.is_some() && !(relays(&spec.stdout) || relays(&spec.stderr)) {
            return Err(Error::Invalid(Invalid::new(
                "relay_with",
                "has nothing to relay",
                "give stdout or stderr the sink Relay",
            )));
        }
        let spec = Arc::new(spec);
        let started = run::start(&spec, extras);
        let run = started.map_err(|unstarted| Error::unstarted(unstarted, &spec))?;
        Ok(Ongoing::new(run))
    }
}
