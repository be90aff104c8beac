//! A place at a queue, on its way to another process.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use procwright::queue;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::calls::call_python;
use super::errors::send_error;
use crate::arguments::{FDS_OF_INVITATION, bad_value, duplicates, ticket_of};
use crate::errors::{duplicate, refused};
use procwright_os::sync::Mutex;

/// A place at a queue, for one process, as it is handed there: descriptors and a few bytes.
///
/// `receiver.invite()` makes one, and `Sender.attach(invitation)` uses it up; `clone()` of
/// that sender makes more. In between it goes as an argument or through a queue of
/// multiprocessing; over a Unix socket, by `send` and `receive`; or by inheritance: pass
/// `pass_fds=invitation.fds` to `spawn`, tell the program numbers and `ticket`, and put
/// them together there as `Invitation(fds, ticket)`, which leaves the descriptors the
/// caller's.
///
/// The receiver takes it for a sender as long as it is there, in whatever process: once it is
/// handed over, close it, or let go of it. A pickle that nobody loads, as one that lies in a
/// queue of multiprocessing, keeps the place for ten minutes; to load it later raises
/// `InvalidValue`.
#[pyclass(module = "procwright.queue", frozen, weakref)]
pub(crate) struct Invitation {
    /// The place, None once it is used up, or closed. Locked with the interpreter lock held and for
    /// a moment only.
    place: Mutex<Option<queue::Invitation>>,
}

#[pymethods]
impl Invitation {
    #[new]
    fn new(
        py: Python<'_>,
        fds: &Bound<'_, PyAny>,
        ticket: &Bound<'_, PyAny>,
    ) -> PyResult<Invitation> {
        let files = duplicates(fds)?;
        let files = files
            .try_into()
            .map_err(|_: Vec<OwnedFd>| bad_value("fds", fds, FDS_OF_INVITATION))?;
        let ticket = ticket_of(ticket)?;
        let invitation = queue::Invitation::from_parts(files, &ticket);
        let invitation = invitation.map_err(|error| send_error(py, &error))?;
        Ok(Invitation::wrap(invitation))
    }

    /// The descriptors, which stay this object's.
    #[getter]
    fn fds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let place = self.place.lock();
        let files = place.as_ref().ok_or_else(used_up)?.files();
        PyTuple::new(py, files.map(|file| file.as_raw_fd()))
    }

    /// The text that has to be told beside the descriptors.
    #[getter]
    fn ticket(&self) -> PyResult<String> {
        Ok(self.place.lock().as_ref().ok_or_else(used_up)?.ticket())
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

    /// Gives the place back, unless another process has it as well. May be called again.
    fn close(&self) {
        let place = self.place.take();
        drop(place);
    }

    #[getter]
    fn closed(&self) -> bool {
        self.place.lock().is_none()
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) {
        let _ = (kind, error, traceback);
        self.close();
    }

    fn __repr__(&self) -> String {
        match self.ticket() {
            Ok(ticket) => format!("<procwright.queue.Invitation {ticket}>"),
            Err(_) => "<procwright.queue.Invitation, used up>".to_owned(),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_python(slf.py(), "_reduce", (slf,))
    }

    fn _send(&self, py: Python<'_>, fd: RawFd) -> PyResult<()> {
        let socket = descriptor(py, fd)?;
        let invitation = self.duplicated(py)?;
        let sent = py.detach(|| invitation.send(&socket));
        sent.map_err(|error| refused(py, &error))
    }

    #[staticmethod]
    fn _receive(py: Python<'_>, fd: RawFd) -> PyResult<Invitation> {
        let socket = descriptor(py, fd)?;
        let received = py.detach(|| queue::Invitation::receive(&socket));
        let received = received.map_err(|error| send_error(py, &error))?;
        Ok(Invitation::wrap(received))
    }
}

fn descriptor(py: Python<'_>, number: RawFd) -> PyResult<OwnedFd> {
    duplicate(py, number, &format!("descriptor {number}"))
}

fn used_up() -> PyErr {
    PyValueError::new_err("the invitation was used up, or closed: ask the receiver for another")
}

impl Invitation {
    pub(super) fn wrap(invitation: queue::Invitation) -> Invitation {
        Invitation {
            place: Mutex::new(Some(invitation)),
        }
    }

    /// Gives the place up, once a sender has attached with it.
    pub(super) fn use_up(&self) {
        self.close();
    }

    /// A duplicate. A sender that attaches uses that up; if it cannot, this still has the
    /// place.
    pub(super) fn duplicated(&self, py: Python<'_>) -> PyResult<queue::Invitation> {
        let place = self.place.lock();
        let invitation = place.as_ref().ok_or_else(used_up)?;
        let mut files = Vec::new();
        for file in invitation.files() {
            let file = file.try_clone_to_owned();
            files.push(file.map_err(|error| refused(py, &error))?);
        }
        let files = files.try_into().map_err(|_| used_up())?;
        let again = queue::Invitation::from_parts(files, &invitation.ticket());
        again.map_err(|error| send_error(py, &error))
    }
}
