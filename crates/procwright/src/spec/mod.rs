//! What to run and how: a plain value that can be kept, copied and used again.

#[cfg(feature = "serde")]
mod form;

#[cfg(feature = "serde")]
pub use form::Defaults;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::Invalid;
use crate::process::{Signal, Stop};
#[cfg(not(procwright_loom))]
use crate::queue;
use crate::queue::Channel;
use crate::terminal::{Modes, Size};
use crate::time::Timeout;

/// Everything about a run that is a value. What lives only once (an iterator
/// for stdin, callbacks, a cancel handle) is added by [`Command`].
///
/// With the feature `serde` it can be written and read as text; see
/// `docs/reference/spec.md`.
///
/// [`Command`]: crate::Command
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Spec {
    /// The program and its arguments. A program without a slash is looked up in
    /// the `PATH` that the child gets; one with a slash is relative to `cwd`.
    pub argv: Vec<OsString>,
    /// The whole environment, or none to pass on the caller's.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// Variables that are set (or, with none, removed) on top of that.
    pub extra_env: Vec<(OsString, Option<OsString>)>,
    /// The working directory; the caller's if none.
    pub cwd: Option<PathBuf>,
    /// The user to become. Groups stay as they are unless given too.
    pub user: Option<Account>,
    /// The group to become.
    pub group: Option<Account>,
    /// The supplementary groups.
    pub extra_groups: Option<Vec<Account>>,
    /// The file mode creation mask.
    pub umask: Option<u32>,
    /// Resource limits.
    pub rlimits: Vec<Rlimit>,
    /// Added to the caller's nice value, as by `nice(1)`.
    pub nice: Option<i32>,
    /// The process group: 0 for a new one of its own.
    pub process_group: Option<i32>,
    /// Whether the program starts a session of its own, without a controlling
    /// terminal.
    pub new_session: bool,
    /// Whether the program's group becomes the foreground group of the
    /// controlling terminal, if the caller's is that: what a shell does for a
    /// job. Needs a group of its own. The caller's is put back when the program
    /// has ended; what happens at its stops is up to the caller, see
    /// [`process::job`](crate::process::job).
    pub foreground: bool,
    /// The size of a terminal of its own, on which the program runs. See
    /// [`Command::pty`](crate::Command::pty).
    pub pty: Option<Size>,
    /// The modes that this terminal has at first; the system's if none.
    pub(crate) pty_modes: Option<Modes>,
    /// The signal that the kernel sends to the program when this process ends.
    pub die_with_parent: Option<Signal>,
    /// Whether the program gets what it needs to watch this process: see
    /// [`Command::liveness`](crate::Command::liveness).
    pub liveness: bool,
    /// Whether the program gets a queue, and which way that goes: see
    /// [`Command::channel`](crate::Command::channel). Not for `run`.
    pub channel: Option<Channel>,
    /// What that queue is like, if it is made here.
    #[cfg(not(procwright_loom))]
    pub(crate) channel_options: queue::Options,
    /// What the program reads.
    pub stdin: Stdin,
    /// Where its output goes.
    pub stdout: Sink,
    /// Where its error output goes.
    pub stderr: Sink,
    /// Descriptors that it gets beside these, with the numbers that they have
    /// there.
    pub extra_fds: Vec<(Arc<OwnedFd>, i32)>,
    /// The time that the whole run may take.
    pub timeout: Timeout,
    /// The time that may pass without a byte on stdout or stderr. Needs at
    /// least one of them captured.
    pub idle_timeout: Timeout,
    /// How the run is stopped when it has to be.
    pub stop: Stop,
    /// When the run is over.
    pub until: Until,
    /// How much output is kept.
    pub limit: Option<Limit>,
    /// A file that gets all of the output, whatever the limit keeps: stdout in
    /// this file, stderr in one with `.stderr` appended to its name.
    pub keep_full: Option<PathBuf>,
    /// Whether to record in which order the two streams were read.
    pub merged: bool,
    /// For how long a child of `spawn` may be unable to go on because nobody
    /// reads its output before a wait for it says so: 30 s unless it is set.
    /// Without a meaning for `run`, which reads.
    pub stall_after: Timeout,
}

/// A user or group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// By number.
    Id(u32),
    /// By name, looked up before anything starts.
    Name(String),
}

