//! The bell for those who wait for a holder whose death changes no word.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::sys::fork::Once;
use crate::sys::robust::{Word, wake};
use crate::sys::wake::Wake;

/// Wakes those who sleep on a word that does not change when the holder dies.
#[derive(Debug)]
pub(super) struct Bell {
    pub(super) word: Arc<Word>,
    /// Threads of this process that sleep on it, or are about to.
    pub(super) sleepers: AtomicU32,
    /// For event loops, once one was asked for.
    pub(super) wake: Once<Arc<Wake>>,
}

impl Bell {
    pub(super) fn new(word: Arc<Word>) -> Bell {
        Bell {
            word,
            sleepers: AtomicU32::new(0),
            wake: Once::new(),
        }
    }

    /// Once the flag says that the holder has `died`, or that nobody will say so: all
    /// who sleep have to look at it.
    ///
    /// We cannot change the word, so that one who has looked at the flag before and
    /// sleeps only after this wake would not be woken. So again, until all have
    /// left; each takes but as long as it takes to fall asleep. It happens once, for
    /// the death of a peer, where words are not marked.
    pub(super) fn ring(&self, died: bool) {
        fence(Ordering::SeqCst);
        if died && let Some(wake) = self.wake.get() {
            wake.ring();
        }
        while self.sleepers.load(Ordering::SeqCst) != 0 {
            wake(self.word.word());
            std::thread::yield_now();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::sys::robust::{AWAITED, Flag, sleep};
    use crate::time::Deadline;

    #[test]
    fn who_falls_asleep_after_the_bell_was_rung_is_woken() {
        let flag = Arc::new(Flag::new(AWAITED | 1).unwrap());
        let bell = Bell::new(Arc::new(Word::of_flag(&flag)));
        bell.sleepers.store(1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| bell.ring(true));
            // Most likely it has rung by then.
            std::thread::park_timeout(std::time::Duration::from_millis(20));
            sleep(flag.word(), AWAITED | 1, Deadline::NEVER);
            bell.sleepers.store(0, Ordering::SeqCst);
        });
    }
}
