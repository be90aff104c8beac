//! Another receiver in the place of one that has died, and receivers that are found
//! by name.
//!
//! Whoever has the lock of the queue's byte 0 receives. The kernel frees it when the
//! process is gone, so nobody has to decide whether the other is dead. Everything
//! that the dead one has left in the queue is as good as new from any instruction
//! on: how far it has read stands in one word for each lane, and a lane that it was
//! clearing says so.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::guests::Guests;
use crate::liveness::nonce;
use crate::queue::ends::ground::Ground;
use crate::queue::ends::life::Life;
use crate::queue::ends::names::{Name, NameFile};
use crate::queue::ends::page::Page;
use crate::queue::ends::pause;
use crate::queue::format::READER_LOCK;
use crate::queue::{Error, Invitation, Options, Receiver};
use crate::sys::{rendezvous, shared};

/// A name of a queue, for as long as its receiver has it.
#[derive(Debug)]
pub(super) struct Held {
    name: Name,
    ground: Arc<Ground>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.ground.is_here() {
            self.name.remove(self.ground.header.nonce);
        }
    }
}

/// How often it is looked whether a receiver that is dying is gone, or somebody else who
/// is about to receive is, a millisecond apart.
const LOOKS: u32 = 2000;

impl Receiver {
    /// Receives in the place of a receiver that has died, from the queue that the
    /// invitation is to. What was not received yet is there, and so are its senders.
    ///
    /// What the dead receiver had been given and had not received yet, a [`View`] or
    /// [`Batch`] that was there when it died, is received again, and nothing else is.
    ///
    /// The invitation stays good, for this process or another: with it one may send,
    /// or take over from this receiver when it has died.
    ///
    /// # Blocking
    /// As long as the kernel needs to clear away a process that it has ended. For two
    /// seconds if the receiver lives and the thread has ended that it was made on: that
    /// is what a process looks like that is about to be gone.
    ///
    /// # Errors
    /// [`Error::ReceiverAlive`] if the queue has a receiver, or another process has
    /// just taken over; [`Error::Closed`] if the last one was not killed but dropped;
    /// [`Error::Invalid`], [`Error::WrongVersion`], [`Error::Unsupported`], or
    /// [`Error::Io`] when there is no memory or descriptor left.
    ///
    /// [`View`]: super::View
    /// [`Batch`]: super::Batch
    pub fn take_over(invitation: &Invitation) -> Result<Receiver, Error> {
        let ground = Ground::inherit(invitation.file.as_fd(), invitation.nonce)?;
        Receiver::succeed(ground, None)
    }

    /// Makes a queue of that name, with the usual [`Options`]: see [`Options::open`].
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(name: &str) -> Result<Receiver, Error> {
        Options::new().open(name)
    }

    /// Receives from a queue whose receiver is gone.
    fn succeed(ground: Ground, named: Option<(&Name, &NameFile)>) -> Result<Receiver, Error> {
        win(&ground)?;
        if matches!(Page::read(&ground.receivers), Ok(Some(page)) if page.is_closed) {
            return Err(Error::Closed);
        }
        if let Some((_, file)) = named {
            file.receive(ground.file()?)?;
        }
        // It is awake, whatever the last one was.
        ground.bell().store(0, Ordering::Relaxed);
        let receiver = Receiver::begin(ground, true, named.map(|(name, _)| name))?;
        if let Some((_, file)) = named {
            // Once more, now that there is a receiver: who waits for the name looks
            // again when the file changes, and may have been told of the first change
            // long ago. It is the same line; if it cannot be written they look later.
            let _ = file.receive(receiver.file()?);
        }
        Ok(receiver)
    }

    /// Receives from a queue that is nobody's, by who has its lock. Nothing may fail
    /// once that was said.
    pub(super) fn begin(
        ground: Ground,
        is_used: bool,
        name: Option<&Name>,
    ) -> Result<Receiver, Error> {
        let ground = Arc::new(ground);
        let mut place = rendezvous::Name::default();
        let guests = match is_used || name.is_some() {
            true => {
                let text = format!("procwright-{:016x}", nonce());
                place[..text.len()].copy_from_slice(text.as_bytes());
                let listener = rendezvous::listen(&place).map_err(Error::of)?;
                Guests::listening(listener, name.is_some())?
            }
            false => Guests::new()?,
        };
        let life = Life::hold(&ground, place)?;
        let held = name.map(|name| Held {
            name: name.clone(),
            ground: Arc::clone(&ground),
        });
        Ok(Receiver::assemble(ground, life, guests, held))
    }
}

