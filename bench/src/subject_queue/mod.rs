//! What the subjects of the suite `queue` share: processes that talk, the bytes that
//! they send, and the loops around it. A way to send bytes is a [`Way`]; here are
//! ours and the floors, the peers are in `peers/queue`.
//!
//! Every message is written whole and read whole, word by word, whoever carries it:
//! nobody is fast by not touching the bytes.

pub mod burst;
pub mod case;
pub mod count;
pub mod floor;
pub mod growth;
#[cfg(feature = "ours")]
pub mod ours;
pub mod party;
pub mod payload;
pub mod rate;
pub mod trip;

use std::os::unix::net::UnixStream;

/// What is to be sent, and how to wait for it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Bytes of a message, a multiple of 8.
    pub length: usize,
    /// How many send.
    pub senders: usize,
    /// Whether who waits looks again and again, instead of sleeping.
    pub is_spinning: bool,
    /// Bytes of messages that must have room before any is received, or 0.
    pub room: usize,
}

impl Plan {
    /// How to wait between two looks.
    pub fn pause(&self) -> Pause {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Pause {
            looks: 0,
            patience: match self.senders < cpus {
                true => ALONE,
                false => CROWDED,
            },
        }
    }
}

/// So many looks before the processor is offered to others, where each party has
/// one of its own. Something else may want it all the same.
const ALONE: u32 = 1 << 16;
/// The same where there are more who spin than processors.
const CROWDED: u32 = 1 << 7;

/// Between two looks of who spins.
#[derive(Clone, Copy, Debug)]
pub struct Pause {
    looks: u32,
    patience: u32,
}

impl Pause {
    /// Another look was in vain.
    #[inline]
    pub fn pause(&mut self) {
        std::hint::spin_loop();
        self.looks += 1;
        if self.looks >= self.patience {
            self.looks = 0;
            let _ = nix::sched::sched_yield();
        }
    }
}

/// A way to bring bytes from many senders to one receiver.
pub trait Way {
    /// What there is before the processes part: all of them have it.
    type Common: Sync;
    /// The receiving end.
    type Rx: Rx;
    /// The sending end.
    type Tx: Tx;

    /// Whether the parties are threads, because it goes no further.
    const IS_OF_THREADS: bool = false;

    /// # Errors
    /// Why it cannot be had here, or not for this plan.
    fn common(plan: &Plan) -> Result<Self::Common, String>;

    /// In the receiver's process; each sender has the other end of a door.
    fn receiver(common: &Self::Common, plan: &Plan, doors: &[UnixStream]) -> Self::Rx;

    /// In the process of the sender of that number.
    fn sender(common: &Self::Common, plan: &Plan, number: usize, door: &UnixStream) -> Self::Tx;
}

/// A receiving end.
pub trait Rx {
    /// Waits for a message and has it read, and maybe others that are there.
    fn recv(&mut self, read: impl FnMut(&[u8]));

    /// Bytes of memory that the queue has now, if that can be told.
    fn held(&mut self) -> Option<u64> {
        None
    }

    /// All senders are there now.
    fn meet(&mut self) {}

    /// Looks once more when all was received, as a receiver would.
    fn rest(&mut self) {}
}

/// A sending end.
pub trait Tx {
    /// Sends a message of that length, which `fill` writes, maybe more than once. Waits
    /// for room.
    fn send(&mut self, length: usize, fill: impl FnMut(&mut [u8]));

    /// Sends many, which may be shown to the receiver at once.
    fn send_many(&mut self, count: u64, length: usize, mut fill: impl FnMut(u64, &mut [u8])) {
        for number in 0..count {
            self.send(length, |bytes| fill(number, bytes));
        }
    }
}
