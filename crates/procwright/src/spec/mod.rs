//! A specification of what to run and how: a plain value that can be kept, copied and
//! used again.

mod launch;
mod priority;
mod setup;
mod shell_line;
#[cfg(feature = "serde")]
mod text;
mod until;
mod validate;

pub(crate) use launch::{Launch, c_string};
pub use priority::{IoPriority, SchedPolicy};
pub use setup::{SETUP, SetupKind, SetupOption, SetupValue};
pub use shell_line::ShellWords;
#[cfg(feature = "serde")]
pub use text::Defaults;
pub use until::Until;
pub(crate) use validate::Purpose;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::std_stream::{PerStream, StdStream};
use crate::terminal::{Modes, Size};
use procwright_os::time::Timeout;
use procwright_process::{Signal, Stop};
use procwright_queue::Channel;

/// Everything about a run that is a value. What lives only once (an iterator
/// for stdin, callbacks, a cancel handle) is added by [`Command`].
///
/// The feature `serde` writes and reads it as text; see `docs/reference/spec.md`.
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
    /// True for a session of its own, without a controlling terminal.
    pub new_session: bool,
    /// True if the program is meant to live on without this process: see
    /// [`Command::detach`](crate::Command::detach). Not for `run`.
    pub detach: bool,
    /// True if the program's group becomes the foreground group of the controlling
    /// terminal, if the caller's is that: what a shell does for a job. Needs a group of its own. The caller's is put back when the program
    /// has ended; what happens at its stops is up to the caller, see
    /// [`process::job`](procwright_process::job).
    pub foreground: bool,
    /// The size of a terminal of its own, on which the program runs. See
    /// [`Command::pty`](crate::Command::pty).
    pub pty: Option<Size>,
    /// The modes that this terminal has at first; the system's if none.
    pub(crate) pty_modes: Option<Modes>,
    /// The signal that the kernel sends to the program when this process ends.
    pub die_with_parent: Option<Signal>,
    /// Signals that are blocked when the program starts.
    #[doc(alias = "sigprocmask")]
    pub blocked_signals: Vec<Signal>,
    /// Signals that the program ignores from its start: see
    /// [`Command::ignored_signals`](crate::Command::ignored_signals).
    pub ignored_signals: Vec<Signal>,
    /// Signals that have their default action when it starts, whatever the caller ignores.
    pub default_signals: Vec<Signal>,
    /// Processors that it runs on, by their numbers; those of the caller if none.
    #[doc(alias = "sched_setaffinity")]
    pub cpu_affinity: Option<Vec<u32>>,
    /// The policy by which it gets processor time; the caller's if none.
    pub sched_policy: Option<SchedPolicy>,
    /// Class and level of its input and output; the caller's if none.
    pub ionice: Option<IoPriority>,
    /// How readily the kernel kills it where memory is short, from -1000, never, to 1000;
    /// the caller's if none.
    pub oom_score_adj: Option<i32>,
    /// The directory of the cgroup that it starts in; the caller's if none.
    pub cgroup: Option<PathBuf>,
    /// The directory that is its root; the caller's if none. `cwd` is in there, and is
    /// `/` if none.
    pub chroot: Option<PathBuf>,
    /// True if no exec, of it or of what it starts, gives more rights than there are.
    #[doc(alias = "PR_SET_NO_NEW_PRIVS")]
    pub no_new_privs: bool,
    /// True for a session keyring of its own, which is empty.
    #[doc(alias = "KEYCTL_JOIN_SESSION_KEYRING")]
    pub new_keyring: bool,
    /// True if the program gets what it needs to watch this process: see
    /// [`Command::liveness`](crate::Command::liveness).
    pub liveness: bool,
    /// Direction of the queue that the program gets, if it gets one: see
    /// [`Command::channel`](crate::Command::channel). Not for `run`.
    pub channel: Option<Channel>,
    /// Shape of that queue, if it is made here.
    pub(crate) channel_options: procwright_queue::Options,
    /// Stdin of the program.
    pub stdin: Stdin,
    /// Target of its output.
    pub stdout: Sink,
    /// Target of its error output.
    pub stderr: Sink,
    /// Descriptors that it gets beside these, with the numbers that they have
    /// there.
    #[doc(alias = "extra_fds")]
    pub pass_fds: Vec<(Arc<OwnedFd>, i32)>,
    /// The time that the whole run may take.
    pub timeout: Timeout,
    /// The time that may pass without a byte on stdout or stderr. Needs at
    /// least one of them captured.
    pub idle_timeout: Timeout,
    /// Way in which the run is stopped when it has to be.
    pub stop: Stop,
    /// Condition for the end of the run.
    pub until: Until,
    /// Amount of output that is kept.
    pub limit: Option<Limit>,
    /// A file that gets all of the output, whatever a limit keeps ([`Beyond::Fail`] ends it at
    /// the limit): stdout in
    /// this file, stderr in one with `.stderr` appended to its name.
    pub keep_full: Option<PathBuf>,
    /// True to record in which order the two streams were read.
    pub merged: bool,
    /// Exit codes that mean success, besides 0.
    pub ok_codes: Vec<i32>,
    /// Time for which a child of `spawn` may be unable to go on because nobody reads
    /// its output before a wait for it says so: 30 s unless it is set. Without a
    /// meaning for `run`, which reads.
    pub stall_after: Timeout,
}

