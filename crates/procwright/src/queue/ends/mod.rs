//! The ends of a queue, and what they share: its memory, and who is there.
//!
//! [`ground`] is the memory, and [`memory`] a lane's; [`page`] says who receives,
//! [`life`] whether that one lives, and [`link`] leads to it. A sender comes by an
//! [`invitation`], a [name](names), or the [start](channel) of its process.

mod appear;
mod channel;
mod ground;
mod invitation;
mod life;
mod link;
mod memory;
mod names;
mod page;
mod receiver;
mod sender;
mod stat;

pub(crate) use channel::OurEnd;
pub use invitation::Invitation;
pub use receiver::{Batch, Options, Receiver, View, Waker};
pub use sender::{Overflow, Reservation, Sender};
pub use stat::{Asleep, LaneStat, LaneState, ReceiverStat, ReceiverState, Stat, names, stat};

/// What a fork is told that uses what was lent before.
const NOT_HERE: &str = "this message is of the process that this one was forked from";

/// A millisecond, between two looks at what another process is in the middle of. Nobody
/// tells that a lock is free but to who waits for nothing else, and that may be for ever:
/// a receiver can live for long. And nobody tells that a page was written.
#[expect(clippy::disallowed_methods, reason = "as it says")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(1));
}
