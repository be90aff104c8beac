//! A message queue between processes, in memory that they share: many senders, one
//! receiver, and both sides know when the other dies.
//!
//! ```
//! use procwright_queue::Receiver;
//!
//! let mut receiver = Receiver::new()?;
//! // For another process: `receiver.invite()?`, over a Unix socket or inherited,
//! // and there `Sender::attach(invitation)?`.
//! let mut sender = receiver.sender()?;
//! sender.send(b"hello")?;
//! assert_eq!(receiver.recv()?, b"hello");
//! # Ok::<(), procwright_queue::Error>(())
//! ```
//!
//! # Promises
//!
//! - A message is received once and whole, or was never sent. A sender that is
//!   killed loses what it had not sent, and nothing else.
//! - A process that is stopped or killed, at whatever instruction, keeps no other sender
//!   from sending and the receiver from receiving what others send.
//! - A sender is told that its receiver [has died](Error::ReceiverDead), before it
//!   sends and while it waits for room, for one load.
//! - While the receiver is awake there is no system call a message. To wake it takes
//!   one. While no process sends, none is woken.
//! - A lane [grows](Options::limit) while messages wait, and gives the memory back.
//!
//! The processes trust each other not to write where they have no business. One
//! that leaves nonsense in its lane spoils [that lane](Error::Damaged) and no other.
//! The words that say which sender has which lane can be written by all: a process that
//! writes nonsense there can take the lane of another away, with what that one sends from
//! then on.
//!
//! # When the receiver dies
//!
//! Senders are told, and messages that were not received stay where they are for as long
//! as any process has the queue. Another receiver [takes over](Receiver::take_over), and
//! the senders go on in their lanes. Messages that the dead one had been handed out and had
//! not received yet, a [`View`] or [`Batch`] that was there, come again; no others do.
//! A sender that sees the death handles it by trying again, for as long as it expects
//! another receiver.
//!
//! # Names
//!
//! A queue may have a [name](Options::open), by which this user's processes on this
//! machine find it, whatever its receiver does at the time: it may be stopped. Processes
//! with `/proc` of their own, or network or pid namespaces, do not find each other, and
//! need an invitation.
//!
//! # Forks
//!
//! An end of a queue belongs to the process that has made it; in a fork every call
//! fails with [`Error::Forked`], and dropping it there does nothing. A fork attaches anew,
//! with an invitation of its own. A [`View`], [`Batch`] or [`Reservation`] that was
//! there at the fork can be dropped too; to read it, write to it or commit it in the
//! fork panics.
//!
//! # Threads
//!
//! A queue starts none.
//!
//! A receiver may go to other threads. The word that tells its senders that it lives ends
//! with the thread that it was made on. From then on, until the receiver finds
//! nothing to receive the next time, or has received 256 messages more, on whatever
//! thread, they ask the system instead, once in 64 messages or in 10 ms, and one that
//! waits for room learns of its death within a second.
//!
//! # Limits
//!
//! - A queue does not outlive the last process that has it, and its messages are not on
//!   disk.
//! - An [`Invitation`] that was not attached yet is not known to a receiver that
//!   takes over: that one says [`Error::Closed`] when it sees no sender, and goes on
//!   when one comes.
//!
//! # Platform
//!
//! Linux with `/proc`. Elsewhere [`Error::Unsupported`]. Before Linux 5.16, and where
//! `futex_waitv` is denied, a sender that waits for room looks once a second
//! whether its receiver lives. It does everywhere if a thread of the receiver's
//! process that is not the main one has made the receiver and calls `exec`.
//!
//! Senders ask the system, as they do when the receiver's thread has ended, where the
//! kernel [marks no words](procwright_liveness::ThreadToken), as under a sandbox that
//! denies `set_robust_list` or `get_robust_list` to the receiver, and for a receiver that
//! was made on a thread which holds a thousand others.
#![deny(unsafe_code)]
#![cfg_attr(procwright_loom, allow(dead_code))]

// Layers, lowest first (docs/architecture.md has them highest first). A module uses only
// those above it in this list, and within a folder the same holds for the order that its
// `mod.rs` tells.
//
// error       what can go wrong
// format      offsets and words of the shared memory, checked before they are used
// wakeup      sleep, and whether the other side has to end it
// lane        one sender to one receiver, in memory of any kind
// shm         the queue's file, and that memory in it
// pause       a millisecond between two looks
// names       names of queues, and the queues that they lead to
// invitation  what another process needs to send
// sender      the side that sends
// receiver    the side that receives
// channel     a queue between a program and its child
// stat        a queue as seen from outside
//
// Words of this crate:
//
// lane        the memory from one sender to the receiver
// claim       a sender's right to a lane: a lock of the kernel's, and a state
// guest       the number of a process that sends, in this queue
// link        the socket between a process that sends and the receiver
// orphan      a lane whose sender has no link to this receiver
// liveness word, token, monitor
//             a robust futex word that the receiver holds, its side, a sender's side

mod channel;
mod error;
mod format;
mod lane;
mod wakeup;
// Loom replaces the atomics and knows no shared memory, so these rooms are not there.
#[cfg(not(procwright_loom))]
mod invitation;
#[cfg(not(procwright_loom))]
mod names;
#[cfg(not(procwright_loom))]
mod pause;
#[cfg(not(procwright_loom))]
mod receiver;
#[cfg(not(procwright_loom))]
mod sender;
#[cfg(not(procwright_loom))]
mod shm;
#[cfg(not(procwright_loom))]
mod stat;

pub use channel::Channel;
#[cfg(not(procwright_loom))]
pub use channel::OurEnd;
pub use channel::{MOST_FILES, VARIABLE};
pub use error::Error;
#[cfg(not(procwright_loom))]
pub use {
    invitation::Invitation,
    receiver::{Batch, Options, Receiver, View, Waker},
    sender::{Opening, Overflow, Reservation, Sender},
    stat::{LaneStat, LaneState, ReceiverStat, ReceiverState, Stat, names, stat},
    wakeup::Asleep,
};

/// The example of the README, which runs as a test.
#[cfg(all(doctest, not(procwright_loom)))]
#[doc = include_str!("../README.md")]
mod readme {}
