//! A sender's way to the receiver's ear.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ground::Ground;
use super::page::Page;
use super::pause;
use crate::liveness::Holder;
use crate::queue::Error;
use crate::queue::format::READER_LOCK;
use crate::sys::fork::Kept;
use crate::sys::rendezvous::{self, Name};
use crate::sys::{proc, shared};

/// One link.
#[derive(Debug)]
pub(super) struct Link {
    end: Kept,
    /// Of the receiver at its other end: where it is to be had. All 0 if that is
    /// nowhere.
    name: Name,
}

/// The link of a process, which changes when another receiver takes over.
#[derive(Debug)]
pub(super) struct Links {
    now: Mutex<Arc<Link>>,
    /// Of the process, as a guest of the queue.
    number: u32,
}

impl Link {
    /// One that came with an invitation: it is to the receiver that is there now, or
    /// to one before it.
    pub(super) fn invited(end: OwnedFd, ground: &Ground) -> Link {
        let page = Page::read(&ground.receivers);
        let name = match page {
            // Who dies lets go of one descriptor after the other. So it is not enough
            // to look whether the other end is open: another may have taken over.
            Ok(Some(page)) if is_of(end.as_fd(), &page.holder) => page.name,
            _ => Name::default(),
        };
        let end = Kept::new(end);
        Link { end, name }
    }

    /// A new one to the receiver that says that it is there. It has been rung then.
    ///
    /// # Errors
    /// [`Error::ReceiverDead`] if nobody is.
    fn to_receiver(ground: &Ground, number: u32) -> Result<Link, Error> {
        let page = match Page::read(&ground.receivers)? {
            Some(page) if page.is_closed => return Err(Error::Closed),
            Some(page) => page,
            // Whoever was killed there, or is just taking over.
            None => return Err(Error::ReceiverDead),
        };
        let made = rendezvous::connect(&page.name)
            .and_then(|end| rendezvous::introduce(end.as_fd(), number).map(|()| end));
        let end = made.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::BrokenPipe => Error::ReceiverDead,
            // Whoever it is has taken the name of one who is gone.
            io::ErrorKind::PermissionDenied if !page.is_held(ground) => Error::ReceiverDead,
            io::ErrorKind::WouldBlock => Error::Io(io::Error::new(
                error.kind(),
                "too many have come to the queue since its receiver received anything",
            )),
            _ => Error::of(error),
        })?;
        Ok(Link {
            end: Kept::new(end),
            name: page.name,
        })
    }

    /// Whether it is to another receiver than that which the page is of. Who has no
    /// name is the first one.
    pub(super) fn is_to_another(&self, page: &Page) -> bool {
        self.name != page.name
    }

    fn is_to(&self, page: &Page) -> bool {
        !self.is_to_another(page) && !self.is_abandoned()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        // In a fork it is not there, which who asks has seen before.
        self.end.get().is_ok_and(shared::is_abandoned)
    }

    /// Says whether anybody is there. No signal comes of it.
    fn ring(&self) -> bool {
        self.end.get().is_ok_and(shared::ring)
    }
}

/// How often it is looked at a page that is being written, a millisecond apart.
const LOOKS: u32 = 100;

/// Gives who is saying that it receives the time to finish: it lives, and something else
/// has its processor. *Not where one sends already*: whoever is stopped there must not
/// hold up who has other things to do.
fn let_finish(ground: &Ground) -> io::Result<()> {
    for _ in 0..LOOKS {
        let is_being_written = matches!(Page::read(&ground.receivers), Ok(None));
        // Not locked: whoever was killed there.
        if !is_being_written || !shared::is_locked(ground.file()?, READER_LOCK)? {
            break;
        }
        pause();
    }
    Ok(())
}

/// Whether the other end is that of this receiver. In another pid namespace its number
/// means nothing, and where it is to be had nobody may find it: then a link that is not
/// closed is good, until it is.
fn is_of(end: BorrowedFd<'_>, receiver: &Holder) -> bool {
    let (theirs, ours) = (receiver.namespace, proc::pid_namespace());
    let is_elsewhere = theirs.is_some() && ours.is_some() && theirs != ours;
    match is_elsewhere {
        true => !shared::is_abandoned(end),
        false => rendezvous::is_of(end, receiver.pid),
    }
}

impl Links {
    pub(super) fn new(link: Link, number: u32) -> Links {
        let now = Mutex::new(Arc::new(link));
        Links { now, number }
    }

    /// Of one who was not invited.
    ///
    /// # Errors
    /// [`Error::ReceiverDead`], [`Error::Closed`], [`Error::Io`].
    pub(super) fn come(ground: &Ground) -> Result<Links, Error> {
        let number = ground.number()?;
        let_finish(ground)?;
        Ok(Links::new(Link::to_receiver(ground, number)?, number))
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Link>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Arc<Link> {
        Arc::clone(&self.lock())
    }

    /// Another link, if there is another receiver.
    ///
    /// # Errors
    /// [`Error::ReceiverDead`] if there is not.
    pub(super) fn renew(&self, ground: &Ground) -> Result<(), Error> {
        let mut now = self.lock();
        let page = Page::read(&ground.receivers);
        // Another sender of this process may have been faster.
        let is_new = matches!(&page, Ok(Some(page)) if now.is_to(page));
        if !is_new {
            *now = Arc::new(Link::to_receiver(ground, self.number)?);
        }
        Ok(())
    }

    /// Wakes the receiver that sleeps on its descriptor, whoever it is by now.
    pub(super) fn ring(&self, ground: &Ground) {
        let link = self.now();
        let is_heard = link.ring();
        // A receiver that is about to be gone may have heard it, and another one
        // sleep.
        let page = Page::read(&ground.receivers);
        if !is_heard || matches!(&page, Ok(Some(page)) if link.is_to_another(page)) {
            // If there is none, that is found out in another way. If there is, it
            // hears of a new link as of a ring.
            let _ = self.renew(ground);
        }
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::queue::format::{Geometry, READER, reader};

    #[test]
    fn a_receiver_that_is_saying_that_it_is_there_is_given_time() {
        let ground = Ground::new(Geometry::new(1, 12, 1, 1).unwrap()).unwrap();
        let ours = Ground::attach(ground.file().unwrap(), ground.header.nonce).unwrap();
        let sequence: &AtomicU64 = ground.receivers.look(READER + reader::SEQUENCE);
        sequence.store(1, Ordering::Release);
        // Not for ever: it may be stopped there.
        let began = Instant::now();
        let_finish(&ours).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(LOOKS.into()));
        // Or killed.
        drop(ground);
        assert!(matches!(Links::come(&ours), Err(Error::ReceiverDead)));
    }
}
