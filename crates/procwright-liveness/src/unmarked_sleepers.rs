//! Waking threads that sleep on a word which the death of its holder does not change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use procwright_os::fork::OnceBox;
use procwright_os::robust::{LiveWord, wake};
use procwright_os::wake::Wake;

/// The threads that sleep on a word that does not change when the holder dies.
#[derive(Debug)]
pub(super) struct UnmarkedSleepers {
    pub(super) word: Arc<LiveWord>,
    /// Number of threads of this process that sleep on the word, or are about to.
    pub(super) count: AtomicU32,
    /// Descriptor for an event loop, once one was asked for.
    pub(super) wake: OnceBox<Arc<Wake>>,
}

impl UnmarkedSleepers {
    pub(super) fn new(word: Arc<LiveWord>) -> UnmarkedSleepers {
        UnmarkedSleepers {
            word,
            count: AtomicU32::new(0),
            wake: OnceBox::new(),
        }
    }

    /// Makes every sleeper look at the flag, which has just been set: the holder has
    /// `died`, or nothing will tell of its death.
    ///
    /// The word cannot be changed from here, so one wake is not enough:
    ///
    /// 1. A thread reads the flag: alive.
    /// 2. The flag is set, and this wakes all sleepers.
    /// 3. The thread falls asleep on the unchanged word, for ever.
    ///
    /// So this wakes again until the count is 0, which takes as long as a thread
    /// needs to fall asleep. It happens once for each death of a peer whose words
    /// are not marked.
    pub(super) fn wake_all(&self, died: bool) {
        // With the fence of the sleeper between its count and its look at the flag:
        // either it sees the flag, or the loop below sees its count.
        fence(Ordering::SeqCst);
        if died && let Some(wake) = self.wake.get() {
            wake.ring();
        }
        while self.count.load(Ordering::SeqCst) != 0 {
            wake(self.word.word());
            std::thread::yield_now();
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use procwright_os::robust::{Flag, WAITERS, sleep};
    use procwright_os::time::Deadline;

    #[test]
    fn a_thread_that_falls_asleep_after_the_first_wake_is_woken() {
        let flag = Arc::new(Flag::new(WAITERS | 1).unwrap());
        let sleepers = UnmarkedSleepers::new(Arc::new(LiveWord::of_flag(&flag)));
        sleepers.count.store(1, Ordering::SeqCst);
        std::thread::scope(|scope| {
            scope.spawn(|| sleepers.wake_all(true));
            // The first wake has most likely passed by then.
            std::thread::park_timeout(std::time::Duration::from_millis(20));
            sleep(flag.word(), WAITERS | 1, Deadline::NEVER);
            sleepers.count.store(0, Ordering::SeqCst);
        });
    }
}
