//! A queue of bytes between a producer that never waits and a consumer that may
//! be slow: memory, then disk, then back-pressure.
//!
//! ```text
//!  producer → tail (memory) ── spill thread ──→ disk → consumer
//!                  └────────── while nothing is on disk ──↗
//! ```
//!
//! The producer reads straight into blocks of memory, small writes packed
//! together, and the consumer gets them as they are; so what is not spilled is
//! never copied. Above three quarters of the memory a thread begins to move the
//! oldest bytes but a quarter, which the consumer will want first, to files
//! without a name, and goes on until half is left: a short stall never touches
//! the disk. A byte leaves the memory when the write has succeeded, so a disk
//! that is full or fails costs room and no data. The consumer reads files itself,
//! into its own memory.
//!
//! **The bound.** Beside the bytes that the policy allows, there are at most
//! six blocks of [`block_size`], 1.5 MiB with the default: the front
//! block of which a part is gone, the one in the consumer's hand, the one being
//! filled, the one being spilled, and what is read into that will be dropped or
//! was on disk. The bookkeeping is a few dozen bytes for each block.

mod consumer;
mod disk;
mod marks;
mod monitor;
mod place;
mod pool;
mod producer;
mod spill;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::error::Invalid;
use crate::spool::Overflow;
use crate::spool::budget::{self, Share};
use crate::sys::wake::Wake;

pub(crate) use consumer::{Closer, Consumer, Item, Peek, Readiness, Woken};
pub use monitor::{Figures, Monitor};
pub(crate) use place::find as directory;
pub(crate) use producer::{Place, Producer, Space};

use disk::Disk;
use pool::Pool;
use state::State;

/// A block as it is used for much memory: as large as the largest pipe that we
/// ask for, so that one read can empty it.
const LARGEST_BLOCK: u64 = 256 * 1024;

/// The blocks that may exist beyond the bytes that may be kept.
#[cfg(test)]
const SLACK_BLOCKS: usize = 6;

/// The size of the blocks for this much memory.
pub(crate) fn block_size(memory: u64) -> usize {
    let size = (memory / 16).clamp(Overflow::LEAST_MEMORY, LARGEST_BLOCK);
    usize::try_from(size.next_multiple_of(4096)).unwrap_or(4096)
}

/// Something that happened to the queue, told where it happens: by the producer
/// or the spill thread.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// The memory is nearly full, and bytes begin to go to files in this
    /// directory. Told once.
    Spilling {
        /// Where.
        directory: PathBuf,
    },
    /// Bytes cannot go to disk, for now or for good. What is in memory stays
    /// there, and the producer waits when that is full. Tried again as soon as
    /// room was made, and once a second. Told again only after a minute without.
    Degraded {
        /// What was tried.
        what: &'static str,
        /// What the system answered.
        error: io::Error,
    },
    /// Bytes are dropped for the first time, as the policy says.
    Dropping {
        /// The offset in the stream of the first of them.
        offset: u64,
    },
    /// More came than may be kept, by [`Overflow::Fail`]. No more is taken.
    Overflowed {
        /// The offset in the stream of the first byte that was too much.
        offset: u64,
    },
}

/// What listens for events. It is called without a lock held, on whichever
/// thread, and has to be quick.
pub(crate) type Hook = Box<dyn Fn(&Event) + Send + Sync>;

/// What cannot be delivered. It comes wrapped in an [`io::Error`] of kind
/// `Other`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Broken {
    /// Bytes that lay on disk and cannot be read: lost. What is behind them can
    /// still be had.
    #[error("{length} bytes at offset {offset} were on disk and cannot be read: {source}")]
    Lost {
        /// Where in the stream they stood.
        offset: u64,
        /// How many they were.
        length: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// More came than may be kept; what came before has been delivered.
    #[error("more bytes came than may be kept, at offset {offset}")]
    Overflowed {
        /// How many bytes came before.
        offset: u64,
    },
    /// The producer failed; what came before has been delivered.
    #[error("{0}")]
    Producer(crate::spool::fifo::BoxError),
}

struct Shared {
    state: Mutex<State>,
    /// Something for the consumer.
    came: Condvar,
    /// Something for the spill thread.
    work: Condvar,
    /// Something for those who look at the figures.
    moved: Condvar,
    /// Something for those who wait for the end alone.
    ended: Condvar,
    /// Rung for a producer that was refused. None once it has said all: whoever
    /// reads what is left keeps no descriptor of somebody else's.
    room: Mutex<Option<Arc<Wake>>>,
    hook: Hook,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("state", &self.state)
            .finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of a listener must not turn into one of ours.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After anything that may have given the producer room.
    fn let_on(&self, state: &mut State, now: Instant) {
        if state.let_on(now) {
            self.ring_for_room();
        }
    }

    fn room(&self) -> MutexGuard<'_, Option<Arc<Wake>>> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring_for_room(&self) {
        if let Some(room) = &*self.room() {
            room.ring();
        }
    }

    /// After anything that the consumer can see.
    fn tell_consumer(&self, state: &mut State) {
        if std::mem::take(&mut state.consumer_waits) {
            match &state.bell {
                Some(bell) => bell.ring(),
                None => self.came.notify_all(),
            }
        }
        state.settle();
    }

    fn tell_watchers(&self, state: &State) {
        if state.watchers > 0 {
            self.moved.notify_all();
        }
        if state.has_ended() {
            self.ended.notify_all();
        }
    }

    /// After one of the two sides has gone.
    fn tell_all(&self) {
        self.work.notify_all();
        self.moved.notify_all();
        self.ended.notify_all();
    }
}

/// A new queue under `policy`. `room` is rung when a producer that was refused
/// may go on, and when nobody wants more of it.
///
/// # Errors
/// A directory for files that was asked for and cannot be used.
pub(crate) fn elastic(
    policy: Overflow,
    room: Arc<Wake>,
    hook: Hook,
) -> Result<(Producer, Consumer, Monitor), Invalid> {
    with_share(policy, Share::alone(), room, hook)
}

/// The same for one queue of many, which have a [`budget`] together.
///
/// # Errors
/// As [`elastic`], and a budget in the environment that cannot be read.
pub(crate) fn elastic_among_others(
    policy: Overflow,
    room: Arc<Wake>,
    hook: Hook,
) -> Result<(Producer, Consumer, Monitor), Invalid> {
    budget::check()?;
    with_share(policy, Share::of_process(), room, hook)
}

fn with_share(
    policy: Overflow,
    share: Share,
    room: Arc<Wake>,
    hook: Hook,
) -> Result<(Producer, Consumer, Monitor), Invalid> {
    let disk = match policy {
        Overflow::Spill { disk, .. } if disk != Some(0) => {
            place::find()?.map(|directory| Disk::new(directory, disk))
        }
        _ => None,
    };
    Ok(assemble(
        policy,
        block_size(policy.memory()),
        disk,
        share,
        room,
        hook,
    ))
}

fn assemble(
    policy: Overflow,
    block: usize,
    disk: Option<Disk>,
    share: Share,
    room: Arc<Wake>,
    hook: Hook,
) -> (Producer, Consumer, Monitor) {
    let limit = policy
        .memory()
        .max(Overflow::LEAST_MEMORY.min(block as u64));
    let state = State::new(policy, limit, Pool::new(block), disk, share);
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        came: Condvar::new(),
        work: Condvar::new(),
        moved: Condvar::new(),
        ended: Condvar::new(),
        room: Mutex::new(Some(room)),
        hook,
    });
    (
        Producer::new(Arc::clone(&shared)),
        Consumer::new(Arc::clone(&shared)),
        Monitor::new(shared),
    )
}
