//! Messages as objects; `pickled` has the format.

use std::sync::Arc;

use procwright::queue::{Error, Receiver};
use procwright::time::Deadline;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyMemoryView, PySlice};

use super::endpoint::Endpoint;
use super::errors::receive_error;
use super::guard::{OwnedInPlace, OwnedReceiver};
use super::pickled::{ENTRY, HEADER, MAGIC};
use super::readiness::CachedReadiness;
use super::{View, copy, waiting};

/// The length below which a pickle is copied for `pickle` to read: that takes less time than
/// to make the objects with which it can read in the queue's memory.
const SHORT: usize = 16 * 1024;

/// The number of objects between checks for signals.
const OFTEN: usize = 64;

/// The next object.
///
/// # Errors
/// Those of `recv`, and what unpickling it raises.
pub(super) fn recv<'py>(
    py: Python<'py>,
    receiver: OwnedReceiver,
    deadline: Deadline,
    readiness: &CachedReadiness,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(object) = deferred_object(py, &receiver)? {
        return Ok(object);
    }
    let message = waiting::for_message(py, receiver, deadline, readiness)?;
    one(py, message)
}

/// The next object, if there is one now.
pub(super) fn try_recv<'py>(
    py: Python<'py>,
    receiver: OwnedReceiver,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(object) = deferred_object(py, &receiver)? {
        return Ok(Some(object));
    }
    match receiver.lend(Receiver::try_recv_view) {
        Ok(message) => one(py, message).map(Some),
        Err((_, Error::Empty)) => Ok(None),
        Err((_, error)) => Err(receive_error(py, &error)),
    }
}

/// An object that was deferred.
///
/// # Errors
/// An error that was.
fn deferred_object<'py>(
    py: Python<'py>,
    receiver: &OwnedReceiver,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(deferred) = receiver.endpoint().deferred() else {
        return Ok(None);
    };
    match deferred.object() {
        Some(object) => Ok(Some(object.into_bound(py))),
        None => deferred.raise(py).map(|()| None),
    }
}

/// A list of one object to `most`.
pub(super) fn recv_many<'py>(
    py: Python<'py>,
    receiver: OwnedReceiver,
    most: usize,
    deadline: Deadline,
    readiness: &CachedReadiness,
) -> PyResult<Bound<'py, PyList>> {
    let objects = PyList::empty(py);
    let endpoint = Arc::clone(receiver.endpoint());
    if let Some(deferred) = endpoint.deferred() {
        while objects.len() < most
            && let Some(object) = deferred.object()
        {
            objects.append(object)?;
        }
        if !objects.is_empty() {
            return Ok(objects);
        }
        deferred.raise(py)?;
    }
    let mut message = waiting::for_message(py, receiver, deadline, readiness)?;
    loop {
        let receiver = match unpickled(py, message, |object| objects.append(object)) {
            Ok(((), receiver)) => receiver,
            Err(failure) => return failure.behind(py, &endpoint, objects),
        };
        if objects.len() >= most || receiver.is_closed() {
            return Ok(objects);
        }
        if objects.len() % OFTEN == 0
            && let Err(raised) = py.check_signals()
        {
            defer_objects(&endpoint, &objects);
            return Err(raised);
        }
        message = match receiver.lend(Receiver::try_recv_view) {
            Ok(next) => next,
            Err((receiver, error)) => {
                receiver.defer_damage(py, &error);
                return Ok(objects);
            }
        };
    }
}

/// Defers objects that this call cannot give back.
fn defer_objects(endpoint: &Endpoint<Receiver>, objects: &Bound<'_, PyList>) {
    endpoint.defer_objects(objects.iter().map(Bound::unbind).collect());
}

/// A message that could not be made into an object.
struct UnpickleFailure {
    error: PyErr,
    /// False if the message is the next one again.
    is_received: bool,
}

impl UnpickleFailure {
    /// The result of a call that has received `objects` before it.
    fn behind<'py>(
        self,
        py: Python<'py>,
        endpoint: &Endpoint<Receiver>,
        objects: Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        if objects.is_empty() {
            return Err(self.error);
        }
        if is_interruption(py, &self.error) {
            defer_objects(endpoint, &objects);
            return Err(self.error);
        }
        if self.is_received {
            endpoint.defer_error(py, self.error);
        }
        Ok(objects)
    }
}

/// True for an exception of a signal handler, as `KeyboardInterrupt` is: that cannot be
/// deferred, and says nothing about the message.
fn is_interruption(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py)
}

