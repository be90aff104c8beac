//! What Python hands over, as a [`Spec`].

use std::ffi::OsString;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use procwright::error::Invalid;
use procwright::spec::{Account, Rlimit};
use procwright::terminal::Size;
use procwright::{Sink, Spec, Stdin, Until, duplicate_fd};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::errors::{invalid, strerror};
use crate::values::{Cancel, Limit, SignalArg, Stop, seconds};

/// A string of the system's, which is bytes.
#[derive(FromPyObject)]
pub(crate) struct Text(PyBackedBytes);

impl Text {
    fn os(&self) -> OsString {
        OsString::from_vec(self.0.to_vec())
    }

    fn path(&self) -> PathBuf {
        self.os().into()
    }
}

/// What a run and a spawned child have in common, in the shapes that
/// `procwright/_options.py` gives it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Setup<'py> {
    argv: Vec<Text>,
    env: Option<Vec<(Text, Text)>>,
    extra_env: Vec<(Text, Option<Text>)>,
    cwd: Option<Text>,
    user: Option<AccountArg>,
    group: Option<AccountArg>,
    extra_groups: Option<Vec<AccountArg>>,
    umask: Option<u32>,
    rlimits: Vec<(String, u64, u64)>,
    nice: Option<i32>,
    process_group: Option<i32>,
    new_session: bool,
    pty: Option<(u16, u16)>,
    die_with_parent: Option<SignalArg>,
    pass_fds: Vec<RawFd>,
    liveness: bool,
    stdin: (String, Option<Bound<'py, PyAny>>),
    stdout: (String, Option<Bound<'py, PyAny>>),
    stderr: (String, Option<Bound<'py, PyAny>>),
    stop: Option<Bound<'py, Stop>>,
}

/// The other options of a run, from the same dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options<'py> {
    timeout: Option<f64>,
    idle_timeout: Option<f64>,
    until: String,
    limit: Option<Bound<'py, Limit>>,
    keep_full: Option<Text>,
    merged: bool,
    pub(crate) tee: bool,
    pub(crate) taps: Vec<(u8, bool, Py<PyAny>)>,
    pub(crate) cancel: Option<Bound<'py, Cancel>>,
    pub(crate) on_event: Py<PyAny>,
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

impl Options<'_> {
    /// Puts into `spec` what is not in the [`Setup`].
    pub(crate) fn complete(&self, py: Python<'_>, spec: &mut Spec) -> PyResult<()> {
        let refused = |error: Invalid| invalid(py, &error);
        spec.timeout = seconds("timeout", self.timeout).map_err(refused)?;
        spec.idle_timeout = seconds("idle_timeout", self.idle_timeout).map_err(refused)?;
        spec.until = match &*self.until {
            "eof" => Until::Eof,
            "exit" => Until::Exit,
            other => {
                let problem = format!("is {other:?}");
                return Err(refused(Invalid::new(
                    "until",
                    problem,
                    "use \"eof\" or \"exit\"",
                )));
            }
        };
        spec.limit = self.limit.as_ref().map(|limit| limit.get().limit());
        spec.keep_full = self.keep_full.as_ref().map(Text::path);
        spec.merged = self.merged;
        Ok(())
    }
}

impl Setup<'_> {
    /// The spec, and the `__next__` that brings stdin.
    pub(crate) fn spec(&self, py: Python<'_>) -> PyResult<(Spec, Option<Py<PyAny>>)> {
        let refused = |error: Invalid| invalid(py, &error);
        let mut spec = Spec::new(self.argv.iter().map(Text::os));
        // A thread that sets a variable does so with the lock held: so the copy
        // is taken while we hold it, not in the middle of the run.
        spec.env = Some(match &self.env {
            Some(env) => env
                .iter()
                .map(|(key, value)| (key.os(), value.os()))
                .collect(),
            None => std::env::vars_os().collect(),
        });
        spec.extra_env = self
            .extra_env
            .iter()
            .map(|(key, value)| (key.os(), value.as_ref().map(Text::os)))
            .collect();
        spec.cwd = self.cwd.as_ref().map(Text::path);
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
        spec.new_session = self.new_session;
        spec.pty = self.pty.map(|(rows, columns)| Size { rows, columns });
        spec.die_with_parent = match &self.die_with_parent {
            Some(signal) => Some(signal.signal().map_err(refused)?),
            None => None,
        };
        for number in &self.pass_fds {
            let fd = fd(py, "pass_fds", *number)?;
            spec.extra_fds.push((fd, *number));
        }
        spec.liveness = self.liveness;
        if let Some(stop) = &self.stop {
            spec.stop = stop.get().stop();
        }
        spec.stdout = sink("stdout", &self.stdout)?;
        spec.stderr = sink("stderr", &self.stderr)?;
        let (kind, value) = &self.stdin;
        let mut next = None;
        spec.stdin = match (&**kind, value) {
            ("inherit", _) => Stdin::Inherit,
            ("pipe", _) => Stdin::Pipe,
            ("bytes", Some(value)) => {
                let bytes: PyBackedBytes = value.extract()?;
                Stdin::Bytes(Bytes::from_owner(bytes))
            }
            ("file", Some(value)) => Stdin::File(value.extract::<Text>()?.path()),
            ("fd", Some(value)) => Stdin::Fd(fd(py, "stdin", value.extract()?)?),
            ("iterator", Some(value)) => {
                next = Some(value.clone().unbind());
                Stdin::Null
            }
            _ => Stdin::Null,
        };
        Ok((spec, next))
    }
}

fn sink(name: &str, (kind, value): &(String, Option<Bound<'_, PyAny>>)) -> PyResult<Sink> {
    Ok(match (&**kind, value) {
        ("inherit", _) => Sink::Inherit,
        ("null", _) => Sink::Null,
        ("merged", _) => Sink::Merged,
        ("file", Some(value)) => Sink::File {
            path: value.extract::<Text>()?.path(),
            append: false,
        },
        ("fd", Some(value)) => Sink::Fd(fd(value.py(), name, value.extract()?)?),
        _ => Sink::Capture,
    })
}

/// A duplicate: what the caller does with the number meanwhile is no concern of
/// the run's.
fn fd(py: Python<'_>, name: &str, number: RawFd) -> PyResult<Arc<std::os::fd::OwnedFd>> {
    duplicate_fd(number).map(Arc::new).map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(0);
        match strerror(py, errno, &error) {
            Ok(reason) => PyOSError::new_err((errno, format!("{name}={number}: {reason}"))),
            Err(error) => error,
        }
    })
}
