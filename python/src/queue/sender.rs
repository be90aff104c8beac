//! The sending side.

use std::sync::Arc;
use std::time::{Duration, Instant};

use procwright::queue::{self, Error, Overflow};
use procwright::time::{Deadline, Timeout};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::endpoint::Endpoint;
use super::errors::send_error;
use super::guard::EndpointGuard;
use super::message_bytes::MessageBytes;
use super::other_side::OtherSide;
use super::pickled::Pickled;
use super::waiting::deadline;
use super::{Invitation, Reservation, arguments, copy, waiting};

/// Sends messages to a queue's receiver.
///
/// `Sender.attach(invitation)` and `receiver.sender()` make one. What one sender sends is
/// received in that order; between senders there is no order, and none waits for another.
/// What was sent is received, even if this process is killed then.
///
/// One thread at a time may use it: a call that comes while another is inside raises `Busy`;
/// `clone()` makes another sender for another thread. As a context manager it is closed in
/// the end.
#[pyclass(module = "procwright.queue", frozen, weakref)]
pub(crate) struct Sender {
    endpoint: Arc<Endpoint<queue::Sender>>,
    overflow: Overflow,
    limit: Option<usize>,
    other_side: OtherSide,
}

#[pymethods]
impl Sender {
    /// Takes a place at a queue, with an `Invitation`, which is used up if that succeeds.
    ///
    /// `overflow` is what happens to a message that finds no room when its lane may not
    /// grow further: "block", `send` waits; "fail", it raises `Full`; "drop_newest", the
    /// message is thrown away and counted in `dropped`. With a `limit` this lane grows no
    /// further than to blocks of so many bytes.
    ///
    /// Waits at most `wait` seconds for a lane, None for ever; signal handlers run as usual.
    ///
    /// Raises `NoLane` if all lanes are taken, and `TimedOut` if they still are after a wait;
    /// `ReceiverDead`, an `OSError` with EOWNERDEAD; `Closed`; `WrongVersion`, `InvalidValue`,
    /// `Unsupported`.
    #[staticmethod]
    #[pyo3(signature = (invitation, overflow=Overflow::Block, limit=None, *, wait=NO_WAIT))]
    #[pyo3(text_signature = "(invitation, overflow='block', limit=None, *, wait=0.0)")]
    fn attach(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::invitation)] invitation: Bound<'_, Invitation>,
        #[pyo3(from_py_with = arguments::overflow)] overflow: Overflow,
        #[pyo3(from_py_with = arguments::maybe_limit)] limit: Option<usize>,
        #[pyo3(from_py_with = arguments::wait)] wait: Option<Timeout>,
    ) -> PyResult<Sender> {
        let place = invitation.get().duplicated(py)?;
        let made = match waits_for_place(wait) {
            false => py.detach(|| queue::Sender::attach(place)),
            true => {
                let opening = py.detach(|| queue::Opening::invited(place));
                waiting::for_place(py, opening, deadline(wait))?
            }
        };
        let sender = Sender::from_result(py, made, overflow, limit)?;
        invitation.get().use_up();
        Ok(sender)
    }

    /// Takes a place at the queue of that name, which `Receiver.open(name)` has made.
    ///
    /// Waits at most `wait` seconds until there is one and it has a lane, None for ever; signal
    /// handlers run as usual.
    ///
    /// Raises `NoQueue`, a `FileNotFoundError`, if there is none: it names the directory where
    /// it looked. After a wait in vain `TimedOut`, which says what there was not. Otherwise
    /// raises as `attach`.
    #[staticmethod]
    #[pyo3(signature = (name, overflow=Overflow::Block, limit=None, *, wait=NO_WAIT))]
    #[pyo3(text_signature = "(name, overflow='block', limit=None, *, wait=0.0)")]
    fn open(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::name)] name: String,
        #[pyo3(from_py_with = arguments::overflow)] overflow: Overflow,
        #[pyo3(from_py_with = arguments::maybe_limit)] limit: Option<usize>,
        #[pyo3(from_py_with = arguments::wait)] wait: Option<Timeout>,
    ) -> PyResult<Sender> {
        let made = match waits_for_place(wait) {
            false => py.detach(|| queue::Sender::open(&name)),
            true => waiting::for_place(py, queue::Opening::named(&name), deadline(wait))?,
        };
        Sender::from_result(py, made, overflow, limit)
    }

    /// Sends to the process that has spawned this one with `channel="from_child"`.
    ///
    /// Once: then the descriptors are not inherited any more; make more with `clone()`.
    /// Raises `NoParent` if this process was not spawned so, or it was taken before;
    /// otherwise as `attach`.
    #[staticmethod]
    #[pyo3(signature = (overflow=Overflow::Block, limit=None))]
    #[pyo3(text_signature = "(overflow='block', limit=None)")]
    fn of_parent(
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::overflow)] overflow: Overflow,
        #[pyo3(from_py_with = arguments::maybe_limit)] limit: Option<usize>,
    ) -> PyResult<Sender> {
        let made = py.detach(queue::Sender::of_parent);
        Sender::from_result(py, made, overflow, limit)
    }

    /// Sends a message: bytes, or what has a buffer in one piece, such as a bytearray, an
    /// array or a memoryview.
    ///
    /// The policy `overflow` says what happens if there is no room; with a timeout it waits for
    /// so many seconds in any case, and raises `TimedOut`, which is a `TimeoutError` and a
    /// `queue.Full` of the standard library. Signal handlers run as usual.
    ///
    /// Raises `ReceiverDead`, an `OSError` with EOWNERDEAD; `Closed`, a `BrokenPipeError`,
    /// if the receiver was closed; `TooLarge`, `Full`, `Damaged`, `Busy`, `EndClosed`,
    /// `Forked`, and `OSError` when there is no memory. Then nothing was sent.
    #[pyo3(signature = (data, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<()> {
        let data = MessageBytes::from_object("data", data)?;
        let until = self.waits_until(timeout);
        let sent = self.send_bytes(py, data.as_slice(), until);
        self.told(py, sent, until)
    }

    /// Sends a message if there is room now, whatever is to happen otherwise; else raises
    /// `Full`, a `queue.Full`.
    fn try_send(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = MessageBytes::from_object("data", data)?;
        let sent = send_now(py, &mut *self.take(py)?, data.as_slice());
        match self.other_side.told_at_once(py, sent)? {
            true => Ok(()),
            false => Err(send_error(py, &Error::Full)),
        }
    }

    /// Sends many at the price of one, and says how many were sent: fewer than there are
    /// if some were thrown away.
    ///
    /// Raises as `send`. Messages before the one that failed were sent: how many is in
    /// the attribute `sent` of the exception.
    fn send_many(&self, py: Python<'_>, messages: &Bound<'_, PyAny>) -> PyResult<usize> {
        let messages = arguments::items("messages", messages, "pass a list of messages")?;
        let messages = messages.iter().enumerate().map(|(place, message)| {
            MessageBytes::from_object(&format!("messages[{place}]"), message)
        });
        let messages: Vec<MessageBytes<'_>> = messages.collect::<PyResult<_>>()?;
        let slices: Vec<&[u8]> = messages.iter().map(MessageBytes::as_slice).collect();
        let mut sender = self.take(py)?;
        let (sent, result) = self.send_all(py, &mut sender, &slices);
        match result {
            Ok(()) => Ok(sent),
            Err(error) => {
                drop(sender);
                error.value(py).setattr("sent", sent)?;
                self.told(py, Err(error), self.waits_until(None))
            }
        }
    }

    /// Room for a message of `length` bytes, to be made in place, without a copy: a
    /// `Reservation`.
    ///
    ///     with sender.reserve(1024) as message:
    ///         message[:] = ...
    ///
    /// The message is a `memoryview` in the block, and is sent when the block is left; if an
    /// exception leaves it, nothing is sent. Raises as `send`, and `Full` also under
    /// "drop_newest".
    #[pyo3(signature = (length, timeout=None))]
    fn reserve(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::length)] length: usize,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Timeout>,
    ) -> PyResult<Reservation> {
        let until = self.waits_until(timeout);
        self.told(py, self.reserved(py, length, until), until)
    }

    /// Sends an object. With `waits` false, only if there is room now.
    fn _send_object(
        &self,
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::timeout)] timeout: Option<Timeout>,
        waits: bool,
    ) -> PyResult<()> {
        let until = self.waits_until(timeout);
        let sent = self.send_pickled(py, object, until, waits);
        self.told(py, sent, until.filter(|_| waits))
    }

    /// Another one for the same queue, in this process: for another thread.
    ///
    /// Waits at most `wait` seconds for a lane, None for ever. Raises as `attach`.
    #[pyo3(signature = (overflow=None, *, wait=NO_WAIT))]
    #[pyo3(text_signature = "($self, overflow=None, *, wait=0.0)")]
    fn clone(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = arguments::maybe_overflow)] overflow: Option<Overflow>,
        #[pyo3(from_py_with = arguments::wait)] wait: Option<Timeout>,
    ) -> PyResult<Sender> {
        let made = match waits_for_place(wait) {
            false => self.take(py)?.try_clone(),
            true => {
                // Not taken during the wait: the thread that has it may go on sending.
                let opening = queue::Opening::beside(&*self.take(py)?);
                waiting::for_place(py, opening, deadline(wait))?
            }
        };
        let mut made =
            Sender::from_result(py, made, overflow.unwrap_or(self.overflow), self.limit)?;
        made.other_side = self.other_side.shared(py);
        Ok(made)
    }

    /// Has `ask` called with an error which says that the receiver has gone, and the seconds that it
    /// may take, for the exception to raise: of the queue of a child, that may know why.
    fn _ask(&self, ask: Py<PyAny>) {
        self.other_side.set(ask);
    }

    /// How many messages were thrown away under "drop_newest".
    #[getter]
    fn dropped(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.take(py)?.dropped())
    }

    /// The policy for a message that finds no room.
    #[getter]
    fn overflow(&self) -> &'static str {
        let known = arguments::OVERFLOWS
            .iter()
            .find(|(_, known)| *known == self.overflow);
        known.map_or("other", |(name, _)| name)
    }

    /// Closes it: what was sent will be received. From any thread, any number of times;
    /// if a call is inside, or a `Reservation` is out, once that is over.
    fn close(&self) {
        self.endpoint.close();
    }

    #[getter]
    fn closed(&self) -> bool {
        self.endpoint.is_closed()
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        // A closed sender is refused here, before the block runs.
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

    fn __repr__(&self) -> &'static str {
        match self.endpoint.is_closed() {
            false => "<procwright.queue.Sender>",
            true => "<procwright.queue.Sender, closed>",
        }
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Sender cannot be pickled, its lane is this process's: pass receiver.invite()",
        ))
    }
}

