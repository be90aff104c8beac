//! Waiting for a message and for room: without the interpreter lock, and on the main
//! thread with signals.

use std::cell::Cell;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use procwright::queue::{self, Error};
use procwright::time::{Deadline, Timeout};
use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::door::Door;
use super::end::{Away, End, Use};
use super::errors::{Side, away, failed};
use super::loan::Loan;
use crate::errors::refused;
use crate::signals::{Bell, Signals};
use crate::stream::Watcher;

/// For so long a receiver sleeps on its word, out of which nothing but a message gets
/// it. Then it does on descriptors, for which a sender takes a little longer: of those
/// a signal and a `close` have one, too. The core does the same with its own sleeps.
const NAP: Duration = Duration::from_millis(10);

type Found<E> = PyResult<Loan<E, queue::Receiver>>;

/// The next message.
///
/// # Errors
/// Those of `recv`, what a signal handler raises, and that it was closed meanwhile.
pub(super) fn for_message<E>(
    py: Python<'_>,
    used: Use<E, queue::Receiver>,
    deadline: Deadline,
    door: &Door,
) -> Found<E>
where
    E: Deref<Target = End<queue::Receiver>> + Send,
{
    // Mostly one is there already, and to give the lock back costs more than to look.
    let used = match used.lend(|receiver| receiver.recv_view_timeout(Duration::ZERO)) {
        Err((used, Error::TimedOut)) if !deadline.reached(Instant::now()) => used,
        found => return told(py, found),
    };
    let nap = deadline.min(Deadline::at(Instant::now() + NAP));
    let found = py.detach(|| used.lend(|receiver| receiver.recv_view_timeout(left(nap))));
    let used = match found {
        Err((used, Error::TimedOut)) => used,
        found => return told(py, found),
    };
    if !Watcher::is_possible() {
        return on_descriptors(py, used, deadline, door, None);
    }
    let kept = Cell::new(Some(used));
    let waited = Bell::with_kept(|bell| {
        let Some(mut signals) = Signals::lend(py, bell)? else {
            return Ok(None);
        };
        let found = kept.take().map(|used| {
            let heard = Some((&mut signals, bell));
            on_descriptors(py, used, deadline, door, heard)
        });
        signals.restore(py);
        found.transpose()
    });
    let waited = waited.map_err(|error| refused(py, &error))??;
    match (waited, kept.into_inner()) {
        (Some(found), _) => Ok(found),
        (None, Some(used)) => {
            // No handlers run on this thread.
            Watcher::is_not();
            Bell::keep_none();
            on_descriptors(py, used, deadline, door, None)
        }
        (None, None) => Err(away(py, Away::Busy, Side::Receiver)),
    }
}

/// The same, once it is worth it to sleep for longer.
fn on_descriptors<E>(
    py: Python<'_>,
    mut used: Use<E, queue::Receiver>,
    deadline: Deadline,
    door: &Door,
    mut heard: Option<(&mut Signals, &Arc<Bell>)>,
) -> Found<E>
where
    E: Deref<Target = End<queue::Receiver>> + Send,
{
    // Before the first look: it then tells of what comes after that.
    let watched = door.of(&mut used).map(drop);
    watched.map_err(|error| failed(py, &error, Side::Receiver))?;
    loop {
        // From here on the next message makes the descriptor readable, and so does a
        // close: a ring for one that was heard by this look is seen behind it.
        used = match used.lend(queue::Receiver::try_recv_view) {
            Err((used, Error::Empty)) => used,
            found => return told(py, found),
        };
        if used.is_closed() {
            return Err(away(py, Away::Closed, Side::Receiver));
        }
        if deadline.reached(Instant::now()) {
            return Err(failed(py, &Error::TimedOut, Side::Receiver));
        }
        let message = door.of(&mut used);
        let message = message.map_err(|error| failed(py, &error, Side::Receiver))?;
        let bell = heard.as_ref().map(|(_, bell)| bell.as_fd());
        let watched = [Some(message), bell];
        let interrupted = py.detach(|| sleep(&watched, deadline));
        if interrupted && let Some((signals, _)) = &mut heard {
            signals.run_handlers()?;
        }
    }
}

/// Until one of them is readable. Whether it may have been the last, or a signal.
fn sleep(descriptors: &[Option<BorrowedFd<'_>>], deadline: Deadline) -> bool {
    let watched = descriptors.iter().flatten();
    let mut watched: Vec<_> = watched
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let left = deadline.remaining(Instant::now());
    // So long that it does not fit is for ever.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    match poll(&mut watched, left.as_ref()) {
        Err(error) => error == Errno::INTR,
        Ok(_) => {
            watched.len() == descriptors.len() && !watched[watched.len() - 1].revents().is_empty()
        }
    }
}

fn told<E>(
    py: Python<'_>,
    found: Result<Loan<E, queue::Receiver>, (Use<E, queue::Receiver>, Error)>,
) -> Found<E>
where
    E: Deref<Target = End<queue::Receiver>>,
{
    found.map_err(|(_, error)| failed(py, &error, Side::Receiver))
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
    let told = |error: Error| failed(py, &error, Side::Sender);
    if Watcher::is_possible() {
        let waited = Bell::with_kept(|bell| {
            let Some(mut signals) = Signals::lend(py, bell)? else {
                return Ok(false);
            };
            let has_rung = || sleep(&[Some(bell.as_fd())], Deadline::at(Instant::now()));
            let room = loop {
                let waited =
                    py.detach(|| sender.wait_for_room(length, left(deadline), || !has_rung()));
                match waited {
                    Ok(false) => {
                        if let Err(raised) = signals.run_handlers() {
                            break Err(raised);
                        }
                    }
                    Ok(true) => break Ok(true),
                    Err(error) => break Err(told(error)),
                }
            };
            signals.restore(py);
            room
        });
        if waited.map_err(|error| refused(py, &error))?? {
            return Ok(());
        }
        Watcher::is_not();
        Bell::keep_none();
    }
    let waited = py.detach(|| sender.wait_for_room(length, left(deadline), || true));
    waited.map(drop).map_err(told)
}

/// The time until then.
pub(super) fn left(deadline: Deadline) -> Timeout {
    let left = deadline.remaining(Instant::now());
    left.map_or(Timeout::NEVER, Timeout::from)
}
