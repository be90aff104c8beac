//! Waiting for a message and for room: without the interpreter lock, and on the main
//! thread with signals.

use std::cell::Cell;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use procwright::queue::{self, Error};
use procwright::time::{Deadline, Timeout};
use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::endpoint::Endpoint;
use super::errors::{QueueSide, Unavailable, receive_error, send_error, unavailable};
use super::guard::{EndpointGuard, InPlace};
use super::readiness::CachedReadiness;
use crate::errors::refused;
use crate::signals::{WakePipe, WakeupFd, on_main_thread};

/// The time for which a receiver sleeps on its word, out of which nothing but a message
/// gets it. Then it sleeps on descriptors, for which a sender takes a little longer: a
/// signal and a `close` have one, too. The core does the same with its own sleeps.
const NAP: Duration = Duration::from_millis(10);

type FoundMessage<E> = PyResult<InPlace<E, queue::Receiver>>;

/// The next message.
///
/// # Errors
/// Those of `recv`, what a signal handler raises, and that it was closed meanwhile.
pub(super) fn for_message<E>(
    py: Python<'_>,
    receiver: EndpointGuard<E, queue::Receiver>,
    deadline: Deadline,
    readiness: &CachedReadiness,
) -> FoundMessage<E>
where
    E: Deref<Target = Endpoint<queue::Receiver>> + Send,
{
    // Mostly one is there already, and to give the lock back costs more than to look.
    let receiver = match receiver.lend(|receiver| receiver.recv_view_timeout(Duration::ZERO)) {
        Err((receiver, Error::TimedOut)) if !deadline.reached(Instant::now()) => receiver,
        found => return raised(py, found),
    };
    let nap = deadline.min(Deadline::at(Instant::now() + NAP));
    let found = py.detach(|| receiver.lend(|receiver| receiver.recv_view_timeout(left(nap))));
    let receiver = match found {
        Err((receiver, Error::TimedOut)) => receiver,
        found => return raised(py, found),
    };
    let kept = Cell::new(Some(receiver));
    let waited = on_main_thread(
        py,
        |error| refused(py, &error),
        |wakeup, pipe| {
            let receiver = kept.take();
            let receiver =
                receiver.ok_or_else(|| unavailable(py, Unavailable::Busy, QueueSide::Receiver))?;
            on_descriptors(py, receiver, deadline, readiness, Some((wakeup, pipe)))
        },
    )?;
    match (waited, kept.into_inner()) {
        (Some(found), _) => Ok(found),
        // Handlers do not run on this thread.
        (None, Some(receiver)) => on_descriptors(py, receiver, deadline, readiness, None),
        (None, None) => Err(unavailable(py, Unavailable::Busy, QueueSide::Receiver)),
    }
}

/// The next message, for which it is worth it to sleep for longer.
fn on_descriptors<E>(
    py: Python<'_>,
    mut receiver: EndpointGuard<E, queue::Receiver>,
    deadline: Deadline,
    readiness: &CachedReadiness,
    mut signals: Option<(&mut WakeupFd, &WakePipe)>,
) -> FoundMessage<E>
where
    E: Deref<Target = Endpoint<queue::Receiver>> + Send,
{
    // The descriptor is asked for before the first look, and tells of what comes after that.
    let watched = readiness.fd(&mut receiver).map(drop);
    watched.map_err(|error| receive_error(py, &error))?;
    loop {
        // 1. This look finds nothing. From here on the next message makes the descriptor
        //    readable, and so does a close.
        // 2. A close that came before may have been taken in by this look: so it is asked
        //    for behind it.
        receiver = match receiver.lend(queue::Receiver::try_recv_view) {
            Err((receiver, Error::Empty)) => receiver,
            found => return raised(py, found),
        };
        if receiver.is_closed() {
            return Err(unavailable(py, Unavailable::Closed, QueueSide::Receiver));
        }
        if deadline.reached(Instant::now()) {
            return Err(receive_error(py, &Error::TimedOut));
        }
        let message = readiness.fd(&mut receiver);
        let message = message.map_err(|error| receive_error(py, &error))?;
        let signal = signals.as_ref().map(|(_, pipe)| pipe.as_fd());
        let watched = [Some(message), signal];
        let interrupted = py.detach(|| sleep(&watched, deadline));
        if interrupted && let Some((wakeup, _)) = &mut signals {
            wakeup.run_handlers()?;
        }
    }
}

