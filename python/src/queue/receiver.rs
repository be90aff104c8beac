//! The side that receives.

use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use procwright::queue::{self, Error, Options, Overflow};
use procwright::time::Timeout;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use pyo3::{PyTraverseError, PyVisit};

use super::door::Door;
use super::end::{Away, End, Use};
use super::errors::{Side, away, failed, is_end};
use super::loan::Loan;
use super::{Invitation, Sender, View, copy, deadline, given, python, unpickled, waiting};

/// Receives what the senders of a queue send, each one's messages in their order.
///
/// Making one makes the queue. `lanes` is how many senders there may be at a time, from 1
/// to 4,096; each has a lane, which takes `first` bytes of memory at first and `limit` at
/// most, and keeps the memory of blocks of up to `keep` bytes when they are empty. Half of
/// `limit` is room for messages that wait, and for one message. The queue is there as long
/// as its receiver is.
///
/// It is for one thread at a time: who comes while another is inside is told `Busy`. As a
/// context manager it is closed in the end; iterating receives until all senders are gone.
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
    end: Arc<End<queue::Receiver>>,
    door: Door,
}

/// A receiver that was taken out, to be kept.
pub(crate) type LentReceiver = Use<Arc<End<queue::Receiver>>, queue::Receiver>;

/// What a new queue is like.
fn shape(lanes: usize, first: usize, limit: usize, keep: usize) -> Options {
    // What no `u32` can be is too many.
    let lanes = u32::try_from(lanes).unwrap_or(u32::MAX);
    Options::new()
        .lanes(lanes)
        .first(first)
        .limit(limit)
        .keep(keep)
}

#[pymethods]
impl Receiver {
    #[new]
    #[pyo3(signature = (*, lanes=64, first=16 << 10, limit=64 << 20, keep=16 << 20))]
    #[pyo3(text_signature = "(*, lanes=64, first=16384, limit=67108864, keep=16777216)")]
    fn new(
        py: Python<'_>,
        #[pyo3(from_py_with = given::lanes)] lanes: usize,
        #[pyo3(from_py_with = given::first)] first: usize,
        #[pyo3(from_py_with = given::limit)] limit: usize,
        #[pyo3(from_py_with = given::keep)] keep: usize,
    ) -> PyResult<Receiver> {
        let options = shape(lanes, first, limit, keep);
        let made = py.detach(|| options.create());
        Receiver::made(py, made)
    }

    /// Receives from the process that has spawned this one with `channel="to_child"`.
    ///
    /// Once: then the descriptors are not inherited any more. Raises `NoParent` if this
    /// process was not spawned so, or it was taken before.
    #[staticmethod]
    #[pyo3(signature = (*, lanes=64, first=16 << 10, limit=64 << 20, keep=16 << 20))]
    #[pyo3(text_signature = "(*, lanes=64, first=16384, limit=67108864, keep=16777216)")]
    fn of_parent(
        py: Python<'_>,
        #[pyo3(from_py_with = given::lanes)] lanes: usize,
        #[pyo3(from_py_with = given::first)] first: usize,
        #[pyo3(from_py_with = given::limit)] limit: usize,
        #[pyo3(from_py_with = given::keep)] keep: usize,
    ) -> PyResult<Receiver> {
        let options = shape(lanes, first, limit, keep);
        let made = py.detach(|| options.of_parent());
        Receiver::made(py, made)
    }

    /// Makes a queue of that name, for this user on this machine: any process of the user's
    /// may send to it, with `Sender.open(name)`.
    ///
    /// If there is one of that name whose receiver has died, and any process still has it,
    /// it is taken over as it is, in the shape that it was made with. A name is 1 to 64 of
    /// the characters A-Z, a-z, 0-9, ".", "_" and "-", and does not begin with a dot. It is
    /// a small file in $PROCWRIGHT_QUEUE_DIR, else in $XDG_RUNTIME_DIR/procwright/queues,
    /// else in /tmp/procwright-UID/queues, which closing the receiver removes. A receiver
    /// with a name never says `Closed`: others may come at any time.
    ///
    /// Raises `NameTaken` if the receiver of that queue lives; otherwise as `Receiver`, and
    /// `OSError` if the directory is not this user's alone.
    #[staticmethod]
    #[pyo3(signature = (name, *, lanes=64, first=16 << 10, limit=64 << 20, keep=16 << 20))]
    #[pyo3(text_signature = "(name, *, lanes=64, first=16384, limit=67108864, keep=16777216)")]
    fn open(
        py: Python<'_>,
        name: &str,
        #[pyo3(from_py_with = given::lanes)] lanes: usize,
        #[pyo3(from_py_with = given::first)] first: usize,
        #[pyo3(from_py_with = given::limit)] limit: usize,
        #[pyo3(from_py_with = given::keep)] keep: usize,
    ) -> PyResult<Receiver> {
        let options = shape(lanes, first, limit, keep);
        let made = py.detach(|| options.open(name));
        Receiver::made(py, made)
    }

