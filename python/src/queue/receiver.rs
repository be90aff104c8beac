//! The receiving side.

use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use procwright::queue::{self, Error, Options, Overflow};
use procwright::time::{Deadline, Timeout};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use pyo3::{PyTraverseError, PyVisit};

use super::calls::call_python;
use super::endpoint::Endpoint;
use super::errors::{QueueSide, Unavailable, is_end, receive_error, unavailable};
use super::guard::{EndpointGuard, InPlace, OwnedReceiver};
use super::other_side::OtherSide;
use super::readiness::CachedReadiness;
use super::waiting::deadline;
use super::{Invitation, Sender, View, arguments, copy, unpickled, waiting};
use crate::python;

/// Receives what the senders of a queue send, each one's messages in their order.
///
/// Making one makes the queue. `lanes` is how many senders there may be at a time, from 1
/// to 4,096; each has a lane, which takes `first` bytes of memory at first (16 KiB, or
/// `limit` where that is less, unless it is given) and `limit` at most, 4 KiB or more, and
/// keeps the memory of blocks of up to `keep` bytes when they are empty. At least half of
/// `limit` is room for messages that wait, and for one message. The queue is there as long
/// as its receiver is.
///
/// One thread at a time may use it: a call that comes while another is inside raises `Busy`.
/// As a context manager it is closed in the end; iterating receives until all senders are
/// gone.
///
/// Raises `Unsupported` where there are no queues, `InvalidValue` for a shape that no
/// queue can have.
///
/// >>> from procwright.queue import Receiver
/// >>> with Receiver() as receiver:
/// ...     with receiver.sender() as sender:
/// ...         sender.send(b"hello")
/// ...     list(receiver)
/// [b'hello']
#[pyclass(module = "procwright.queue", frozen, weakref)]
pub(crate) struct Receiver {
    endpoint: Arc<Endpoint<queue::Receiver>>,
    readiness: CachedReadiness,
    other_side: OtherSide,
}

/// The receiver in use by a call.
type ReceiverGuard<'a> = EndpointGuard<&'a Endpoint<queue::Receiver>, queue::Receiver>;

/// The shape of a new queue.
fn shape(lanes: usize, first: Option<usize>, limit: usize, keep: usize) -> Options {
    // A number that no `u32` can be is too many.
    let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);
    let options = Options::new().lanes(lanes).limit(limit).keep(keep);
    first.map_or(options, |first| options.first(first))
}

/// Refuses parameters of other queues, with what to write in their place.
fn refuse_unknown(py: Python<'_>, unknown: Option<Bound<'_, PyDict>>) -> PyResult<()> {
    match unknown {
        None => Ok(()),
        Some(unknown) => {
            let known = ("lanes", "first", "limit", "keep");
            let given = ("Receiver", unknown, known, ());
            Err(python::exception(
                py,
                "procwright._unknown",
                "refusal",
                given,
            ))
        }
    }
}

#[pymethods]
impl Receiver {
    #[new]
    #[pyo3(signature = (*, lanes=64, first=None, limit=64 << 20, keep=16 << 20, **unknown))]
    #[pyo3(text_signature = "(*, lanes=64, first=None, limit=67108864, keep=16777216)")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::lanes)] lanes: usize,
        #[pyo3(from_py_with = arguments::maybe_first)] first: Option<usize>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::keep)] keep: usize,
        unknown: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Receiver> {
        refuse_unknown(py, unknown)?;
        let options = shape(lanes, first, limit, keep);
        let made = py.detach(|| options.create());
        Receiver::from_result(py, made)
    }