impl Sender {
    pub(crate) fn from_result(
        py: Python<'_>,
        made: Result<queue::Sender, Error>,
        overflow: Overflow,
        limit: Option<usize>,
    ) -> PyResult<Sender> {
        let mut sender = made.map_err(|error| send_error(py, &error))?;
        sender.set_overflow(overflow);
        if let Some(limit) = limit {
            sender.set_limit(limit);
        }
        Ok(Sender {
            endpoint: Arc::new(Endpoint::new(sender, None)),
            overflow,
            limit,
            other_side: OtherSide::default(),
        })
    }

    fn send_bytes(&self, py: Python<'_>, message: &[u8], until: Option<Deadline>) -> PyResult<()> {
        let mut sender = self.take(py)?;
        if let Some(until) = until.filter(|_| message.len() >= copy::LONG) {
            wait_for_room(py, &mut sender, message.len(), until)?;
        }
        if !send_now(py, &mut sender, message)? {
            send_overflowing(py, &mut sender, message, until)?;
        }
        Ok(())
    }

    fn send_pickled(
        &self,
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        until: Option<Deadline>,
        waits: bool,
    ) -> PyResult<()> {
        // Pickling goes first, before the sender is taken: code in it may send, too.
        let message = Pickled::new(object)?;
        let mut sender = self.take(py)?;
        if let Some(short) = message.short() {
            return match send_now(py, &mut sender, &short)? {
                true => Ok(()),
                false if waits => send_overflowing(py, &mut sender, &short, until),
                false => Err(send_error(py, &Error::Full)),
            };
        }
        let length = message.len();
        if !waits {
            let none = sender.wait_for_room(length, Duration::ZERO, || true);
            let none = none.map_err(|error| match error {
                Error::TimedOut => Error::Full,
                error => error,
            });
            none.map_err(|error| send_error(py, &error))?;
        } else if let Some(until) = until {
            wait_for_room(py, &mut sender, length, until)?;
        }
        let parts = message.parts();
        let mut join = || {
            let mut place = sender.reserve(length)?;
            let mut rest = &mut *place;
            for part in &parts {
                let (here, behind) = rest.split_at_mut(part.len());
                here.copy_from_slice(part);
                rest = behind;
            }
            place.commit();
            Ok(())
        };
        let joined = match length < copy::LONG {
            true => join(),
            false => py.detach(join),
        };
        match joined {
            // The core has counted it.
            Err(Error::Full) if self.overflow == Overflow::DropNewest => Ok(()),
            joined => joined.map_err(|error| send_error(py, &error)),
        }
    }

