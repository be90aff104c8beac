//! The options of `run` and `spawn` as a [`Spec`].

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use procwright::error::Invalid;
use procwright::queue::Channel;
use procwright::spec::{Account, Rlimit};
use procwright::stream::{Framing, TooLong};
use procwright::terminal::Size;
use procwright::time::Timeout;
use procwright::{Overflow, Sink, Spec, StdStream, Stdin};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::attach::Attached;
use crate::errors::invalid;
use crate::setup;
use crate::tee::{Tee, TeeArg};
use crate::values::{Cancel, Limit, OsBytes, SignalArg, Stop, choice, duplicated, seconds};

/// The options of `run` and `spawn` both, as the tables of `procwright/_options.py` make them:
/// each field has the name of one.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CommonOptions<'py> {
    argv: Vec<OsBytes>,
    env: Option<Vec<(OsBytes, OsBytes)>>,
    extra_env: Vec<(OsBytes, Option<OsBytes>)>,
    cwd: Option<OsBytes>,
    user: Option<AccountArg>,
    group: Option<AccountArg>,
    extra_groups: Option<Vec<AccountArg>>,
    umask: Option<u32>,
    rlimits: Vec<(String, u64, u64)>,
    nice: Option<i32>,
    process_group: Option<i32>,
    start_new_session: bool,
    pty: Option<(u16, u16)>,
    die_with_parent: Option<SignalArg>,
    pass_fds: Vec<RawFd>,
    liveness: bool,
    stdin: (String, Option<Bound<'py, PyAny>>),
    stdout: (String, Option<Bound<'py, PyAny>>),
    stderr: (String, Option<Bound<'py, PyAny>>),
    stop: Option<Bound<'py, Stop>>,
    timeout: Option<f64>,
    idle_timeout: Option<f64>,
    until: String,
    limit: Option<Bound<'py, Limit>>,
    pub(crate) cancel: Option<Bound<'py, Cancel>>,
    merged: bool,
    ok_codes: Vec<i32>,
    keep_full: Option<OsBytes>,
    tee: Vec<TeeArg<'py>>,
    pub(crate) taps: Vec<(i32, bool, Py<PyAny>)>,
    setup: Vec<(String, Bound<'py, PyAny>)>,
    pub(crate) on_event: Py<PyAny>,
    pub(crate) input_wanted: bool,
}

/// A callable that gets copies: its stream, and whether it gets lines.
pub(crate) type CallableTap = (StdStream, bool, Attached<Py<PyAny>>);

/// The options of `run` alone, from the same dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct RunOptions {
    explain_after: Option<f64>,
    max_length: Option<usize>,
    too_long: bool,
}

/// The options of `spawn` alone, from the same dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SpawnOptions {
    overflow: Option<RawOverflow>,
    stall_after: Option<f64>,
    channel: Option<String>,
    detach: bool,
    /// The command line in the names of its streams, of a fake that is another program.
    #[pyo3(default)]
    pub(crate) shown_as: Option<String>,
}

/// A user or group by its number or name.
#[derive(FromPyObject)]
enum AccountArg {
    #[pyo3(annotation = "int")]
    Id(u32),
    #[pyo3(annotation = "str")]
    Name(String),
}

impl AccountArg {
    fn account(&self) -> Account {
        match self {
            AccountArg::Id(id) => Account::Id(*id),
            AccountArg::Name(name) => Account::Name(name.clone()),
        }
    }
}

impl RunOptions {
    /// The time after which the caller is told why the program has not ended.
    ///
    /// # Errors
    /// No number.
    pub(crate) fn explain_after(&self) -> Result<Option<Duration>, Invalid> {
        Ok(seconds("explain_after", self.explain_after)?.duration())
    }

    /// The rule by which lines are cut for callbacks.
    pub(crate) fn framing(&self) -> Framing {
        Framing {
            max_length: self.max_length,
            too_long: match self.too_long {
                true => TooLong::Fail,
                false => TooLong::Split,
            },
            ..Framing::default()
        }
    }
}

impl CommonOptions<'_> {
    /// The copies that the core makes.
    pub(crate) fn tees(&self, py: Python<'_>) -> PyResult<Vec<Tee>> {
        self.tee.iter().map(|tee| Tee::new(py, tee)).collect()
    }

    /// The callables that get copies, taken out: the stream of each, and whether it gets lines.
    pub(crate) fn take_taps(&mut self) -> PyResult<Vec<CallableTap>> {
        let taps = std::mem::take(&mut self.taps).into_iter();
        let taps = taps.map(|(number, by_line, callable)| {
            let refused = || PyValueError::new_err(format!("{number} is no output stream"));
            let stream = StdStream::from_fd(number).ok_or_else(refused)?;
            Ok((stream, by_line, Attached::new(callable)))
        });
        taps.collect()
    }

    /// The spec, and the `__next__` of an iterator that brings stdin.
    pub(crate) fn spec(&self, py: Python<'_>) -> PyResult<(Spec, Option<Py<PyAny>>)> {
        let (mut spec, next) = self.spec_without_environment(py)?;
        // Threads set variables with the interpreter lock held: so the copy is taken
        // while this thread holds it, not in the middle of the run.
        spec.env
            .get_or_insert_with(|| std::env::vars_os().collect());
        Ok((spec, next))
    }

    /// The spec, with no environment unless one was given, and that `__next__`.
    pub(crate) fn spec_without_environment(
        &self,
        py: Python<'_>,
    ) -> PyResult<(Spec, Option<Py<PyAny>>)> {
        let refused = |error: Invalid| invalid(py, &error);
        let mut spec = Spec::new(self.argv.iter().map(OsBytes::os));
        spec.env = self.env.as_ref().map(|env| {
            env.iter()
                .map(|(key, value)| (key.os(), value.os()))
                .collect()
        });
        spec.extra_env = self
            .extra_env
            .iter()
            .map(|(key, value)| (key.os(), value.as_ref().map(OsBytes::os)))
            .collect();
        spec.cwd = self.cwd.as_ref().map(OsBytes::path);
        spec.user = self.user.as_ref().map(AccountArg::account);
        spec.group = self.group.as_ref().map(AccountArg::account);
        spec.extra_groups = self
            .extra_groups
            .as_ref()
            .map(|groups| groups.iter().map(AccountArg::account).collect());
        spec.umask = self.umask;
        spec.rlimits = self
            .rlimits
            .iter()
            .map(|(resource, soft, hard)| Rlimit {
                resource: resource.clone(),
                soft: *soft,
                hard: *hard,
            })
            .collect();
        spec.nice = self.nice;
        spec.process_group = self.process_group;
        spec.new_session = self.start_new_session;
        spec.pty = self.pty.map(|(rows, columns)| Size { rows, columns });
        spec.die_with_parent = match &self.die_with_parent {
            Some(signal) => Some(signal.signal().map_err(refused)?),
            None => None,
        };
        for number in &self.pass_fds {
            let fd = duplicated(py, "pass_fds", *number)?;
            spec.pass_fds.push((Arc::new(fd), *number));
        }
        spec.liveness = self.liveness;
        setup::apply(py, &mut spec, &self.setup)?;
        spec.merged = self.merged;
        spec.ok_codes.clone_from(&self.ok_codes);
        spec.keep_full = self.keep_full.as_ref().map(OsBytes::path);
        if let Some(stop) = &self.stop {
            spec.stop = stop.get().stop();
        }
        spec.timeout = seconds("timeout", self.timeout).map_err(refused)?;
        spec.idle_timeout = seconds("idle_timeout", self.idle_timeout).map_err(refused)?;
        spec.until = self.until.parse().map_err(refused)?;
        spec.limit = self.limit.as_ref().map(|limit| limit.get().limit());
        spec.stdout = sink("stdout", &self.stdout)?;
        spec.stderr = sink("stderr", &self.stderr)?;
        let (kind, value) = &self.stdin;
        let mut next = None;
        spec.stdin = match (&**kind, value) {
            ("inherit", _) => Stdin::Inherit,
            ("pipe", _) => Stdin::Pipe,
            ("bytes", Some(value)) => {
                let bytes: PyBackedBytes = value.extract()?;
                Stdin::Bytes(Bytes::from_owner(Attached::new(bytes)))
            }
            ("file", Some(value)) => Stdin::File(value.extract::<OsBytes>()?.path()),
            ("fd", Some(value)) => Stdin::Fd(Arc::new(duplicated(py, "stdin", value.extract()?)?)),
            ("iterator", Some(value)) => {
                next = Some(value.clone().unbind());
                Stdin::Null
            }
            _ => Stdin::Null,
        };
        Ok((spec, next))
    }
}