    /// Receives from the process that has spawned this one with `channel="to_child"`.
    ///
    /// Once: then the descriptors are not inherited any more. Raises `NoParent` if this
    /// process was not spawned so, or it was taken before.
    #[staticmethod]
    #[pyo3(signature = (*, lanes=64, first=None, limit=64 << 20, keep=16 << 20, **unknown))]
    #[pyo3(text_signature = "(*, lanes=64, first=None, limit=67108864, keep=16777216)")]
    fn of_parent(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::lanes)] lanes: usize,
        #[pyo3(from_py_with = arguments::maybe_first)] first: Option<usize>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::keep)] keep: usize,
        unknown: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Receiver> {
        refuse_unknown(py, unknown)?;
        let options = shape(lanes, first, limit, keep);
        let made = py.detach(|| options.of_parent());
        Receiver::from_result(py, made)
    }

    /// Makes a queue of that name, for this user on this machine: any process of the user's
    /// may send to it, with `Sender.open(name)`.
    ///
    /// A queue of that name whose receiver has died, and that any process still has, is
    /// taken over as it is, in the shape that it was made with. A name is 1 to 64 of
    /// the characters A-Z, a-z, 0-9, ".", "_" and "-", and does not begin with a dot. It is
    /// a small file in $PROCWRIGHT_QUEUE_DIR, else in $XDG_RUNTIME_DIR/procwright/queues,
    /// else in /tmp/procwright-UID/queues, which closing the receiver removes. A receiver
    /// with a name never says `Closed`: others may come at any time.
    ///
    /// Raises `NameTaken` if the receiver of that queue lives; otherwise as `Receiver`, and
    /// `OSError` if the directory is not this user's alone.
    #[staticmethod]
    #[pyo3(signature = (name, *, lanes=64, first=None, limit=64 << 20, keep=16 << 20, **unknown))]
    #[pyo3(text_signature = "(name, *, lanes=64, first=None, limit=67108864, keep=16777216)")]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::name)] name: String,
        #[pyo3(from_py_with = arguments::lanes)] lanes: usize,
        #[pyo3(from_py_with = arguments::maybe_first)] first: Option<usize>,
        #[pyo3(from_py_with = arguments::limit)] limit: usize,
        #[pyo3(from_py_with = arguments::keep)] keep: usize,
        unknown: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Receiver> {
        refuse_unknown(py, unknown)?;
        let options = shape(lanes, first, limit, keep);
        let made = py.detach(|| options.open(&name));
        Receiver::from_result(py, made)
    }

    /// Receives in the place of a receiver that has died, from the queue that the
    /// invitation is to. What was not received yet is there, and so are its senders.
    ///
    /// A message that the dead one had been given and had not received yet, a `View`, is
    /// received again, and nothing else is. The invitation stays good: to send, or to take over
    /// from this receiver in turn.
    ///
    /// Raises `ReceiverAlive` if the queue has a receiver, `Closed` if the last one was not
    /// killed but closed; `InvalidValue`, `WrongVersion`, `Unsupported`, `OSError`.
    #[staticmethod]
    fn take_over(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::invitation)] invitation: Bound<'_, Invitation>,
    ) -> PyResult<Receiver> {
        let place = invitation.get().duplicated(py)?;
        let made = py.detach(|| queue::Receiver::take_over(&place));
        Receiver::from_result(py, made)
    }

    /// A place at this queue for one process, which may have any number of senders: to be
    /// passed to it as an argument, pickled, sent or inherited.
    fn invite(&self, py: Python<'_>) -> PyResult<Invitation> {
        let invited = self.take(py)?.invite();
        invited
            .map(Invitation::wrap)
            .map_err(|error| receive_error(py, &error))
    }

    /// A sender in this process: see `Sender.attach`.
    #[pyo3(signature = (overflow=Overflow::Block, limit=None))]
    #[pyo3(text_signature = "($self, overflow='block', limit=None)")]
    fn sender(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::overflow)] overflow: Overflow,
        #[pyo3(from_py_with = arguments::maybe_limit)] limit: Option<usize>,
    ) -> PyResult<Sender> {
        let made = self.take(py)?.sender();
        Sender::from_result(py, made, overflow, limit)
    }

    /// Receives a message: waits until there is one.
    ///
    /// Raises `TimedOut`, which is a `TimeoutError` and a `queue.Empty` of the standard
    /// library, if the time comes first; `Closed`, an `EOFError`, if there will be none:
    /// every sender is gone, and no invitation is left; `Damaged` once for a lane that
    /// is not read any more, `Busy`, `EndClosed` or `Forked`. Signal handlers run
    /// as usual; if one raises, nothing was received. Nor was it with `MemoryError`: then
    /// it is the next message again.
    #[pyo3(signature = (timeout=None))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let until = deadline(timeout);
        self.other_side.told(py, self.received(py, until), until)
    }

    /// Receives a message if there is one, else raises `Empty`, a `queue.Empty`.
    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match self.other_side.told_at_once(py, self._poll(py))? {
            Some(message) => Ok(message),
            None => Err(receive_error(py, &Error::Empty)),
        }
    }

    fn _poll<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self
            .take_to_receive(py)?
            .lend(queue::Receiver::try_recv_view)
        {
            Ok(message) => received(py, message, Ok).map(|(bytes, _)| Some(bytes)),
            Err((_, Error::Empty)) => Ok(None),
            Err((_, error)) => Err(receive_error(py, &error)),
        }
    }

    /// Waits for a message, and receives it and what has come besides: a list of one
    /// message to `most`, fewer where there is no memory for more. Each sender's are in
    /// their order. Raises as `recv`; `Damaged` that is met behind messages is raised by
    /// the next call that receives.
    #[pyo3(signature = (most, timeout=None))]
    fn recv_many<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::most)] most: usize,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyList>> {
        let until = deadline(timeout);
        let found = self.received_many(py, most, until);
        self.other_side.told(py, found, until)
    }

    /// Receives a message without a copy, to be read where it is: a `View`.
    ///
    ///     with receiver.recv_view() as message:
    ///         parse(message)
    ///
    /// The message is a `memoryview` in the block, and is received when the block is left; until
    /// then the receiver is `Busy`. Raises as `recv`.
    #[pyo3(signature = (timeout=None))]
    fn recv_view(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Py<View>> {
        let until = deadline(timeout);
        self.other_side.told(py, self.lent(py, until), until)
    }

    /// Receives a message without a copy if there is one, else raises `Empty`.
    fn try_recv_view(&self, py: Python<'_>) -> PyResult<Py<View>> {
        let receiver = self.take_owned(py)?;
        receiver.endpoint().raise_deferred(py)?;
        let found = match receiver.lend(queue::Receiver::try_recv_view) {
            Ok(message) => View::new(py, message),
            Err((_, error)) => Err(receive_error(py, &error)),
        };
        self.other_side.told_at_once(py, found)
    }

    /// An object, for `ObjectReceiver`, with which that is documented.
    fn _recv_object<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let until = deadline(timeout);
        self.other_side.told(py, self.unpickled(py, until), until)
    }

    fn _try_recv_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let found = unpickled::try_recv(py, self.take_owned(py)?);
        match self.other_side.told_at_once(py, found)? {
            Some(object) => Ok(object),
            None => Err(receive_error(py, &Error::Empty)),
        }
    }

    /// The next object, for an iteration, whose end is that whatever has become of the child.
    fn _next_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.unpickled(py, Deadline::NEVER)
    }

    /// An object in a tuple, as it may be None; None without one.
    fn _poll_object<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        let found = unpickled::try_recv(py, self.take_owned(py)?)?;
        Ok(found.map(|object| (object,)))
    }

    fn _recv_objects<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::most)] most: usize,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyList>> {
        let until = deadline(timeout);
        let receiver = self.take_owned(py)?;
        let found = unpickled::recv_many(py, receiver, most, until, &self.readiness);
        self.other_side.told(py, found, until)
    }

    /// Receives a message, as `recv` does, for asyncio and trio. One task at a time.
    #[pyo3(signature = (timeout=None))]
    fn recv_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = arguments::timeout_seconds)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_python(slf.py(), "_recv_async", (slf, timeout))
    }

    /// A descriptor for event loops, which stays this object's: readable when there may be
    /// something to receive. Whenever it is, call `try_recv` until that raises; from then
    /// on it tells of the next message.
    fn readiness_fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        let mut receiver = self.take(py)?;
        let number = receiver.readiness_fd().map(|fd| fd.as_raw_fd());
        number.map_err(|error| receive_error(py, &error))
    }

    /// The descriptor, which tells of what comes after the look that was just taken.
    fn _watch(&self, py: Python<'_>) -> PyResult<RawFd> {
        let mut receiver = self.take(py)?;
        let number = self.readiness.fd(&mut receiver).map(|fd| fd.as_raw_fd());
        number.map_err(|error| receive_error(py, &error))
    }

    /// Notes that a task waits from now on, or no more.
    fn _await(&self, py: Python<'_>, waits: bool) -> PyResult<()> {
        match waits {
            false => self.endpoint.unwatch(),
            true if self.endpoint.watch() => {}
            true => return Err(unavailable(py, Unavailable::Busy, QueueSide::Receiver)),
        }
        Ok(())
    }

    /// Has `ask` called with an error which says that the senders have gone, and the seconds that it
    /// may take, for the exception to raise: of the queue of a child, that may know why.
    fn _ask(&self, ask: Py<PyAny>) {
        self.other_side.set(ask);
    }

    /// Closes it: senders are told so, and what was not received is lost.
    ///
    /// Any thread may call this, any number of times; it returns at once. A call that waits for
    /// a message raises `EndClosed`. If a `View` is out, or a task waits, the queue ends with it.
    fn close(&self) {
        self.endpoint.close();
    }

    #[getter]
    fn closed(&self) -> bool {
        self.endpoint.is_closed()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        // A closed receiver is refused here, before the block runs.
        drop(slf.get().take(slf.py())?);
        Ok(slf)
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

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.endpoint.traverse(&visit)
    }

    fn __clear__(&self) {
        self.endpoint.clear_deferred();
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        // Its end is that of the iteration, whatever has become of the child.
        match self.received(py, Deadline::NEVER) {
            Ok(message) => Ok(Some(message)),
            Err(error) if is_end(py, &error)? => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_python(slf.py(), "_next_async", (slf,))
    }

    fn __repr__(&self) -> &'static str {
        match self.endpoint.is_closed() {
            false => "<procwright.queue.Receiver>",
            true => "<procwright.queue.Receiver, closed>",
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Receiver cannot be pickled, a queue has one: to send to it, pass \
             receiver.invite()",
        ))
    }
}

