//! Messages as objects: see `pickled`.

use std::sync::Arc;

use procwright::queue::{Error, Receiver};
use procwright::time::Deadline;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyMemoryView, PySlice};

use super::door::Door;
use super::end::End;
use super::loan::Kept;
use super::pickled::{ENTRY, HEADER, MAGIC};
use super::receiver::{LentReceiver, put_off, told};
use super::{View, copy, waiting};

/// A pickle that is shorter is copied for pickle to read: that takes less than the
/// objects with which it can look into the queue's memory.
const SHORT: usize = 16 * 1024;

/// After so many objects signals are looked for.
const OFTEN: usize = 64;

/// The next object.
///
/// # Errors
/// Those of `recv`, and what unpickling it raises.
pub(super) fn recv<'py>(
    py: Python<'py>,
    used: LentReceiver,
    deadline: Deadline,
    door: &Door,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(object) = kept(py, &used)? {
        return Ok(object);
    }
    let message = waiting::for_message(py, used, deadline, door)?;
    one(py, message)
}

/// The same if there is one now.
pub(super) fn look<'py>(
    py: Python<'py>,
    used: LentReceiver,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(object) = kept(py, &used)? {
        return Ok(Some(object));
    }
    match used.lend(Receiver::try_recv_view) {
        Ok(message) => one(py, message).map(Some),
        Err((_, Error::Empty)) => Ok(None),
        Err((_, error)) => Err(told(py, &error)),
    }
}

/// What was met behind what the last call gave back.
fn kept<'py>(py: Python<'py>, used: &LentReceiver) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(later) = used.end().later() else {
        return Ok(None);
    };
    match later.object() {
        Some(object) => Ok(Some(object.into_bound(py))),
        None => later.tell(py).map(|()| None),
    }
}

/// One object to `most`.
pub(super) fn recv_many<'py>(
    py: Python<'py>,
    used: LentReceiver,
    most: usize,
    deadline: Deadline,
    door: &Door,
) -> PyResult<Bound<'py, PyList>> {
    let objects = PyList::empty(py);
    let end = Arc::clone(used.place());
    if let Some(later) = end.later() {
        while objects.len() < most
            && let Some(object) = later.object()
        {
            objects.append(object)?;
        }
        if !objects.is_empty() {
            return Ok(objects);
        }
        later.tell(py)?;
    }
    let mut message = waiting::for_message(py, used, deadline, door)?;
    loop {
        let used = match unpickled(py, message, |object| objects.append(object)) {
            Ok(((), used)) => used,
            Err(failed) => return failed.behind(py, &end, objects),
        };
        if objects.len() >= most || used.is_closed() {
            return Ok(objects);
        }
        if objects.len() % OFTEN == 0
            && let Err(raised) = py.check_signals()
        {
            keep(&end, &objects);
            return Err(raised);
        }
        message = match used.lend(Receiver::try_recv_view) {
            Ok(next) => next,
            Err((used, error)) => {
                put_off(py, &used, &error);
                return Ok(objects);
            }
        };
    }
}

/// Objects that cannot be given back now.
fn keep(end: &End<Receiver>, objects: &Bound<'_, PyList>) {
    end.keep(objects.iter().map(Bound::unbind).collect());
}

/// A message that is no object now.
struct Failed {
    error: PyErr,
    /// Or it is the next one again.
    is_received: bool,
}

impl Failed {
    /// What that means to who has received `objects` before it.
    fn behind<'py>(
        self,
        py: Python<'py>,
        end: &End<Receiver>,
        objects: Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        if objects.is_empty() {
            return Err(self.error);
        }
        if is_interruption(py, &self.error) {
            keep(end, &objects);
            return Err(self.error);
        }
        if self.is_received {
            end.put_off(py, self.error);
        }
        Ok(objects)
    }
}

/// Whether that came from a signal handler, as `KeyboardInterrupt` does: then it cannot
/// wait, and says nothing about the message.
fn is_interruption(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py)
}

fn one(py: Python<'_>, message: Kept<Receiver>) -> PyResult<Bound<'_, PyAny>> {
    match unpickled(py, message, Ok) {
        Ok((object, _)) => Ok(object),
        Err(failed) => Err(failed.error),
    }
}

/// Unpickles a message into what `keep` makes of that, and then receives it.
fn unpickled<'py, R>(
    py: Python<'py>,
    message: Kept<Receiver>,
    keep: impl FnOnce(Bound<'py, PyAny>) -> PyResult<R>,
) -> Result<(R, LentReceiver), Failed> {
    let not_received = |error| Failed {
        error,
        is_received: false,
    };
    let (begin, options) = match taken_apart(py, &message.lent) {
        Ok(parts) => parts,
        Err(error) => {
            let is_received = !error.is_instance_of::<PyMemoryError>(py);
            match is_received {
                true => drop(message.receive()),
                false => drop(message.put_back()),
            }
            return Err(Failed { error, is_received });
        }
    };
    let (object, message) = if message.lent.len() - begin < SHORT {
        match copy::bytes(py, &message.lent[begin..]) {
            Ok(pickle) => (loads(pickle.as_any(), options.as_ref()), message),
            Err(error) => {
                message.put_back();
                return Err(not_received(error));
            }
        }
    } else {
        let view = View::of(py, message).map_err(not_received)?;
        let object = loads_in_place(view.bind(py), begin, options.as_ref());
        match view.get().again(py) {
            Ok(message) => (object, message),
            // Somebody looks into it yet. It is received when they are done.
            Err(error) => {
                return Err(Failed {
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
            Err(Failed {
                error,
                is_received: true,
            })
        }
    }
}

/// Where the pickle begins, and copies of the buffers as an argument for `loads`. They
/// are copied out of the queue, whose memory is wanted for others: the one copy.
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

/// The table of the buffers, and where it ends.
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
