//! A channel between processes, in memory that they share: many senders, one
//! receiver.
//!
//! ```
//! use procwright::queue::Receiver;
//!
//! let mut receiver = Receiver::new()?;
//! // For another process: `receiver.invite()?`, over a Unix socket or inherited,
//! // and there `Sender::attach(invitation)?`.
//! let mut sender = receiver.sender()?;
//! sender.send(b"hello")?;
//! assert_eq!(receiver.recv()?, b"hello");
//! # Ok::<(), procwright::queue::Error>(())
//! ```
//!
//! # What it promises
//!
//! - A message is received once and whole, or was never sent. A sender that is
//!   killed loses what it had not sent, and nothing else.
//! - Whoever is stopped or killed, at whatever instruction, keeps no other sender
//!   from sending and the receiver from receiving what others send.
//! - A sender is told that its receiver [has died](Error::ReceiverDead), before it
//!   sends and while it waits for room, for one load.
//! - While the receiver is awake there is no system call a message. It is woken
//!   with one. While nobody sends, nobody is woken.
//! - A lane [grows](Options::limit) while messages wait, and gives the memory back.
//!
//! The processes trust each other not to write where they have no business. One
//! that leaves nonsense in its lane spoils [that lane](Error::Damaged) and no other.
//! Who takes which lane stands where all can write: one that writes nonsense there
//! can take the lane of another away, with what that one sends from then on.
//!
//! # When the receiver dies
//!
//! Its senders are told, and what was not received stays where it is for as long as any
//! process has the queue. Another receiver [takes over](Receiver::take_over), and the
//! senders go on in their lanes. What the dead one had been handed out and had not
//! received yet, a [`View`] or [`Batch`] that was there, comes again; nothing else does.
//! A sender that sees the death handles it by trying again, for as long as it expects
//! another receiver.
//!
//! # Names
//!
//! A queue may have a [name](Options::open), by which this user's processes on this
//! machine find it, whatever its receiver does at the time: it may be stopped. Where
//! these have `/proc` of their own, or network or pid namespaces, they do not find each
//! other, and an invitation is what they need.
//!
//! # Forks
//!
//! An end of a queue is that of the process that has made it; in a fork every call
//! fails with [`Error::Forked`], and dropping it there does nothing. Attach anew,
//! with an invitation of its own. A [`View`], [`Batch`] or [`Reservation`] that was
//! there at the fork can be dropped too; to read it, write to it or commit it in the
//! fork panics.
//!
//! # Threads
//!
//! A queue starts none.
//!
//! A receiver may go to other threads. What tells its senders that it lives ends
//! with the thread that it was made on. From then on, until the receiver finds
//! nothing to receive the next time, or has received 256 messages more, on whatever
//! thread, they ask the system instead, once in 64 messages or in 10 ms, and one that
//! waits for room learns of its death within a second.
//!
//! # What it does not do
//!
//! - It does not outlive the last process that has it, and what it has is not on disk.
//! - An [`Invitation`] that nobody has attached yet is not known to a receiver that
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
//! Where the kernel [marks no words](crate::liveness::ThreadToken), as under a
//! sandbox that denies `set_robust_list` or `get_robust_list` to the receiver, and
//! for a receiver that was made on a thread which holds a thousand others, senders
//! ask the system as they do when its thread has ended.
#![cfg_attr(procwright_loom, allow(dead_code))]

mod bell;
mod channel;
// Not where loom takes the place of the atomics: it knows no shared memory.
#[cfg(not(procwright_loom))]
mod ends;
mod error;
mod format;
mod lane;

pub use channel::Channel;
pub(crate) use channel::{MOST_FILES, VARIABLE};
#[cfg(not(procwright_loom))]
pub(crate) use ends::OurEnd;
#[cfg(not(procwright_loom))]
pub use ends::{
    Asleep, Batch, Invitation, LaneStat, LaneState, Options, Overflow, Receiver, ReceiverStat,
    ReceiverState, Reservation, Sender, Stat, View, Waker, names, stat,
};
pub use error::Error;