/// A resource limit of the child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rlimit {
    /// The name as in setrlimit(2), lower case and without prefix: `nofile`.
    pub resource: String,
    /// The limit in force; `u64::MAX` for none.
    pub soft: u64,
    /// The most that the child may raise it to.
    pub hard: u64,
}

/// What the program reads.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing: `/dev/null`. The default of the library.
    #[default]
    Null,
    /// The caller's own standard input.
    Inherit,
    /// These bytes. That the program stops reading early is no error.
    Bytes(Bytes),
    /// A file, opened before the start.
    File(PathBuf),
    /// An open descriptor.
    Fd(Arc<OwnedFd>),
    /// A pipe, whose writing end the caller of `spawn` gets. Not for `run`.
    Pipe,
}

/// Where one of the two output streams goes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Sink {
    /// Into the result. The default of the library.
    #[default]
    Capture,
    /// Where the caller's own goes, as [`Sink::Inherit`], but through a pipe of
    /// ours: what passes is counted, timeouts and limits see it, callbacks get
    /// it, and nothing of it is kept.
    ///
    /// When the caller's own can no longer be written because its reader has
    /// gone, the program's pipe is closed: it finds out as it would without us.
    Relay,
    /// Where the caller's own goes.
    Inherit,
    /// Nowhere: `/dev/null`.
    Null,
    /// Into a file, which the program writes itself.
    File {
        /// The file, made if missing.
        path: PathBuf,
        /// Whether to keep what it holds; otherwise it is emptied.
        append: bool,
    },
    /// Into an open descriptor.
    Fd(Arc<OwnedFd>),
    /// For stderr: into the very pipe or file of stdout, like `2>&1`. The order
    /// between the two is exact, and they can no longer be told apart.
    Merged,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// When the program has exited and every holder of its pipes is gone.
    #[default]
    Eof,
    /// When the program itself has exited and what was in its pipes then has
    /// been read. All that the program wrote is there; processes that it left
    /// behind go on and are named in `held_by`.
    Exit,
}

/// How much output of each stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The bytes that are kept, of each stream. Of one that is only passed on
    /// ([`Sink::Relay`]) none are, and the number matters to [`Beyond::Fail`]
    /// alone.
    pub bytes: u64,
    /// What happens beyond.
    pub beyond: Beyond,
}

/// What happens to output beyond a [`Limit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// The first and the last half of the limit are kept, the middle is dropped
    /// and counted. The program goes on at full speed.
    #[default]
    HeadAndTail,
    /// The run is stopped and fails.
    Fail,
}

/// Longer than any reader should need to begin, shorter than people wait until
/// they look for a debugger.
const STALL_AFTER: Duration = Duration::from_secs(30);

