//! A token on its way to another process.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use procwright::liveness::Invitation;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::words::call_python;
use crate::arguments::{FDS_OF_INVITATION, bad_value, duplicates, ticket_of};
use crate::errors::{self, duplicate};

/// The number of descriptors of an invitation.
const FILES: usize = 2;

/// A token, as it is handed to another process: descriptors and a few bytes.
///
/// `token.invite()` makes one, `LivenessMonitor(invitation)` watches. In between it goes
/// as an argument or through a queue of multiprocessing; over a Unix socket, by `send` and
/// `receive`; or by inheritance: pass `pass_fds=invitation.fds` to `spawn`, tell the
/// program numbers and `ticket`, and put them together there as
/// `LivenessInvitation(fds, ticket)`, which leaves the descriptors the caller's.
#[pyclass(module = "procwright", frozen, weakref)]
pub(crate) struct LivenessInvitation(pub(super) Invitation);

#[pymethods]
impl LivenessInvitation {
    #[new]
    fn new(
        py: Python<'_>,
        fds: &Bound<'_, PyAny>,
        ticket: &Bound<'_, PyAny>,
    ) -> PyResult<LivenessInvitation> {
        let files = duplicates(fds)?;
        let files = <[OwnedFd; FILES]>::try_from(files)
            .map_err(|_| bad_value("fds", fds, FDS_OF_INVITATION))?;
        let ticket = ticket_of(ticket)?;
        let invitation = Invitation::from_parts(files, &ticket);
        invitation
            .map(LivenessInvitation)
            .map_err(|error| errors::liveness(py, &error))
    }

    /// The descriptors, which stay this object's.
    #[getter]
    fn fds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.files().map(|file| file.as_raw_fd()))
    }

    /// The text that has to be told beside the descriptors.
    #[getter]
    fn ticket(&self) -> String {
        self.0.ticket()
    }

    /// Sends it over a connected Unix socket, or a connection of multiprocessing.
    ///
    /// Waits for room as the socket's own methods do, with its timeout. Raises
    /// `InvalidValue` for another kind of socket.
    fn send(slf: &Bound<'_, Self>, sock: &Bound<'_, PyAny>) -> PyResult<()> {
        call_python(slf.py(), "_send", (slf, sock)).map(drop)
    }

    /// Receives one from a connected Unix socket, or a connection of multiprocessing.
    ///
    /// Waits for it as the socket's own methods do, with its timeout. Raises `InvalidValue`
    /// if something else comes, or the other side closes it.
    #[staticmethod]
    fn receive<'py>(py: Python<'py>, sock: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        call_python(py, "_receive", (sock,))
    }

    fn __repr__(&self) -> String {
        format!("<procwright.LivenessInvitation {}>", self.0.ticket())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_python(slf.py(), "_reduce_invitation", (slf,))
    }

    fn _send(&self, py: Python<'_>, fd: RawFd) -> PyResult<()> {
        let socket = descriptor(py, fd)?;
        let sent = py.detach(|| self.0.send(&socket));
        sent.map_err(|error| errors::liveness(py, &error.into()))
    }

    #[staticmethod]
    fn _receive(py: Python<'_>, fd: RawFd) -> PyResult<LivenessInvitation> {
        let socket = descriptor(py, fd)?;
        let received = py.detach(|| Invitation::receive(&socket));
        received
            .map(LivenessInvitation)
            .map_err(|error| errors::liveness(py, &error))
    }
}

fn descriptor(py: Python<'_>, number: RawFd) -> PyResult<OwnedFd> {
    duplicate(py, number, &format!("descriptor {number}"))
}

impl LivenessInvitation {
    /// A duplicate: the monitor that accepts one uses it up.
    pub(super) fn duplicated(&self) -> std::io::Result<Invitation> {
        self.0.try_clone()
    }
}
