//! New receivers: of a new queue, of one whose receiver has died, and of one with a name.
//!
//! The process that has the lock of the queue's byte 0 receives. The kernel frees it when
//! the process is gone, so no other has to decide whether that one is dead. From any
//! instruction on a dead receiver leaves the queue in order: one word for each lane says
//! how far it has read, and a lane that it was clearing says so.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::links::SenderLinks;
use super::token::ReceiverToken;
use super::{Options, Receiver};
use crate::error::Error;
use crate::format::RECEIVER_LOCK;
use crate::invitation::Invitation;
use crate::names::{HeldName, NameFile, QueueName};
use crate::pause::pause;
use crate::shm::{QueueFile, ReceiverPage, socket_name};
use procwright_liveness::nonce;
use procwright_os::unix_socket::{PrivateListener, SocketName};
use procwright_os::{shared_memory, unix_socket};

/// Number of attempts, a millisecond apart, to get a lock from a receiver that is dying, or
/// from a process that is about to receive.
const LOCK_TRIES: u32 = 2000;

impl Receiver {
    /// Makes a queue with the usual [`Options`].
    ///
    /// # Errors
    /// [`Error::Unsupported`]; [`Error::Io`] when there is no memory or descriptor left.
    pub fn new() -> Result<Receiver, Error> {
        Options::new().create()
    }

    /// Receives in the place of a receiver that has died, from the queue that the
    /// invitation is to. Its senders and the messages that were not received yet are there.
    ///
    /// A message that the dead receiver had been given and had not received yet, a
    /// [`View`](crate::View) or [`Batch`](crate::Batch) that was there when it died, is
    /// received again, and no other is.
    ///
    /// The invitation stays good, for this process or another: with it one may send, or
    /// take over from this receiver when it has died.
    ///
    /// # Blocking
    /// As long as the kernel needs to clear away a process that it has ended. For two
    /// seconds if the receiver lives and the thread has ended that it was made on: a
    /// process that is about to be gone looks the same.
    ///
    /// # Errors
    /// [`Error::ReceiverAlive`] if the queue has a receiver, or another process has just
    /// taken over; [`Error::Closed`] if the last one was not killed but dropped;
    /// [`Error::Invalid`], [`Error::WrongVersion`], [`Error::Unsupported`], or
    /// [`Error::Io`] when there is no memory or descriptor left.
    #[doc(alias = "EOWNERDEAD")]
    pub fn take_over(invitation: &Invitation) -> Result<Receiver, Error> {
        let queue = QueueFile::open_as_receiver(invitation.file.as_fd(), invitation.nonce)?;
        Receiver::succeed(queue, None)
    }

    /// Makes a queue of that name, with the usual [`Options`]: see [`Options::open`].
    ///
    /// # Errors
    /// As [`Options::open`].
    #[doc(alias = "mq_open")]
    pub fn open(name: &str) -> Result<Receiver, Error> {
        Options::new().open(name)
    }

    /// Receives from a queue whose receiver is gone.
    fn succeed(
        queue: QueueFile,
        named: Option<(&QueueName, &NameFile)>,
    ) -> Result<Receiver, Error> {
        lock_as_receiver(&queue)?;
        if matches!(ReceiverPage::read(&queue.receivers), Ok(Some(page)) if page.is_closed) {
            return Err(Error::Closed);
        }
        if let Some((_, file)) = named {
            file.write_receiver(queue.file()?)?;
        }
        // A new receiver is awake, whatever the last one was.
        queue.sleep_word().store(0, Ordering::Relaxed);
        let receiver = Receiver::begin(queue, true, named.map(|(name, _)| name))?;
        if let Some((_, file)) = named {
            // The line is written once more, now that there is a receiver: a process that
            // waits for the name looks again when the file changes, and may have looked
            // after the first change long ago. If it cannot be written, waiting processes
            // look later.
            let _ = file.write_receiver(receiver.file()?);
        }
        Ok(receiver)
    }

    /// Receives from a queue that has no receiver. The caller has the queue's lock. Nothing
    /// may fail once the token is held.
    pub(super) fn begin(
        queue: QueueFile,
        is_used: bool,
        name: Option<&QueueName>,
    ) -> Result<Receiver, Error> {
        let queue = Arc::new(queue);
        let mut socket = SocketName::default();
        let links = match is_used || name.is_some() {
            true => {
                socket = socket_name(nonce());
                let listener = unix_socket::listen_abstract(&socket).map_err(Error::from_io)?;
                let private = listen_privately(&queue);
                SenderLinks::listening(listener, private, name.is_some())?
            }
            false => SenderLinks::new()?,
        };
        let token = ReceiverToken::hold(&queue, socket, links.door())?;
        let held = name.map(|name| HeldName::new(name, &queue));
        Ok(Receiver::assemble(queue, token, links, held))
    }
}

/// The socket that other users do not come to. None without a directory of names, or where
/// no socket can be bound in it: then senders have the abstract name alone, which serves as
/// long as nobody crowds it.
/// The caller has the queue's lock, so nobody else is at that name.
fn listen_privately(queue: &QueueFile) -> Option<PrivateListener> {
    let directory = QueueName::common_directory(true).ok()?;
    unix_socket::listen_private(&directory, &socket_name(queue.header.nonce)).ok()
}

