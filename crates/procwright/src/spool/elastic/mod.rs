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
//! six blocks of `block_size`, 1.5 MiB with the default: the front
//! block of which a part is gone, the one in the consumer's hand, the one being
//! filled, the one being spilled, and what is read into that will be dropped or
//! was on disk. The bookkeeping is a few dozen bytes for each block.

mod accounts;
mod arrivals;
mod block_pool;
mod broken;
mod consumer;
mod entry;
mod event;
mod figures;
mod monitor;
mod producer;
mod shared;
mod sides;
mod spill_files;
mod spill_thread;
mod state;
mod storage;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::spool::budget::{self, Share};
use crate::spool::overflow::Overflow;
use crate::spool::spool_dir;
use procwright_os::Invalid;
use procwright_os::wake::Wake;

pub use broken::Broken;
pub(crate) use consumer::{Closer, ElasticConsumer, Peek, ReadOutcome, ReadinessFd, Woken};
pub use event::Event;
pub(crate) use event::Hook;
pub use figures::Figures;
pub use monitor::Monitor;
pub(crate) use producer::{Destination, ElasticProducer, Space};

use block_pool::{BlockPool, block_size};
use shared::ElasticShared;
use spill_files::SpillFiles;
use state::QueueState;
use storage::Storage;

/// The two sides of a queue, and a view of it.
pub(crate) type Elastic = (ElasticProducer, ElasticConsumer, Monitor);

/// The blocks that may exist beyond the bytes that may be kept.
#[cfg(test)]
const SLACK_BLOCKS: usize = 6;

/// A new queue under `policy`. `room` is rung when a producer that was refused
/// may go on, and when nothing more is wanted of it.
///
/// # Errors
/// A directory for files that was asked for and cannot be used.
pub(crate) fn elastic(policy: Overflow, room: Arc<Wake>, hook: Hook) -> Result<Elastic, Invalid> {
    with_share(policy, Share::alone(), room, hook)
}

/// A new queue, as [`elastic`] makes it, that has a [`budget`] together with all others
/// that are made by this.
///
/// # Errors
/// As [`elastic`], and a budget in the environment that cannot be read.
pub(crate) fn elastic_among_others(
    policy: Overflow,
    room: Arc<Wake>,
    hook: Hook,
) -> Result<Elastic, Invalid> {
    budget::check()?;
    with_share(policy, Share::of_process(), room, hook)
}

fn with_share(
    policy: Overflow,
    share: Share,
    room: Arc<Wake>,
    hook: Hook,
) -> Result<Elastic, Invalid> {
    let disk = match policy {
        Overflow::Spill { disk, .. } if disk != Some(0) => {
            spool_dir::directory()?.map(|directory| SpillFiles::new(directory, disk))
        }
        _ => None,
    };
    let block = block_size(policy.memory());
    Ok(assemble(policy, block, disk, share, room, hook))
}

fn assemble(
    policy: Overflow,
    block: usize,
    disk: Option<SpillFiles>,
    share: Share,
    room: Arc<Wake>,
    hook: Hook,
) -> Elastic {
    let limit = policy
        .memory()
        .max(Overflow::LEAST_MEMORY.min(block as u64));
    let storage = Storage::new(limit, share, BlockPool::new(block), disk);
    let state = QueueState::new(policy, storage);
    let shared = Arc::new(ElasticShared::new(state, room, hook));
    (
        ElasticProducer::new(Arc::clone(&shared)),
        ElasticConsumer::new(Arc::clone(&shared)),
        Monitor::new(shared),
    )
}