impl Receiver {
    pub(crate) fn from_result(
        py: Python<'_>,
        made: Result<queue::Receiver, Error>,
    ) -> PyResult<Receiver> {
        let made = made.map_err(|error| receive_error(py, &error))?;
        let waker = made.waker();
        Ok(Receiver {
            endpoint: Arc::new(Endpoint::new(made, Some(waker))),
            readiness: CachedReadiness::default(),
            other_side: OtherSide::default(),
        })
    }

    fn received<'py>(&self, py: Python<'py>, until: Deadline) -> PyResult<Bound<'py, PyBytes>> {
        let receiver = self.take_to_receive(py)?;
        let message = waiting::for_message(py, receiver, until, &self.readiness)?;
        received(py, message, Ok).map(|(bytes, _)| bytes)
    }

    fn received_many<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        until: Deadline,
    ) -> PyResult<Bound<'py, PyList>> {
        let receiver = self.take_to_receive(py)?;
        let messages = PyList::empty(py);
        let mut message = waiting::for_message(py, receiver, until, &self.readiness)?;
        loop {
            let receiver = match received(py, message, |bytes| messages.append(bytes)) {
                Ok(((), receiver)) => receiver,
                Err(error) if messages.is_empty() => return Err(error),
                // Memory has lasted for these messages.
                Err(_) => return Ok(messages),
            };
            if messages.len() >= most {
                return Ok(messages);
            }
            message = match receiver.lend(queue::Receiver::try_recv_view) {
                Ok(next) => next,
                Err((receiver, error)) => {
                    receiver.defer_damage(py, &error);
                    return Ok(messages);
                }
            };
        }
    }

    fn lent(&self, py: Python<'_>, until: Deadline) -> PyResult<Py<View>> {
        let receiver = self.take_owned(py)?;
        receiver.endpoint().raise_deferred(py)?;
        let message = waiting::for_message(py, receiver, until, &self.readiness)?;
        View::new(py, message)
    }

    fn unpickled<'py>(&self, py: Python<'py>, until: Deadline) -> PyResult<Bound<'py, PyAny>> {
        let receiver = self.take_owned(py)?;
        unpickled::recv(py, receiver, until, &self.readiness)
    }

    fn take(&self, py: Python<'_>) -> PyResult<ReceiverGuard<'_>> {
        EndpointGuard::acquire(py, &*self.endpoint)
    }

    /// Takes the receiver for a call that receives, which raises what was deferred.
    fn take_to_receive(&self, py: Python<'_>) -> PyResult<ReceiverGuard<'_>> {
        let receiver = self.take(py)?;
        self.endpoint.raise_deferred(py)?;
        Ok(receiver)
    }

    /// Takes the receiver, to be kept for longer than this object.
    fn take_owned(&self, py: Python<'_>) -> PyResult<OwnedReceiver> {
        EndpointGuard::acquire(py, Arc::clone(&self.endpoint))
    }

    /// Takes the receiver, to be waited for with others. None if it is closed.
    pub(crate) fn take_to_wait(&self, py: Python<'_>) -> PyResult<Option<OwnedReceiver>> {
        match EndpointGuard::try_acquire(Arc::clone(&self.endpoint)) {
            Ok(receiver) => Ok(Some(receiver)),
            Err(Unavailable::Closed) => Ok(None),
            Err(why) => Err(unavailable(py, why, QueueSide::Receiver)),
        }
    }
}

/// Copies a message, calls `keep` with the copy, and then receives the message. On an error
/// of either it is the next message again.
fn received<'py, E, R>(
    py: Python<'py>,
    message: InPlace<E, queue::Receiver>,
    keep: impl FnOnce(Bound<'py, PyBytes>) -> PyResult<R>,
) -> PyResult<(R, EndpointGuard<E, queue::Receiver>)>
where
    E: Deref<Target = Endpoint<queue::Receiver>>,
{
    match copy::bytes(py, &message.message).and_then(keep) {
        Ok(kept) => Ok((kept, message.receive())),
        Err(error) => {
            message.put_back();
            Err(error)
        }
    }
}