/// The object of a message that is received by this.
fn one(py: Python<'_>, message: OwnedInPlace<Receiver>) -> PyResult<Bound<'_, PyAny>> {
    match unpickled(py, message, Ok) {
        Ok((object, _)) => Ok(object),
        Err(failure) => Err(failure.error),
    }
}

/// Unpickles a message, calls `keep` with the object, and then receives the message.
fn unpickled<'py, R>(
    py: Python<'py>,
    message: OwnedInPlace<Receiver>,
    keep: impl FnOnce(Bound<'py, PyAny>) -> PyResult<R>,
) -> Result<(R, OwnedReceiver), UnpickleFailure> {
    let not_received = |error| UnpickleFailure {
        error,
        is_received: false,
    };
    let (begin, options) = match taken_apart(py, &message.message) {
        Ok(parts) => parts,
        Err(error) => {
            let is_received = !error.is_instance_of::<PyMemoryError>(py);
            match is_received {
                true => drop(message.receive()),
                false => drop(message.put_back()),
            }
            return Err(UnpickleFailure { error, is_received });
        }
    };
    let (object, message) = if message.message.len() - begin < SHORT {
        match copy::bytes(py, &message.message[begin..]) {
            Ok(pickle) => (loads(pickle.as_any(), options.as_ref()), message),
            Err(error) => {
                message.put_back();
                return Err(not_received(error));
            }
        }
    } else {
        let view = View::new(py, message).map_err(not_received)?;
        let object = loads_in_place(view.bind(py), begin, options.as_ref());
        match view.get().take_message(py) {
            Ok(message) => (object, message),
            // Something has a buffer of it. The message is received when the last is released.
            Err(error) => {
                return Err(UnpickleFailure {
                    error: object.err().unwrap_or(error),
                    is_received: true,
                });
            }
        }
    };
    match object {
        Ok(object) => match keep(object) {
            Ok(kept) => Ok((kept, message.receive())),
            Err(error) => {
                message.put_back();
                Err(not_received(error))
            }
        },
        Err(error) if is_interruption(py, &error) => {
            message.put_back();
            Err(not_received(error))
        }
        Err(error) => {
            message.receive();
            Err(UnpickleFailure {
                error,
                is_received: true,
            })
        }
    }
}

/// The offset of the pickle, and copies of the buffers as an argument for `loads`: the one
/// copy that is made, since the queue's memory is needed for other messages.
fn taken_apart<'py>(
    py: Python<'py>,
    message: &[u8],
) -> PyResult<(usize, Option<Bound<'py, PyDict>>)> {
    let Some((table, begin)) = table(message) else {
        return Err(no_object(py));
    };
    if table.is_empty() {
        return Ok((begin, None));
    }
    let buffers = PyList::empty(py);
    for entry in table.chunks_exact(ENTRY) {
        let Some(buffer) = buffer(message, entry) else {
            return Err(no_object(py));
        };
        let copy = PyMemoryView::from(copy::bytearray(py, buffer)?.as_any())?;
        let is_writable = entry[16] != 0;
        match is_writable {
            true => buffers.append(copy)?,
            false => buffers.append(copy.call_method0(intern!(py, "toreadonly"))?)?,
        }
    }
    let options = PyDict::new(py);
    options.set_item(intern!(py, "buffers"), buffers)?;
    Ok((begin, Some(options)))
}

/// The table of the buffers, and the offset of its end.
fn table(message: &[u8]) -> Option<(&[u8], usize)> {
    let (header, behind) = message.split_first_chunk::<HEADER>()?;
    let (magic, count) = header.split_first_chunk::<4>()?;
    if *magic != MAGIC {
        return None;
    }
    let count = u32::from_le_bytes(count.try_into().ok()?);
    let length = usize::try_from(count).ok()?.checked_mul(ENTRY)?;
    Some((behind.get(..length)?, HEADER + length))
}

fn buffer<'a>(message: &'a [u8], entry: &[u8]) -> Option<&'a [u8]> {
    let (begin, behind) = entry.split_first_chunk::<8>()?;
    let (length, _) = behind.split_first_chunk::<8>()?;
    let begin = usize::try_from(u64::from_le_bytes(*begin)).ok()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    message.get(begin..begin.checked_add(length)?)
}

#[cold]
fn no_object(py: Python<'_>) -> PyErr {
    let text = "this message is no object: no ObjectSender has sent it";
    let class = py
        .import("pickle")
        .and_then(|pickle| pickle.getattr("UnpicklingError"));
    let made = class.and_then(|class| class.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

fn loads_in_place<'py>(
    view: &Bound<'py, View>,
    begin: usize,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = view.py();
    let memory = PyMemoryView::from(view.as_any())?;
    let pickle = memory.get_item(PySlice::new(py, begin.try_into()?, isize::MAX, 1))?;
    loads(&pickle, options)
}

fn loads<'py>(
    pickle: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let loads = LOADS.import(pickle.py(), "pickle", "loads")?;
    loads.call((pickle,), options)
}