    fn reserved(
        &self,
        py: Python<'_>,
        length: usize,
        until: Option<Deadline>,
    ) -> PyResult<Reservation> {
        let mut sender = EndpointGuard::acquire(py, Arc::clone(&self.endpoint))?;
        if let Some(until) = until {
            wait_for_room(py, &mut sender, length, until)?;
        }
        match sender.lend(|sender| sender.reserve(length)) {
            Ok(message) => Ok(Reservation::new(message)),
            Err((_, error)) => Err(send_error(py, &error)),
        }
    }

    fn take(
        &self,
        py: Python<'_>,
    ) -> PyResult<EndpointGuard<&Endpoint<queue::Sender>, queue::Sender>> {
        EndpointGuard::acquire(py, &*self.endpoint)
    }

    /// Until when a call waits for room, None if it does not.
    fn waits_until(&self, timeout: Option<Timeout>) -> Option<Deadline> {
        match (timeout, self.overflow) {
            (None, Overflow::Block) => Some(Deadline::NEVER),
            (None, _) => None,
            (timeout, _) => Some(deadline(timeout)),
        }
    }

    /// The result of a call that waits so long, with why the receiver has gone.
    fn told<T>(&self, py: Python<'_>, result: PyResult<T>, until: Option<Deadline>) -> PyResult<T> {
        match until {
            Some(until) => self.other_side.told(py, result, until),
            None => self.other_side.told_at_once(py, result),
        }
    }