/// A policy by its name, the bytes in memory and those on disk.
pub(crate) type RawOverflow = (String, u64, Option<u64>);

/// The policy for bytes that are not taken.
pub(crate) fn overflow(py: Python<'_>, raw: &RawOverflow) -> PyResult<Overflow> {
    let (policy, memory, disk) = raw;
    let (memory, disk) = (*memory, *disk);
    Ok(match &**policy {
        "spill" => Overflow::Spill { memory, disk },
        "drop_oldest" => Overflow::DropOldest { memory },
        "drop_newest" => Overflow::DropNewest { memory },
        "fail" => Overflow::Fail { memory },
        other => {
            let policies = "\"spill\", \"block\", \"drop_oldest\", \"drop_newest\" or \"fail\"";
            return Err(choice(py, "overflow", other, policies));
        }
    })
}

impl SpawnOptions {
    /// The spec with what `spawn` alone puts into it.
    pub(crate) fn added_to(&self, mut spec: Spec) -> Spec {
        spec.detach = self.detach;
        spec
    }

    /// The policy for output that is not read, None for the bare pipe.
    pub(crate) fn overflow(&self, py: Python<'_>) -> PyResult<Option<Overflow>> {
        let policy = self.overflow.as_ref();
        policy.map(|policy| overflow(py, policy)).transpose()
    }

    pub(crate) fn stall_after(&self, py: Python<'_>) -> PyResult<Timeout> {
        seconds("stall_after", self.stall_after).map_err(|error| invalid(py, &error))
    }

    pub(crate) fn channel(&self, py: Python<'_>) -> PyResult<Option<Channel>> {
        match self.channel.as_deref() {
            None => Ok(None),
            Some("from_child") => Ok(Some(Channel::FromChild)),
            Some("to_child") => Ok(Some(Channel::ToChild)),
            Some(other) => {
                let ways = "\"from_child\" or \"to_child\"";
                Err(choice(py, "channel", other, ways))
            }
        }
    }
}

fn sink(name: &str, (kind, value): &(String, Option<Bound<'_, PyAny>>)) -> PyResult<Sink> {
    Ok(match (&**kind, value) {
        ("inherit", _) => Sink::Inherit,
        ("null", _) => Sink::Null,
        ("merged", _) => Sink::Merged,
        ("file", Some(value)) => Sink::File {
            path: value.extract::<OsBytes>()?.path(),
            append: false,
        },
        ("fd", Some(value)) => Sink::Fd(Arc::new(duplicated(value.py(), name, value.extract()?)?)),
        _ => Sink::Capture,
    })
}