/// Sleeps until one of them is readable. Whether the last one is, or a signal came.
fn sleep(descriptors: &[Option<BorrowedFd<'_>>], deadline: Deadline) -> bool {
    let watched = descriptors.iter().flatten();
    let mut watched: Vec<_> = watched
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let left = deadline.remaining(Instant::now());
    // A time too long for a `timespec` is no limit.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut watched, left.as_ref()) {
        Err(error) => error == Errno::INTR,
        Ok(_) => {
            watched.len() == descriptors.len() && !watched[watched.len() - 1].revents().is_empty()
        }
    }
}

/// The message, or the exception for the error.
fn raised<E>(
    py: Python<'_>,
    found: Result<InPlace<E, queue::Receiver>, (EndpointGuard<E, queue::Receiver>, Error)>,
) -> FoundMessage<E>
where
    E: Deref<Target = Endpoint<queue::Receiver>>,
{
    found.map_err(|(_, error)| receive_error(py, &error))
}

/// Waits until there is room for a message of `length` bytes.
///
/// # Errors
/// Those of `send`, and what a signal handler raises.
pub(super) fn for_room(
    py: Python<'_>,
    sender: &mut queue::Sender,
    length: usize,
    deadline: Deadline,
) -> PyResult<()> {
    let waited = on_main_thread(
        py,
        |error| refused(py, &error),
        |wakeup, pipe| {
            let has_signal = || sleep(&[Some(pipe.as_fd())], Deadline::at(Instant::now()));
            loop {
                let waited =
                    py.detach(|| sender.wait_for_room(length, left(deadline), || !has_signal()));
                match waited {
                    Ok(false) => wakeup.run_handlers()?,
                    Ok(true) => return Ok(()),
                    Err(error) => return Err(send_error(py, &error)),
                }
            }
        },
    )?;
    if waited.is_some() {
        return Ok(());
    }
    let waited = py.detach(|| sender.wait_for_room(length, left(deadline), || true));
    waited.map(drop).map_err(|error| send_error(py, &error))
}

/// Waits for a place at a queue: until there is one of that name, and a lane is free.
///
/// # Errors
/// What a signal handler raises; the inner one is that of the queue.
pub(super) fn for_place(
    py: Python<'_>,
    opening: Result<queue::Opening, Error>,
    deadline: Deadline,
) -> PyResult<Result<queue::Sender, Error>> {
    let mut opening = match opening {
        Ok(opening) => opening,
        Err(error) => return Ok(Err(error)),
    };
    let waited = on_main_thread(
        py,
        |error| refused(py, &error),
        |wakeup, pipe| {
            let has_signal = || sleep(&[Some(pipe.as_fd())], Deadline::at(Instant::now()));
            loop {
                match py.detach(|| opening.wait(left(deadline), || !has_signal())) {
                    Ok(None) => wakeup.run_handlers()?,
                    Ok(Some(sender)) => return Ok(Ok(sender)),
                    Err(error) => return Ok(Err(error)),
                }
            }
        },
    )?;
    if let Some(waited) = waited {
        return Ok(waited);
    }
    // Handlers do not run on this thread.
    loop {
        match py.detach(|| opening.wait(left(deadline), || true)) {
            Ok(None) => {}
            Ok(Some(sender)) => return Ok(Ok(sender)),
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// The time that is left.
pub(super) fn left(deadline: Deadline) -> Timeout {
    let left = deadline.remaining(Instant::now());
    left.map_or(Timeout::NEVER, Timeout::from)
}

/// The deadline of a timeout that starts now.
pub(super) fn deadline(timeout: Option<Timeout>) -> Deadline {
    timeout.unwrap_or(Timeout::NEVER).starting(Instant::now())
}