/// A user or group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(untagged, expecting = "expected a name, or a number up to 4294967294")
)]
pub enum Account {
    /// Its number, at most [`Account::GREATEST_ID`].
    Id(#[cfg_attr(feature = "serde", serde(deserialize_with = "text::account_id"))] u32),
    /// Its name, looked up before anything starts.
    Name(String),
}

impl Account {
    /// The greatest number that an account can have. The one above, `(uid_t) -1`, means
    /// "no change" to the system, and is refused before anything starts.
    pub const GREATEST_ID: u32 = u32::MAX - 1;
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

/// The stdin of a program.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Stdin {
    /// Nothing: `/dev/null`. The default of the library.
    #[default]
    Null,
    /// The caller's own standard input.
    Inherit,
    /// Bytes. A program that stops reading early is no error.
    Bytes(Bytes),
    /// A file, opened before the start.
    File(PathBuf),
    /// An open descriptor.
    Fd(Arc<OwnedFd>),
    /// A pipe, whose writing end the caller of `spawn` gets. Not for `run`.
    Pipe,
}

/// The target of one of the two output streams.
#[doc(alias = "Stdio")]
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Sink {
    /// Into the result. The default of the library.
    #[doc(alias = "PIPE")]
    #[default]
    Capture,
    /// The target of the caller's own, as [`Sink::Inherit`], but through a pipe of
    /// ours: what passes is counted, timeouts and limits see it, callbacks get
    /// it, and nothing of it is kept.
    ///
    /// The program's pipe is closed when the caller's own can no longer be written
    /// because its reader has gone: the program finds out as it would without us.
    Relay,
    /// The target of the caller's own.
    Inherit,
    /// Nowhere: `/dev/null`.
    #[doc(alias = "DEVNULL")]
    Null,
    /// Into a file, which the program writes itself.
    File {
        /// The file, made if missing.
        path: PathBuf,
        /// True to keep what it holds; otherwise it is emptied.
        append: bool,
    },
    /// Into an open descriptor.
    Fd(Arc<OwnedFd>),
    /// The very pipe or file of stdout, like `2>&1`: for stderr. The order between the
    /// two is exact, and they can no longer be told apart.
    #[doc(alias = "STDOUT")]
    Merged,
}

/// How much output of each stream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(deny_unknown_fields, expecting = "a table with bytes and beyond")
)]
pub struct Limit {
    /// The bytes that are kept, of each stream. Of one that is only passed on
    /// ([`Sink::Relay`]) none are, and the number matters to [`Beyond::Fail`]
    /// alone.
    pub bytes: u64,
    /// The rule for output beyond.
    #[cfg_attr(feature = "serde", serde(default))]
    pub beyond: Beyond,
}

/// The rule for output beyond a [`Limit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Beyond {
    /// The first and the last half of the limit are kept, the middle is dropped
    /// and counted. The program goes on at full speed.
    #[default]
    HeadAndTail,
    /// The run is stopped and fails. What comes beyond the limit until the program has ended is
    /// read, so that it can answer the stop, and goes nowhere: neither into the result nor to
    /// callbacks, copies or files, nor to who reads a child.
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
            detach: false,
            foreground: false,
            pty: None,
            pty_modes: None,
            die_with_parent: None,
            blocked_signals: Vec::new(),
            ignored_signals: Vec::new(),
            default_signals: Vec::new(),
            cpu_affinity: None,
            sched_policy: None,
            ionice: None,
            oom_score_adj: None,
            cgroup: None,
            chroot: None,
            no_new_privs: false,
            new_keyring: false,
            liveness: false,
            channel: None,
            channel_options: procwright_queue::Options::new(),
            stdin: Stdin::Null,
            stdout: Sink::Capture,
            stderr: Sink::Capture,
            pass_fds: Vec::new(),
            timeout: Timeout::NEVER,
            idle_timeout: Timeout::NEVER,
            stop: Stop::default(),
            until: Until::Eof,
            limit: None,
            keep_full: None,
            merged: false,
            ok_codes: Vec::new(),
            stall_after: Timeout::after(STALL_AFTER),
        }
    }

    /// A run of `line` by `/bin/sh -c`.
    pub fn shell(line: impl Into<OsString>) -> Spec {
        Spec::new([OsString::from("/bin/sh"), "-c".into(), line.into()])
    }

    /// True for each stream that is read by us and not handed to the program.
    pub(crate) fn captures(&self) -> PerStream<bool> {
        self.streams()
            .map(|sink| matches!(sink, Some(Sink::Capture | Sink::Relay)))
    }

    /// True for each stream of which that is kept which is read.
    pub(crate) fn keeps(&self) -> PerStream<bool> {
        self.streams()
            .map(|sink| matches!(sink, Some(Sink::Capture)))
    }

    /// True for each stream that is passed on to the target of the caller's own.
    pub(crate) fn relays(&self) -> PerStream<bool> {
        self.streams().map(|sink| matches!(sink, Some(Sink::Relay)))
    }

    /// Targets of the streams that come to us apart. A terminal is one.
    fn streams(&self) -> PerStream<Option<&Sink>> {
        let apart = self.pty.is_none() || !is_ours(&self.stderr);
        PerStream::new(Some(&self.stdout), apart.then_some(&self.stderr))
    }

    /// The stream in which the program says last what is wrong: stderr, or stdout where that has
    /// what is written to stderr, too.
    pub(crate) fn last_words_of(&self) -> StdStream {
        match self.pty.is_some() || matches!(self.stderr, Sink::Merged) {
            true => StdStream::Stdout,
            false => StdStream::Stderr,
        }
    }

    /// True if the program leads a session of its own, and so a group.
    pub(crate) fn own_session(&self) -> bool {
        self.new_session || self.detach || self.pty.is_some()
    }

    /// True if the program must lead a process group of its own.
    pub(crate) fn own_group(&self) -> bool {
        self.process_group == Some(0)
            || self.own_session()
            || self.stop.scope() == procwright_process::Scope::Group
    }
}

/// True if a stream comes to us.
fn is_ours(sink: &Sink) -> bool {
    matches!(sink, Sink::Capture | Sink::Relay)
}