/// Gets the lock of the receiver.
#[doc(alias = "F_OFD_SETLK")]
fn lock_as_receiver(queue: &QueueFile) -> Result<(), Error> {
    let file = queue.file()?;
    let mut pid = None;
    for _ in 0..LOCK_TRIES {
        if shared_memory::lock(file, RECEIVER_LOCK)? {
            return Ok(());
        }
        if let Ok(Some(page)) = ReceiverPage::read(&queue.receivers) {
            pid = Some(page.holder.pid);
            if page.is_held(queue) {
                break;
            }
        }
        // The lock and the word disagree in one of three cases:
        // 1. the receiver's process dies: its word was marked first, and its lock is about
        //    to be free;
        // 2. the thread that held the word has ended, and the receiver lives;
        // 3. another process was faster and has not written its page yet.
        pause();
    }
    Err(Error::ReceiverAlive { pid })
}

impl Options {
    /// Makes the queue.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; [`Error::Io`] for numbers that no queue can have, and when
    /// there is no memory or descriptor left.
    #[doc(alias = "memfd_create")]
    pub fn create(self) -> Result<Receiver, Error> {
        Receiver::begin(QueueFile::new(self.checked()?)?, false, None)
    }

    /// Makes a queue of that name, for this user on this machine; any process of the user's
    /// may [send](crate::Sender::open) to it. If there is one of that name whose receiver
    /// has died, and any process still has it, it is [taken over](Receiver::take_over) as
    /// it is, with the options that it was made with.
    ///
    /// The name is 1 to 64 of the characters `A-Z`, `a-z`, `0-9`, `.`, `_` and `-`, and
    /// does not begin with a dot. It is a small file in `$PROCWRIGHT_QUEUE_DIR`, else in
    /// `$XDG_RUNTIME_DIR/procwright/queues`, else in `/tmp/procwright-UID/queues`: a
    /// directory that is made if it does not exist, and must be this user's alone. Dropping
    /// the receiver removes it. If the receiver is killed it stays, and the queue with it
    /// as long as any process has that; if none has, the next process that opens the name
    /// begins a new queue.
    ///
    /// A receiver with a name never tells that the queue is [closed](Error::Closed): others
    /// may come at any time.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # unsafe { std::env::set_var("PROCWRIGHT_QUEUE_DIR", directory.path().join("queues")) };
    /// use procwright_queue::{Options, Sender};
    ///
    /// let mut receiver = Options::new().lanes(8).open("work")?;
    /// let mut sender = Sender::open("work")?; // in another process, as a rule
    /// sender.send(b"hello")?;
    /// assert_eq!(receiver.recv()?, b"hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NameTaken`] if the receiver of that queue lives; [`Error::BadName`];
    /// [`Error::Io`] if the directory is another user's, or others may enter it, or if it
    /// is a link, and as [`create`](Options::create); [`Error::WrongVersion`] if another
    /// version has made it; [`Error::Unsupported`].
    #[doc(alias = "mq_open")]
    pub fn open(self, name: &str) -> Result<Receiver, Error> {
        let geometry = self.checked()?;
        let name = QueueName::new(name)?;
        for _ in 0..LOCK_TRIES {
            let file = name.make_file()?;
            if !file.lock()? {
                // Another process is about to receive, or about to leave, or has removed
                // the file.
                pause();
                continue;
            }
            let opened = open_locked(&file, &name, || QueueFile::new(geometry));
            // A fork of this process may have the file as well, and would keep the lock.
            file.unlock();
            if let Some(receiver) = opened? {
                return Ok(receiver);
            }
        }
        Err(name_taken(&name, None))
    }
}

/// Opens a queue by its locked file. None if the name led to no queue any more: it is
/// free now.
fn open_locked(
    file: &NameFile,
    name: &QueueName,
    create: impl FnOnce() -> Result<QueueFile, Error>,
) -> Result<Option<Receiver>, Error> {
    if file.is_empty()? {
        let queue = create()?;
        let receiver = Receiver::begin(queue, false, Some(name))?;
        file.write_new(receiver.nonce(), receiver.file()?)?;
        return Ok(Some(receiver));
    }
    let Some(found) = file.find()? else {
        file.remove()?;
        return Ok(None);
    };
    let queue = QueueFile::open_as_receiver(found.file.as_fd(), found.nonce)?;
    match Receiver::succeed(queue, Some((name, file))) {
        Ok(receiver) => Ok(Some(receiver)),
        // The last receiver was killed after it closed and before it removed its name.
        Err(Error::Closed) => {
            file.remove()?;
            Ok(None)
        }
        Err(Error::ReceiverAlive { pid }) => Err(name_taken(name, pid)),
        Err(other) => Err(other),
    }
}

fn name_taken(name: &QueueName, pid: Option<i32>) -> Error {
    let name = name.text().to_owned();
    Error::NameTaken { name, pid }
}
