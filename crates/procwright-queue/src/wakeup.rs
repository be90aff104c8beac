//! How an end announces that it sleeps, and how the other decides whether to wake it,
//! without a lost wake-up and without a system call while both are awake.
//!
//! Each side writes one thing and then reads what the other writes:
//!
//! 1. A sender shows a message, then looks whether the receiver sleeps.
//! 2. The receiver announces its sleep, then looks once more for messages.
//!
//! A full fence between the two steps of each side makes it impossible that both miss the
//! other (the pattern of two stores and two loads, Dekker's).
//!
//! A sender may be stopped or killed between any two steps, and must not keep the others
//! from waking the receiver. So the receiver alone says that it is awake again, and each
//! sender wakes it once for each of its sleeps, whatever the others have done. Nearly
//! always that is one system call for a sleep.

use procwright_os::fence;
use procwright_os::sync::{AtomicU32, Ordering};

/// State of a receiver that is not awake: what it sleeps on.
#[doc(alias = "futex")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asleep {
    /// Asleep on a futex word: the receiver was awake some milliseconds ago.
    Word,
    /// Asleep on its descriptor.
    Descriptor,
}

const AWAKE: u32 = 0;
/// The lowest two bits of the word: how the receiver sleeps. All others number its sleeps.
const MODE: u32 = 3;
const WORD: u32 = 1;
const DESCRIPTOR: u32 = 2;
/// The receiver sleeps on the word, and a sender is waking it.
const BEING_WOKEN: u32 = 3;

impl Asleep {
    /// The word for it in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Asleep::Word => "word",
            Asleep::Descriptor => "descriptor",
        }
    }

    /// How the receiver sleeps if its word has this value; none if it is awake.
    #[cfg_attr(procwright_loom, allow(dead_code))]
    pub(crate) fn from_word(word: u32) -> Option<Asleep> {
        match word & MODE {
            DESCRIPTOR => Some(Asleep::Descriptor),
            WORD | BEING_WOKEN => Some(Asleep::Word),
            _ => None,
        }
    }
}

/// The receiver's side.
#[derive(Debug, Default)]
pub(crate) struct ReceiverSleep {
    sleeps: u32,
}

impl ReceiverSleep {
    /// A receiver that numbers its sleeps from `number` on. One that takes over passes a
    /// random number: a sender that has not noticed the change has woken the last receiver
    /// from a sleep of some number, and that number must not come again soon.
    pub(crate) fn starting_at(number: u64) -> ReceiverSleep {
        let sleeps = (number % u64::from(u32::MAX >> 2)) as u32;
        ReceiverSleep { sleeps }
    }

    /// Announces a sleep, before the last look for messages. Returns the value that the
    /// word has from now on; the sleep lasts as long as it has that.
    ///
    /// The store may be relaxed: the fence orders it before the loads of the last look. The
    /// sender's fence in [`WakeOnce::wake_needed`] is its counterpart.
    pub(crate) fn announce(&mut self, word: &AtomicU32, how: Asleep) -> u32 {
        // Numbers begin at 1: a sender that has never woken anybody has 0 as its last one.
        self.sleeps = self.sleeps % (u32::MAX >> 2) + 1;
        let way = match how {
            Asleep::Word => WORD,
            Asleep::Descriptor => DESCRIPTOR,
        };
        let value = self.sleeps << 2 | way;
        word.store(value, Ordering::Relaxed);
        fence::full();
        value
    }

    /// Ends a sleep, for whatever reason it ended. Relaxed: a sender that still reads the
    /// old value makes one system call too many, and nothing else follows from it.
    pub(crate) fn end(&self, word: &AtomicU32) {
        word.store(AWAKE, Ordering::Relaxed);
    }
}

/// A sender's side.
#[derive(Debug)]
pub(crate) struct WakeOnce {
    /// Number of the sleep that this sender has ended last, in the word's upper bits.
    /// Numbers come again after 2^30 sleeps, which takes hours at the least. A sender that
    /// was silent for exactly so many sleeps would not wake the receiver.
    last: u32,
}

impl WakeOnce {
    pub(crate) fn new() -> WakeOnce {
        WakeOnce { last: AWAKE }
    }

    /// Way in which the receiver is to be woken after a message was shown; none if it need
    /// not be.
    ///
    /// The fence orders the tail's store before the load of the word: if that still says
    /// "awake", the receiver's last look comes after its own fence and sees the message.
    #[inline]
    pub(crate) fn wake_needed(&mut self, word: &AtomicU32) -> Option<Asleep> {
        fence::full();
        match word.load(Ordering::Relaxed) {
            AWAKE => None,
            value => self.choose(word, value),
        }
    }

