//! Copies of the output that the core makes: on our own streams, in files, to descriptors.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use procwright::{Command, StdStream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::values::{OsBytes, duplicated};

/// What could not be duplicated, in errors.
pub(crate) const OWN: &str = "our own output, for tee";

/// What `procwright/_tee.py` makes of one target: the stream, 0 for both, a word, and what belongs
/// to it.
pub(crate) type TeeArg<'py> = (i32, String, Option<Bound<'py, PyAny>>);

/// A copy that the core makes; of no stream is of both.
pub(crate) enum Tee {
    Own(StdStream),
    File(Option<StdStream>, PathBuf),
    Fd(Option<StdStream>, OwnedFd),
}

impl Tee {
    pub(crate) fn new(py: Python<'_>, (number, kind, value): &TeeArg<'_>) -> PyResult<Tee> {
        let stream = StdStream::from_fd(*number);
        Ok(match (&**kind, stream, value) {
            ("own", Some(stream), _) => Tee::Own(stream),
            ("file", stream, Some(value)) => Tee::File(stream, value.extract::<OsBytes>()?.path()),
            ("fd", stream, Some(value)) => {
                Tee::Fd(stream, duplicated(py, "tee", value.extract()?)?)
            }
            _ => return Err(PyValueError::new_err(format!("{kind} is no tee"))),
        })
    }

    /// The stream, if it is shown on our own.
    pub(crate) fn shown(&self) -> Option<StdStream> {
        match self {
            Tee::Own(stream) => Some(*stream),
            _ => None,
        }
    }

    /// Has `command` make it.
    ///
    /// # Errors
    /// When our own stream cannot be duplicated.
    pub(crate) fn add_to<'a>(self, command: Command<'a>) -> io::Result<Command<'a>> {
        match self {
            Tee::Own(stream) => command.tee_stream(stream),
            Tee::File(stream, path) => Ok(command.tee_to_file(stream, path)),
            Tee::Fd(stream, fd) => Ok(command.tee_to_fd(stream, fd)),
        }
    }
}

/// Has `command` make all of them.
///
/// # Errors
/// When our own stream cannot be duplicated.
pub(crate) fn add_all(command: Command<'_>, tees: Vec<Tee>) -> io::Result<Command<'_>> {
    tees.into_iter()
        .try_fold(command, |command, tee| tee.add_to(command))
}
