//! The link from a sender's process to the receiver: a socket.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::error::Error;
use crate::format::RECEIVER_LOCK;
use crate::pause::pause;
use crate::shm::{QueueFile, ReceiverPage, socket_name};
use procwright_liveness::HolderId;
use procwright_os::fork::CloseOnFork;
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::unix_socket::{self, SocketName};
use procwright_os::{proc, shared_memory};

/// A link to one receiver.
#[derive(Debug)]
pub(super) struct ReceiverLink {
    end: CloseOnFork,
    /// Abstract name where that receiver listens. All 0 if it does not.
    name: SocketName,
}

/// The link of a process, which changes when another receiver takes over.
#[derive(Debug)]
pub(super) struct CurrentLink {
    current: Mutex<Arc<ReceiverLink>>,
    /// Number of the process in this queue.
    guest: u32,
}

impl ReceiverLink {
    /// A link that came with an invitation. The other end is the receiver that is there
    /// now, or one before it.
    pub(super) fn invited(end: OwnedFd, queue: &QueueFile) -> ReceiverLink {
        let page = ReceiverPage::read(&queue.receivers);
        let name = match page {
            // A process that dies closes one descriptor after the other. So an open other
            // end is not enough: another receiver may have taken over.
            Ok(Some(page)) if is_held_by(end.as_fd(), &page.holder) => page.name,
            _ => SocketName::default(),
        };
        let end = CloseOnFork::new(end);
        ReceiverLink { end, name }
    }

    /// A new link to the receiver that the page names. To connect wakes the receiver.
    ///
    /// # Errors
    /// [`Error::ReceiverDead`] if no process listens there.
    fn connect(queue: &QueueFile, guest: u32) -> Result<ReceiverLink, Error> {
        let page = match ReceiverPage::read(&queue.receivers)? {
            Some(page) if page.is_closed => return Err(Error::Closed),
            Some(page) => page,
            // A receiver was killed while it wrote the page, or is just taking over.
            None => return Err(Error::ReceiverDead),
        };
        let made = connect_to(&page, queue)
            .and_then(|end| unix_socket::introduce(end.as_fd(), guest).map(|()| end));
        let end = made.map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::BrokenPipe => Error::ReceiverDead,
            // A process of another user has taken the socket's name of a receiver that is
            // gone.
            io::ErrorKind::PermissionDenied if !page.is_held(queue) => Error::ReceiverDead,
            io::ErrorKind::WouldBlock => Error::Io(io::Error::new(
                error.kind(),
                "too many have come to the queue since its receiver received anything",
            )),
            _ => Error::from_io(error),
        })?;
        Ok(ReceiverLink {
            end: CloseOnFork::new(end),
            name: page.name,
        })
    }

    /// Returns whether the other end is another receiver than that of the page. The first
    /// receiver has no name.
    pub(super) fn is_to_another(&self, page: &ReceiverPage) -> bool {
        self.name != page.name
    }

    fn is_to(&self, page: &ReceiverPage) -> bool {
        !self.is_to_another(page) && !self.is_abandoned()
    }

    pub(super) fn is_abandoned(&self) -> bool {
        // An error means a fork, which has no link. Every caller has ruled that out.
        self.end.get().is_ok_and(shared_memory::is_hung_up)
    }

    /// Sends a byte. Says whether a receiver is at the other end. No SIGPIPE is sent.
    fn ring(&self) -> bool {
        self.end.get().is_ok_and(shared_memory::ring)
    }
}

/// Connects to the receiver of that page: at its private socket, or else at the name that
/// all see, for where that process cannot be seen or may not be looked into. The number of
/// a process that is gone may be that of the queue's next receiver: the link then has the
/// name of the one before, and is [to another](ReceiverLink::is_to_another).
fn connect_to(page: &ReceiverPage, queue: &QueueFile) -> io::Result<OwnedFd> {
    let private = match page.door {
        Some(door) if !is_elsewhere(&page.holder) => {
            unix_socket::connect_private(page.holder.pid, door, &socket_name(queue.header.nonce))
        }
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    };
    private.or_else(|_| unix_socket::connect_abstract(&page.name))
}

/// Returns whether that receiver is known to be in another pid namespace, where its number
/// means nothing.
fn is_elsewhere(receiver: &HolderId) -> bool {
    let (theirs, ours) = (receiver.namespace, proc::pid_namespace());
    theirs.is_some() && ours.is_some() && theirs != ours
}