    /// The number of messages sent, and the error of the next one.
    fn send_all(
        &self,
        py: Python<'_>,
        sender: &mut queue::Sender,
        messages: &[&[u8]],
    ) -> (usize, PyResult<()>) {
        let dropped = sender.dropped();
        let mut at = 0;
        while at < messages.len() {
            let mut taken = 0;
            // Under "block" the wait is here, where signals are heard.
            if self.overflow == Overflow::Block {
                sender.set_overflow(Overflow::Fail);
            }
            let many = messages[at..].iter().map(|message| {
                taken += 1;
                *message
            });
            let result = py.detach(|| sender.send_many(many));
            sender.set_overflow(self.overflow);
            let Err(error) = result else {
                at = messages.len();
                break;
            };
            // The last message that the core took was not sent.
            at += taken - 1;
            let waited = match error {
                Error::Full if self.overflow == Overflow::Block => {
                    waiting::for_room(py, sender, messages[at].len(), Deadline::NEVER)
                }
                error => Err(send_error(py, &error)),
            };
            if let Err(error) = waited {
                return (at - (sender.dropped() - dropped) as usize, Err(error));
            }
        }
        (at - (sender.dropped() - dropped) as usize, Ok(()))
    }
}

/// A call that does not wait for a place at a queue.
const NO_WAIT: Option<Timeout> = Some(Timeout::after(Duration::ZERO));

fn waits_for_place(wait: Option<Timeout>) -> bool {
    !wait.is_some_and(Timeout::has_expired)
}

/// Sends the message if there is room now; whether there was.
fn send_now(py: Python<'_>, sender: &mut queue::Sender, message: &[u8]) -> PyResult<bool> {
    let sent = match message.len() < copy::LONG {
        true => sender.try_send(message),
        false => py.detach(|| sender.try_send(message)),
    };
    match sent {
        Ok(()) => Ok(true),
        Err(Error::Full) => Ok(false),
        Err(error) => Err(send_error(py, &error)),
    }
}

/// Sends a message for which there was no room, after a wait until then, or without one as the
/// policy says.
fn send_overflowing(
    py: Python<'_>,
    sender: &mut queue::Sender,
    message: &[u8],
    until: Option<Deadline>,
) -> PyResult<()> {
    let Some(until) = until else {
        return sender.send(message).map_err(|error| send_error(py, &error));
    };
    wait_for_room(py, sender, message.len(), until)?;
    match send_now(py, sender, message)? {
        true => Ok(()),
        false => Err(send_error(py, &Error::Full)),
    }
}

/// Waits for room, mostly not at all.
fn wait_for_room(
    py: Python<'_>,
    sender: &mut queue::Sender,
    length: usize,
    deadline: Deadline,
) -> PyResult<()> {
    let first = match length < copy::LONG {
        true => sender.wait_for_room(length, Duration::ZERO, || true),
        // A call that may wait is more patient with a long message before it takes memory for
        // it. The lock is not held meanwhile: the receiver may be another thread of ours.
        false => {
            let moment = deadline.min(Deadline::at(Instant::now() + MOMENT));
            py.detach(|| sender.wait_for_room(length, waiting::left(moment), || true))
        }
    };
    match first {
        Ok(_) => Ok(()),
        Err(Error::TimedOut) => waiting::for_room(py, sender, length, deadline),
        Err(error) => Err(send_error(py, &error)),
    }
}

/// The time for which no signal is heard.
const MOMENT: Duration = Duration::from_millis(1);