    /// Receives in the place of a receiver that has died, from the queue that the
    /// invitation is to. What was not received yet is there, and so are its senders.
    ///
    /// What the dead one had been given and had not received yet, a `View`, is received
    /// again, and nothing else is. The invitation stays good: to send, or to take over
    /// from this receiver in turn.
    ///
    /// Raises `ReceiverAlive` if the queue has a receiver, `Closed` if the last one was not
    /// killed but closed; `InvalidValue`, `WrongVersion`, `Unsupported`, `OSError`.
    #[staticmethod]
    fn take_over(py: Python<'_>, invitation: &Bound<'_, Invitation>) -> PyResult<Receiver> {
        let place = invitation.get().again(py)?;
        let made = py.detach(|| queue::Receiver::take_over(&place));
        Receiver::made(py, made)
    }

    /// A place at this queue for one process, which may have any number of senders: to be
    /// passed to it as an argument, pickled, sent or inherited.
    fn invite(&self, py: Python<'_>) -> PyResult<Invitation> {
        let invited = self.take(py)?.invite();
        invited
            .map(Invitation::of)
            .map_err(|error| told(py, &error))
    }

    /// A sender in this process: see `Sender.attach`.
    #[pyo3(signature = (overflow=Overflow::Block, limit=None))]
    #[pyo3(text_signature = "($self, overflow='block', limit=None)")]
    fn sender(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = given::overflow)] overflow: Overflow,
        #[pyo3(from_py_with = given::maybe_limit)] limit: Option<usize>,
    ) -> PyResult<Sender> {
        let made = self.take(py)?.sender();
        Sender::made(py, made, overflow, limit)
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
        #[pyo3(from_py_with = given::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let used = self.take_next(py)?;
        let message = waiting::for_message(py, used, deadline(timeout), &self.door)?;
        received(py, message, Ok).map(|(bytes, _)| bytes)
    }

    /// Receives a message if there is one, else raises `Empty`, a `queue.Empty`.
    fn try_recv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        match self._look(py)? {
            Some(message) => Ok(message),
            None => Err(told(py, &Error::Empty)),
        }
    }

    fn _look<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self.take_next(py)?.lend(queue::Receiver::try_recv_view) {
            Ok(message) => received(py, message, Ok).map(|(bytes, _)| Some(bytes)),
            Err((_, Error::Empty)) => Ok(None),
            Err((_, error)) => Err(told(py, &error)),
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
        #[pyo3(from_py_with = given::most)] most: usize,
        #[pyo3(from_py_with = given::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyList>> {
        let used = self.take_next(py)?;
        let messages = PyList::empty(py);
        let mut message = waiting::for_message(py, used, deadline(timeout), &self.door)?;
        loop {
            let used = match received(py, message, |bytes| messages.append(bytes)) {
                Ok(((), used)) => used,
                Err(error) if messages.is_empty() => return Err(error),
                // Those that there was memory for.
                Err(_) => return Ok(messages),
            };
            if messages.len() >= most {
                return Ok(messages);
            }
            message = match used.lend(queue::Receiver::try_recv_view) {
                Ok(next) => next,
                Err((used, error)) => {
                    put_off(py, &used, &error);
                    return Ok(messages);
                }
            };
        }
    }

    /// Receives a message without a copy, to be read where it is: a `View`.
    ///
    ///     with receiver.recv_view() as message:
    ///         parse(message)
    ///
    /// In the block it is a `memoryview`. The message is received when the block is left;
    /// until then the receiver is `Busy`. Raises as `recv`.
    #[pyo3(signature = (timeout=None))]
    fn recv_view(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = given::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Py<View>> {
        let used = self.take_along(py)?;
        used.end().tell(py)?;
        let message = waiting::for_message(py, used, deadline(timeout), &self.door)?;
        View::of(py, message)
    }

    /// The same if there is one, else raises `Empty`.
    fn try_recv_view(&self, py: Python<'_>) -> PyResult<Py<View>> {
        let used = self.take_along(py)?;
        used.end().tell(py)?;
        match used.lend(queue::Receiver::try_recv_view) {
            Ok(message) => View::of(py, message),
            Err((_, error)) => Err(told(py, &error)),
        }
    }

    /// An object, for `ObjectReceiver`, with which that is documented.
    fn _recv_object<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = given::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let used = self.take_along(py)?;
        unpickled::recv(py, used, deadline(timeout), &self.door)
    }

    fn _try_recv_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match unpickled::look(py, self.take_along(py)?)? {
            Some(object) => Ok(object),
            None => Err(told(py, &Error::Empty)),
        }
    }

    /// One that may be None, so in a tuple.
    fn _look_object<'py>(&self, py: Python<'py>) -> PyResult<Option<(Bound<'py, PyAny>,)>> {
        let found = unpickled::look(py, self.take_along(py)?)?;
        Ok(found.map(|object| (object,)))
    }

    fn _recv_objects<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = given::most)] most: usize,
        #[pyo3(from_py_with = given::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Bound<'py, PyList>> {
        let used = self.take_along(py)?;
        unpickled::recv_many(py, used, most, deadline(timeout), &self.door)
    }

    /// As `recv`, for asyncio and trio. One task at a time.
    #[pyo3(signature = (timeout=None))]
    fn recv_async<'py>(
        slf: &Bound<'py, Self>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), "_recv_async", (slf, timeout))
    }

    /// A descriptor for event loops, which stays this object's: readable when there may be
    /// something to receive. Whenever it is, call `try_recv` until that raises; from then
    /// on it tells of the next message.
    fn readiness_fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        let mut used = self.take(py)?;
        let number = used.readiness_fd().map(|fd| fd.as_raw_fd());
        number.map_err(|error| told(py, &error))
    }

    /// The descriptor, for who has just looked: it tells of what comes after that look.
    fn _watch(&self, py: Python<'_>) -> PyResult<RawFd> {
        let mut used = self.take(py)?;
        let number = self.door.of(&mut used).map(|fd| fd.as_raw_fd());
        number.map_err(|error| told(py, &error))
    }

    /// Says that a task waits from now on, or that it does no more.
    fn _await(&self, py: Python<'_>, waits: bool) -> PyResult<()> {
        match waits {
            false => self.end.unwatch(),
            true if self.end.watch() => {}
            true => return Err(away(py, Away::Busy, Side::Receiver)),
        }
        Ok(())
    }

    /// Closes it: senders are told so, and what was not received is lost.
    ///
    /// From any thread, any number of times; returns at once. Who waits for a message is
    /// told `EndClosed`. If a `View` is out, or a task waits, the queue ends with it.
    fn close(&self) {
        self.end.close();
    }

    #[getter]
    fn closed(&self) -> bool {
        self.end.is_closed()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        // Or the block would run with nothing to receive from.
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
        self.end.traverse(&visit)
    }

    fn __clear__(&self) {
        self.end.forget();
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self.recv(py, None) {
            Ok(message) => Ok(Some(message)),
            Err(error) if is_end(py, &error)? => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        python(slf.py(), "_next_async", (slf,))
    }

    fn __repr__(&self) -> &'static str {
        match self.end.is_closed() {
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
    pub(crate) fn made(py: Python<'_>, made: Result<queue::Receiver, Error>) -> PyResult<Receiver> {
        let made = made.map_err(|error| told(py, &error))?;
        let waker = made.waker();
        Ok(Receiver {
            end: Arc::new(End::new(made, Some(waker))),
            door: Door::default(),
        })
    }

    fn take(&self, py: Python<'_>) -> PyResult<Use<&End<queue::Receiver>, queue::Receiver>> {
        Use::take(py, &*self.end)
    }

    /// The same, to receive: who does is told what was put off.
    fn take_next(&self, py: Python<'_>) -> PyResult<Use<&End<queue::Receiver>, queue::Receiver>> {
        let used = self.take(py)?;
        self.end.tell(py)?;
        Ok(used)
    }

    /// The same as `take`, to be kept.
    fn take_along(&self, py: Python<'_>) -> PyResult<LentReceiver> {
        Use::take(py, Arc::clone(&self.end))
    }

    /// The same, to be waited for with others; none if it is closed.
    pub(crate) fn to_wait_for(&self, py: Python<'_>) -> PyResult<Option<LentReceiver>> {
        match Use::of(Arc::clone(&self.end)) {
            Ok(used) => Ok(Some(used)),
            Err(Away::Closed) => Ok(None),
            Err(why) => Err(away(py, why, Side::Receiver)),
        }
    }
}

/// Copies a message into what `keep` makes of that, and receives it. Without memory for
/// it, it is the next message again.
fn received<'py, E, R>(
    py: Python<'py>,
    message: Loan<E, queue::Receiver>,
    keep: impl FnOnce(Bound<'py, PyBytes>) -> PyResult<R>,
) -> PyResult<(R, Use<E, queue::Receiver>)>
where
    E: Deref<Target = End<queue::Receiver>>,
{
    match copy::bytes(py, &message.lent).and_then(keep) {
        Ok(kept) => Ok((kept, message.receive())),
        Err(error) => {
            message.put_back();
            Err(error)
        }
    }
}

/// A call that has something to give back has met that. Damage it would not meet again.
pub(super) fn put_off<E>(py: Python<'_>, used: &Use<E, queue::Receiver>, error: &Error)
where
    E: Deref<Target = End<queue::Receiver>>,
{
    if let Error::Damaged { .. } = error {
        used.end().put_off(py, told(py, error));
    }
}

pub(super) fn told(py: Python<'_>, error: &Error) -> PyErr {
    failed(py, error, Side::Receiver)
}
