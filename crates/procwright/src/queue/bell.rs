//! Going to sleep without missing what comes just before, and waking without a
//! system call for who is awake.
//!
//! Both sides write one thing and read the other: a sender shows a message, then
//! looks whether the receiver sleeps; the receiver says that it sleeps, then looks
//! once more for messages. A full fence in the middle of each makes it impossible
//! that both miss the other.
//!
//! Who wakes may be stopped or killed between any two steps, and must not keep the
//! others from waking: so the receiver alone says that it is awake again, and each
//! sender rings once for each of its sleeps, whatever others have done. Nearly
//! always that is one system call for a sleep.

use crate::sync::{AtomicU32, Ordering, fence};

/// How a receiver sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleep {
    /// On the bell's word.
    Word,
    /// On its descriptor.
    Link,
}

const AWAKE: u32 = 0;
/// The lowest two bits; the others number the sleeps.
const WAY: u32 = 3;
const WORD: u32 = 1;
const LINK: u32 = 2;
/// It sleeps on the word, and somebody is waking it.
const RUNG: u32 = 3;

impl Sleep {
    /// How it sleeps while the bell is this; none if it is awake.
    #[cfg_attr(procwright_loom, allow(dead_code))]
    pub(crate) fn of(bell: u32) -> Option<Sleep> {
        match bell & WAY {
            LINK => Some(Sleep::Link),
            WORD | RUNG => Some(Sleep::Word),
            _ => None,
        }
    }
}

/// The receiver's side.
#[derive(Debug, Default)]
pub(crate) struct Sleeper {
    sleeps: u32,
}

impl Sleeper {
    /// One that numbers its sleeps from another number on. Who takes over takes one at
    /// random: a sender that has not noticed yet has rung for one of the last
    /// receiver's, and that number must not come again soon.
    pub(crate) fn after(number: u64) -> Sleeper {
        let sleeps = (number % u64::from(u32::MAX >> 2)) as u32;
        Sleeper { sleeps }
    }

    /// To be said before the last look. What the word is then is returned: it is
    /// to be slept on as long as it is that.
    pub(crate) fn arm(&mut self, bell: &AtomicU32, how: Sleep) -> u32 {
        // From 1: who has never rung has rung for number 0.
        self.sleeps = self.sleeps % (u32::MAX >> 2) + 1;
        let way = match how {
            Sleep::Word => WORD,
            Sleep::Link => LINK,
        };
        let value = self.sleeps << 2 | way;
        bell.store(value, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        value
    }

    /// To be said after the sleep, whoever ended it.
    pub(crate) fn disarm(&self, bell: &AtomicU32) {
        bell.store(AWAKE, Ordering::Relaxed);
    }
}

/// A sender's side.
#[derive(Debug)]
pub(crate) struct Ringer {
    /// What the bell was, but for the way, when it was rung last. After 2^30
    /// sleeps that number comes again. Who has been silent for all of those, to
    /// the very one, does not ring: hours at the least, and one in a thousand
    /// million then.
    last: u32,
}

impl Ringer {
    pub(crate) fn new() -> Ringer {
        Ringer { last: AWAKE }
    }

    /// To be called after something was shown: in which way the receiver is to be
    /// woken, none if it need not be.
    #[inline]
    pub(crate) fn ring(&mut self, bell: &AtomicU32) -> Option<Sleep> {
        fence(Ordering::SeqCst);
        match bell.load(Ordering::Relaxed) {
            AWAKE => None,
            value => self.answer(bell, value),
        }
    }

    #[cold]
    fn answer(&mut self, bell: &AtomicU32, value: u32) -> Option<Sleep> {
        let sleep = value & !WAY;
        if sleep == self.last {
            return None;
        }
        self.last = sleep;
        match value & WAY {
            LINK => Some(Sleep::Link),
            WORD => {
                // It may not have gone to sleep yet: then it will not. If somebody
                // else was first, or it is awake, so much the better.
                let rung = sleep | RUNG;
                let _ = bell.compare_exchange(value, rung, Ordering::Relaxed, Ordering::Relaxed);
                Some(Sleep::Word)
            }
            // Who said so may have been stopped before it woke anybody.
            _ => Some(Sleep::Word),
        }
    }
}

/// The same for one who sleeps and one who wakes: a sender without room, and the
/// receiver. If the receiver is killed, its own word wakes the sender.
pub(crate) mod space {
    use super::{AtomicU32, Ordering, fence};

    pub(crate) const WAITS: u32 = 1;

    /// To be said before the last look.
    pub(crate) fn wait(space: &AtomicU32) {
        space.store(WAITS, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// To be called after room was made: whether somebody is to be woken.
    #[inline]
    pub(crate) fn made(space: &AtomicU32) -> bool {
        fence(Ordering::SeqCst);
        space.load(Ordering::Relaxed) != 0 && {
            space.store(0, Ordering::Relaxed);
            true
        }
    }

    /// To be said after the sleep.
    pub(crate) fn waited(space: &AtomicU32) {
        space.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(procwright_loom)))]
mod tests {
    use super::*;

    /// Their number begins anew; no sleep may have that of none.
    #[test]
    fn every_sleep_is_rung_for() {
        let bell = AtomicU32::new(AWAKE);
        let mut sleeper = Sleeper {
            sleeps: (u32::MAX >> 2) - 2,
        };
        let mut old = Ringer::new();
        for how in [Sleep::Word, Sleep::Link].into_iter().cycle().take(8) {
            sleeper.arm(&bell, how);
            assert_eq!(Ringer::new().ring(&bell), Some(how));
            assert_eq!(old.ring(&bell), Some(how));
            assert_eq!(old.ring(&bell), None);
            sleeper.disarm(&bell);
            assert_eq!(old.ring(&bell), None);
        }
    }
}