impl Spec {
    /// A run of `argv` with the defaults of the library: nothing on stdin, both
    /// outputs captured whole, no timeout.
    pub fn new<I, S>(argv: I) -> Spec
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        Spec {
            argv: argv.into_iter().map(Into::into).collect(),
            env: None,
            extra_env: Vec::new(),
            cwd: None,
            user: None,
            group: None,
            extra_groups: None,
            umask: None,
            rlimits: Vec::new(),
            nice: None,
            process_group: None,
            new_session: false,
            foreground: false,
            pty: None,
            pty_modes: None,
            die_with_parent: None,
            liveness: false,
            channel: None,
            #[cfg(not(procwright_loom))]
            channel_options: queue::Options::new(),
            stdin: Stdin::Null,
            stdout: Sink::Capture,
            stderr: Sink::Capture,
            extra_fds: Vec::new(),
            timeout: Timeout::NEVER,
            idle_timeout: Timeout::NEVER,
            stop: Stop::default(),
            until: Until::Eof,
            limit: None,
            keep_full: None,
            merged: false,
            stall_after: Timeout::after(STALL_AFTER),
        }
    }

    /// A run of `line` by `/bin/sh -c`.
    pub fn shell(line: impl Into<OsString>) -> Spec {
        Spec::new([OsString::from("/bin/sh"), "-c".into(), line.into()])
    }

    /// Whether a descriptor is read by us and not handed to the program.
    pub(crate) fn captures(&self) -> [bool; 2] {
        self.streams()
            .map(|sink| matches!(sink, Some(Sink::Capture | Sink::Relay)))
    }

    /// Whether what is read is also kept.
    pub(crate) fn keeps(&self) -> [bool; 2] {
        self.streams()
            .map(|sink| matches!(sink, Some(Sink::Capture)))
    }

    /// Whether it is passed on to where the caller's own goes.
    pub(crate) fn relays(&self) -> [bool; 2] {
        self.streams().map(|sink| matches!(sink, Some(Sink::Relay)))
    }

    /// Where the two streams go that come to us apart. A terminal is one.
    fn streams(&self) -> [Option<&Sink>; 2] {
        let apart = self.pty.is_none() || !is_ours(&self.stderr);
        [Some(&self.stdout), apart.then_some(&self.stderr)]
    }

    /// Whether the program must lead a process group of its own.
    pub(crate) fn own_group(&self) -> bool {
        self.process_group == Some(0)
            || self.new_session
            || self.pty.is_some()
            || self.stop.scope() == crate::process::Scope::Group
    }

    /// Finds what can be found wrong before anything starts.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if self.argv.is_empty() {
            return Err(Invalid::new(
                "argv",
                "is empty",
                "the first element is the program to run",
            ));
        }
        if self.argv.first().is_some_and(|program| program.is_empty()) {
            return Err(Invalid::new(
                "argv",
                "starts with an empty string",
                "the first element is the program to run",
            ));
        }
        if matches!(self.stdout, Sink::Merged) {
            return Err(Invalid::new(
                "stdout",
                "cannot be merged into itself",
                "only stderr can be merged into stdout",
            ));
        }
        self.check_pty()?;
        let [out, err] = self.captures();
        let reads = out || err;
        if !reads && !self.idle_timeout.is_never() {
            return Err(needs_capture("idle_timeout"));
        }
        if !reads && self.limit.is_some() {
            return Err(needs_capture("limit"));
        }
        if !reads && self.keep_full.is_some() {
            return Err(needs_capture("keep_full"));
        }
        if self.merged && self.keeps() != [true, true] {
            return Err(Invalid::new(
                "merged",
                "needs both streams captured",
                "capture stdout and stderr, or merge stderr into stdout",
            ));
        }
        if self.foreground && (self.pty.is_some() || self.new_session || !self.own_group()) {
            return Err(Invalid::new(
                "foreground",
                "needs a process group of its own in this session",
                "say process_group 0, or a stop with the scope group",
            ));
        }
        if self.umask.is_some_and(|mask| mask > 0o777) {
            return Err(Invalid::new(
                "umask",
                "is larger than 0o777",
                "a mask has permission bits only, such as 0o022",
            ));
        }
        Ok(())
    }

    /// What cannot be had together with a terminal.
    fn check_pty(&self) -> Result<(), Invalid> {
        if self.pty.is_none() {
            return Ok(());
        }
        if !is_ours(&self.stdout) {
            return Err(Invalid::new(
                "stdout",
                "does not come to us, and with a pty it is the terminal",
                "capture or relay it; without a pty it can go anywhere",
            ));
        }
        if matches!(self.stderr, Sink::Inherit) {
            return Err(Invalid::new(
                "stderr",
                "is inherited, and with a pty it is the terminal",
                "capture or relay it, then it arrives as stdout; or send it to a file",
            ));
        }
        if self.process_group.is_some() {
            return Err(Invalid::new(
                "process_group",
                "cannot be chosen for a program on a pty",
                "leave it out: it leads a session and a group of its own",
            ));
        }
        if self.merged {
            return Err(Invalid::new(
                "merged",
                "is for two streams, and a pty is one",
                "leave it out: stdout has all of it, in the order in which it was written",
            ));
        }
        Ok(())
    }
}

/// Whether a stream comes to us.
fn is_ours(sink: &Sink) -> bool {
    matches!(sink, Sink::Capture | Sink::Relay)
}

fn needs_capture(what: &str) -> Invalid {
    Invalid::new(
        what,
        "needs a captured stream",
        "capture stdout or stderr: what the program writes elsewhere is not seen here",
    )
}

/// Quotes a command as a shell takes it.
pub(crate) fn quote(argv: &[OsString]) -> String {
    let words = argv.iter().map(|word| word.to_string_lossy());
    shell_words::join(words)
}