/// Number of looks at a page that is being written, a millisecond apart.
const PAGE_READS: u32 = 100;

/// Gives a receiver the time to finish its page: it lives, and something else has its
/// processor. *Not in a process that sends already*: a receiver that is stopped there must
/// not hold it up.
fn await_page(queue: &QueueFile) -> io::Result<()> {
    for _ in 0..PAGE_READS {
        let is_being_written = matches!(ReceiverPage::read(&queue.receivers), Ok(None));
        // An unlocked page that is not finished is that of a receiver that was killed.
        if !is_being_written || !shared_memory::is_locked(queue.file()?, RECEIVER_LOCK)? {
            break;
        }
        pause();
    }
    Ok(())
}

/// Returns whether the other end is that of this receiver. In another pid namespace its
/// number means nothing, and its sockets may not be found: then a link that is not
/// closed is good, until it is.
fn is_held_by(end: BorrowedFd<'_>, receiver: &HolderId) -> bool {
    match is_elsewhere(receiver) {
        true => !shared_memory::is_hung_up(end),
        false => unix_socket::peer_is(end, receiver.pid),
    }
}

impl CurrentLink {
    pub(super) fn new(link: ReceiverLink, guest: u32) -> CurrentLink {
        let current = Mutex::new(Arc::new(link));
        CurrentLink { current, guest }
    }

    /// A link for a process without an invitation.
    ///
    /// # Errors
    /// [`Error::ReceiverDead`], [`Error::Closed`], [`Error::Io`].
    pub(super) fn connect(queue: &QueueFile) -> Result<CurrentLink, Error> {
        let guest = queue.next_guest()?;
        await_page(queue)?;
        Ok(CurrentLink::new(
            ReceiverLink::connect(queue, guest)?,
            guest,
        ))
    }

    pub(super) fn guest(&self) -> u32 {
        self.guest
    }

    fn lock(&self) -> MutexGuard<'_, Arc<ReceiverLink>> {
        self.current.lock()
    }

    pub(super) fn current(&self) -> Arc<ReceiverLink> {
        Arc::clone(&self.lock())
    }

    /// Replaces the link, if there is another receiver.
    ///
    /// # Errors
    /// [`Error::ReceiverDead`] if there is not.
    pub(super) fn renew(&self, queue: &QueueFile) -> Result<(), Error> {
        let mut current = self.lock();
        let page = ReceiverPage::read(&queue.receivers);
        // Another sender of this process may have been faster.
        let is_new = matches!(&page, Ok(Some(page)) if current.is_to(page));
        if !is_new {
            *current = Arc::new(ReceiverLink::connect(queue, self.guest)?);
        }
        Ok(())
    }

    /// Wakes the receiver that sleeps on its descriptor, whichever process that is by now.
    pub(super) fn ring(&self, queue: &QueueFile) {
        let link = self.current();
        let is_delivered = link.ring();
        // The byte may have gone to a receiver that is about to be gone, while another one
        // sleeps.
        let page = ReceiverPage::read(&queue.receivers);
        if !is_delivered || matches!(&page, Ok(Some(page)) if link.is_to_another(page)) {
            // A queue without a receiver is noticed elsewhere. If there is one, the new
            // link wakes it.
            let _ = self.renew(queue);
        }
    }
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::format::{Geometry, RECEIVER_PAGE, page_offsets};

    #[test]
    fn a_page_that_is_being_written_is_awaited() {
        let queue = QueueFile::new(Geometry::new(1, 12, 1, 1).unwrap()).unwrap();
        let ours = QueueFile::open_as_sender(queue.file().unwrap(), queue.header.nonce).unwrap();
        let sequence: &AtomicU64 = queue
            .receivers
            .atomic(RECEIVER_PAGE + page_offsets::SEQUENCE);
        sequence.store(1, Ordering::Release);
        // The wait has an end: the receiver may be stopped there.
        let began = Instant::now();
        await_page(&ours).unwrap();
        assert!(began.elapsed() >= Duration::from_millis(PAGE_READS.into()));
        // A receiver that was killed there holds no lock.
        drop(queue);
        assert!(matches!(
            CurrentLink::connect(&ours),
            Err(Error::ReceiverDead)
        ));
    }
}