/// Wins the lock of who receives.
fn win(ground: &Ground) -> Result<(), Error> {
    let file = ground.file()?;
    let mut pid = None;
    for _ in 0..LOOKS {
        if shared::lock(file, READER_LOCK)? {
            return Ok(());
        }
        if let Ok(Some(page)) = Page::read(&ground.receivers) {
            pid = Some(page.holder.pid);
            if page.is_held(ground) {
                break;
            }
        }
        // Its word was marked first, and its lock is about to be free. Or only the
        // thread has ended that held the word; or another one was faster and has not
        // said so yet.
        pause();
    }
    Err(Error::ReceiverAlive { pid })
}

impl Options {
    /// Makes a queue of that name, for this user on this machine; any process of the
    /// user's may [send](super::Sender::open) to it. If there is one of that name
    /// whose receiver has died, and any process still has it, it is
    /// [taken over](Receiver::take_over) as it is, with the options that it was made
    /// with.
    ///
    /// The name is 1 to 64 of the characters `A-Z`, `a-z`, `0-9`, `.`, `_` and `-`,
    /// and does not begin with a dot. It is a small file in
    /// `$PROCWRIGHT_QUEUE_DIR`, else in `$XDG_RUNTIME_DIR/procwright/queues`, else in
    /// `/tmp/procwright-UID/queues`: a directory that is made if it is not there, and
    /// must be this user's alone. Dropping the receiver removes it. If the receiver is
    /// killed it stays, and the queue with it as long as any process has that; the
    /// next one who opens the name begins a new queue if nobody has.
    ///
    /// A receiver with a name never tells that the queue is [closed](Error::Closed):
    /// others may come at any time.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # unsafe { std::env::set_var("PROCWRIGHT_QUEUE_DIR", directory.path().join("queues")) };
    /// use procwright::queue::{Options, Sender};
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
    /// [`Error::Io`] if the directory is another user's, or others may enter it, or if
    /// it is a link, and as [`create`](Options::create);
    /// [`Error::WrongVersion`] if another version has made it;
    /// [`Error::Unsupported`].
    pub fn open(self, name: &str) -> Result<Receiver, Error> {
        let geometry = self.checked()?;
        let name = Name::new(name)?;
        for _ in 0..LOOKS {
            let file = name.make_file()?;
            if !file.lock()? {
                // Somebody is about to receive, or about to leave, or has removed it.
                pause();
                continue;
            }
            let opened = open_locked(&file, &name, || Ground::new(geometry));
            // A fork may have it as well.
            file.unlock();
            if let Some(receiver) = opened? {
                return Ok(receiver);
            }
        }
        Err(taken(&name, None))
    }
}

/// None if it was a name that means nothing any more: it is free now.
fn open_locked(
    file: &NameFile,
    name: &Name,
    create: impl FnOnce() -> Result<Ground, Error>,
) -> Result<Option<Receiver>, Error> {
    if file.is_empty()? {
        let ground = create()?;
        let receiver = Receiver::begin(ground, false, Some(name))?;
        file.begin(receiver.nonce(), receiver.file()?)?;
        return Ok(Some(receiver));
    }
    let Some(found) = file.find()? else {
        file.remove()?;
        return Ok(None);
    };
    let ground = Ground::inherit(found.file.as_fd(), found.nonce)?;
    match Receiver::succeed(ground, Some((name, file))) {
        Ok(receiver) => Ok(Some(receiver)),
        // It was killed when it had closed and not removed its name.
        Err(Error::Closed) => {
            file.remove()?;
            Ok(None)
        }
        Err(Error::ReceiverAlive { pid }) => Err(taken(name, pid)),
        Err(other) => Err(other),
    }
}

fn taken(name: &Name, pid: Option<i32>) -> Error {
    let name = name.text().to_owned();
    Error::NameTaken { name, pid }
}
