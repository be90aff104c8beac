//! The side that receives.
//!
//! Layers, lowest first: `options`, `open_lane`, `links` and `token`, which know no
//! receiver; [`Receiver`] here, which is made of them; `view`; `claims`, `scan` and
//! `sleep`, which find the next message; `receive`, `wait_set`, `invite`, `open` and
//! `waker`, which are the public calls.

mod claims;
mod invite;
mod links;
mod open;
mod open_lane;
mod options;
mod receive;
mod scan;
mod sleep;
mod token;
mod view;
mod wait_set;
mod waker;

pub use options::Options;
pub use view::{Batch, View};
pub use waker::Waker;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::error::Error;
use crate::lane::MessageSpan;
use crate::names::HeldName;
use crate::shm::QueueFile;
use crate::wakeup::ReceiverSleep;
use links::SenderLinks;
use open_lane::OpenLane;
use procwright_liveness::nonce;
use procwright_os::shared_memory::{self, RegionWord};
use procwright_os::thread::has_several_processors;
use token::ReceiverToken;

/// Number of looks at a lane that are spent before a sleep, at most and at least: some
/// microseconds.
const MAX_SPINS: u32 = 2000;
const MIN_SPINS: u32 = 100;

/// Receives what the [`Sender`](crate::Sender)s of a queue send, each one's messages in
/// their order.
///
/// Senders of a receiver that is dropped are told that the queue is [closed](Error::Closed).
/// If its process dies, they are told that it is [dead](Error::ReceiverDead), until another
/// receiver has [taken over](Receiver::take_over): then they go on where they were.
///
/// A receiver is for one thread at a time.
#[doc(alias = "mqd_t")]
#[derive(Debug)]
pub struct Receiver {
    queue: Arc<QueueFile>,
    /// The name. Dropped before the token: a process that opens the name when this receiver
    /// is gone finds no queue that is closed.
    _held: Option<HeldName>,
    token: ReceiverToken,
    links: SenderLinks,
    /// Numbers of processes that are gone and whose lanes are still to be taken back.
    gone: Vec<u32>,
    lanes: Vec<OpenLane>,
    /// The lane that is read now, and the number of messages that are left to it before the
    /// next lane is read.
    current: usize,
    quota: u32,
    sleep_word: RegionWord<AtomicU32>,
    sleeper: ReceiverSleep,
    claims: RegionWord<AtomicU32>,
    /// Value of the claims when the states were read; none if they are to be read again.
    claimed: Option<u32>,
    /// Number of looks since the links were attended to, and the last tick of the clock
    /// then.
    looks: u32,
    attended_at: Duration,
    /// Number of looks that are worth spending before a sleep.
    spins: u32,
    /// True once the caller has asked for our descriptor, and may sleep on it.
    has_watcher: bool,
    /// True while a sleep is announced.
    is_announced: bool,
    /// A flag for each lane that is in `lanes`.
    is_open: Vec<bool>,
}

impl Receiver {
    /// A receiver that has read nothing yet.
    fn assemble(
        queue: Arc<QueueFile>,
        token: ReceiverToken,
        links: SenderLinks,
        held: Option<HeldName>,
    ) -> Receiver {
        Receiver {
            _held: held,
            token,
            links,
            gone: Vec::new(),
            lanes: Vec::new(),
            current: 0,
            quota: open_lane::QUOTA,
            sleep_word: queue.sleep_word(),
            sleeper: ReceiverSleep::starting_at(nonce()),
            claims: queue.claims(),
            claimed: None,
            looks: 0,
            attended_at: shared_memory::coarse_now(),
            // Spinning takes time from a sender on the same processor. But this thread may
            // be bound to one processor while the sender has another: the receiver finds
            // that out.
            spins: if has_several_processors() {
                MAX_SPINS
            } else {
                MIN_SPINS
            },
            has_watcher: false,
            is_announced: false,
            is_open: vec![false; queue.geometry().lanes() as usize],
            queue,
        }
    }

    fn nonce(&self) -> u64 {
        self.queue.header.nonce
    }

    fn file(&self) -> Result<BorrowedFd<'_>, Error> {
        Ok(self.queue.file()?)
    }

    /// Returns whether this is the process that made the receiver.
    fn is_here(&self) -> bool {
        self.queue.is_here()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.links.as_fd()
    }

    /// Returns whether no process is left that could send.
    fn is_closed(&self) -> bool {
        self.links.is_empty()
    }

    #[inline]
    fn check(&self) -> Result<(), Error> {
        match self.queue.is_here() {
            true => Ok(()),
            false => Err(Error::Forked),
        }
    }

    /// The bytes of a message in the current lane.
    ///
    /// # Panics
    /// In a fork, where they are not mapped.
    #[inline]
    fn bytes(&self, span: MessageSpan) -> &[u8] {
        self.queue.assert_not_forked();
        let reader = &self.lanes[self.current].reader;
        let mail = reader.mail(span);
        mail.unwrap_or_else(|| reader.memory().bytes(span))
    }

    /// Takes back the message that was handed out last: it was not received.
    fn step_back(&mut self) {
        if self.queue.is_here() {
            self.lanes[self.current].reader.step_back();
            // The current lane is to be read again, even if its quota was used up.
            self.quota += 1;
        }
    }

    /// Gives up what was handed out: it has been received.
    #[inline]
    fn release(&mut self) {
        // A fork drops a copy, which says nothing about the original.
        if self.queue.is_here() {
            self.lanes[self.current].release();
        }
    }
}