    #[cold]
    fn choose(&mut self, word: &AtomicU32, value: u32) -> Option<Asleep> {
        let sleep = value & !MODE;
        if sleep == self.last {
            return None;
        }
        self.last = sleep;
        match value & MODE {
            DESCRIPTOR => Some(Asleep::Descriptor),
            WORD => {
                // The receiver may not have gone to sleep yet: a changed word keeps it from
                // doing so. A failed exchange means that another sender was first, or that
                // the receiver is awake. Relaxed: the message is ordered by the tail, and
                // the word carries nothing else.
                let rung = sleep | BEING_WOKEN;
                let _ = word.compare_exchange(value, rung, Ordering::Relaxed, Ordering::Relaxed);
                Some(Asleep::Word)
            }
            // The sender that has stored this may have been stopped before its system call.
            _ => Some(Asleep::Word),
        }
    }
}

/// Sleep of a sender that waits for room, and its end by the receiver: one sleeper and one
/// waker for each word. If the receiver is killed, its liveness word wakes the sender.
pub(crate) mod space {
    use super::{AtomicU32, Ordering, fence};

    pub(crate) const WAITING: u32 = 1;

    /// Announces the wait, before the last look at the head. The fence orders this store
    /// before that look; its counterpart is in [`take_waiter`].
    pub(crate) fn announce_wait(space: &AtomicU32) {
        space.store(WAITING, Ordering::Relaxed);
        fence::full();
    }

    /// Returns whether a sender is to be woken, after room was made. The fence orders the
    /// head's store before the load of the word: either the sender's last look sees the
    /// head, or this load sees the sender.
    #[inline]
    pub(crate) fn take_waiter(space: &AtomicU32) -> bool {
        fence::full();
        // Relaxed: the word carries nothing but the wish to be woken.
        space.load(Ordering::Relaxed) != 0 && {
            space.store(0, Ordering::Relaxed);
            true
        }
    }

    /// Ends the wait.
    pub(crate) fn end_wait(space: &AtomicU32) {
        space.store(0, Ordering::Relaxed);
    }
}

/// Sleep of the senders that wait for a lane, and its end by whoever frees one. They may be
/// many, and each lane that becomes free is a reason to look for all of them.
///
/// The lowest bit of the word says that somebody waits; all others count how often they
/// were woken. *Not the bit alone:* of two that wait,
///
/// 1. the first has looked in vain, and is about to sleep;
/// 2. two lanes become free, one after the other: the bit is taken away once;
/// 3. the second sets it again, looks, and takes one of the two lanes;
/// 4. the first finds the bit set and sleeps, although a lane is free.
pub(crate) mod lane {
    use super::{AtomicU32, Ordering, fence};

    const AWAITED: u32 = 1;

    /// Announces a wait, before the last look for a lane. Returns the value of the word
    /// while it lasts. The fence orders this store before the look; its counterpart is in
    /// [`take_waiters`].
    pub(crate) fn announce_wait(freed: &AtomicU32) -> u32 {
        // Relaxed: the word carries nothing but the wish to be woken.
        let value = freed.fetch_or(AWAITED, Ordering::Relaxed) | AWAITED;
        fence::full();
        value
    }

    /// Returns whether there are senders to be woken, after a lane was freed.
    pub(crate) fn take_waiters(freed: &AtomicU32) -> bool {
        fence::full();
        let value = freed.load(Ordering::Relaxed);
        let is_awaited = value & AWAITED != 0;
        if is_awaited {
            // Another one that frees a lane may be faster, and be stopped before it wakes
            // anybody: so both do.
            let (next, relaxed) = (value.wrapping_add(1), Ordering::Relaxed);
            let _ = freed.compare_exchange(value, next, relaxed, relaxed);
        }
        is_awaited
    }
}

#[cfg(all(test, not(procwright_loom)))]
mod tests {
    use super::*;

    /// Numbers of sleeps begin anew after 2^30; no sleep may have the number of none.
    #[test]
    fn every_sleep_is_woken_once() {
        let word = AtomicU32::new(AWAKE);
        let mut sleeper = ReceiverSleep {
            sleeps: (u32::MAX >> 2) - 2,
        };
        let mut old = WakeOnce::new();
        for how in [Asleep::Word, Asleep::Descriptor]
            .into_iter()
            .cycle()
            .take(8)
        {
            sleeper.announce(&word, how);
            assert_eq!(WakeOnce::new().wake_needed(&word), Some(how));
            assert_eq!(old.wake_needed(&word), Some(how));
            assert_eq!(old.wake_needed(&word), None);
            sleeper.end(&word);
            assert_eq!(old.wake_needed(&word), None);
        }
    }
}
