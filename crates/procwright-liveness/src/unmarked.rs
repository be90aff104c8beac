//! A token whose word the kernel does not mark: the word tells of its release, the
//! pidfd of its holder's end.
//!
//! A long wait for a word that the kernel does mark has this as a guard: so it ends
//! with the holder, whatever became of the word and of wake-ups.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::process_watch::{ProcessWatch, UNKNOWN};
use super::unmarked_sleepers::UnmarkedSleepers;
use super::withdrawal::Withdrawal;
use procwright_os::robust::{LiveWord, OWNER_DIED, says_alive, sleep};
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;
use procwright_process::Process;

/// Time between two looks at the holder when the kernel refuses every wait.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A watch of a word by itself and by the process of its holder.
#[derive(Debug)]
pub(super) struct UnmarkedWatch {
    sleepers: Arc<UnmarkedSleepers>,
    /// The holder; none if it was gone already.
    holder: Option<(Process, ProcessWatch)>,
}

impl UnmarkedWatch {
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn new(word: LiveWord, holder: Option<&Process>) -> io::Result<UnmarkedWatch> {
        UnmarkedWatch::watching(Arc::new(word), holder)
    }

    fn watching(word: Arc<LiveWord>, holder: Option<&Process>) -> io::Result<UnmarkedWatch> {
        let sleepers = Arc::new(UnmarkedSleepers::new(word));
        let watched =
            holder.map(|process| ProcessWatch::with_sleepers(process, Some(Arc::clone(&sleepers))));
        Ok(UnmarkedWatch {
            sleepers,
            holder: holder.cloned().zip(watched.transpose()?),
        })
    }

    /// The word, which tells of the release.
    pub(super) fn word(&self) -> &LiveWord {
        &self.sleepers.word
    }

    /// Makes `wake` readable when the holder has died. The first call counts: there
    /// is one descriptor for a monitor.
    ///
    /// # Errors
    /// `Unsupported` in a fork of the process that has made this: its thread is not
    /// there.
    pub(super) fn ring_too(&self, wake: &Arc<Wake>) -> io::Result<()> {
        let wake = match self.sleepers.wake.get() {
            Some(wake) => wake,
            None => self.sleepers.wake.get_or_insert(Arc::clone(wake)),
        };
        // With the fence in `wake_all`: either that sees the descriptor, or the look
        // below sees the flag.
        fence(Ordering::SeqCst);
        match &self.holder {
            Some(_) if !self.is_told() => Err(io::ErrorKind::Unsupported.into()),
            _ => {
                if self.holder_has_died() {
                    wake.ring();
                }
                Ok(())
            }
        }
    }

    pub(super) fn alive(&self) -> bool {
        says_alive(self.sleepers.word.load()) && !self.holder_has_died()
    }

    /// Whether the token was released; false if its holder died with it.
    pub(super) fn was_released(&self) -> bool {
        self.sleepers.word.load() == 0
    }

    pub(super) fn has_ended(&self) {
        if let Some((_, watched)) = &self.holder {
            watched.has_ended();
        }
    }

    fn holder_has_died(&self) -> bool {
        let Some((process, watched)) = &self.holder else {
            return true;
        };
        match watched.flag.word().load(Ordering::SeqCst) {
            UNKNOWN => !process.is_alive(),
            flag => flag & OWNER_DIED != 0,
        }
    }

    /// Sleeps until the peer does not live any more, or the deadline comes.
    pub(super) fn wait(&self, deadline: Deadline, withdrawal: &Withdrawal) {
        if self.holder.is_none() || self.wait_told(deadline, withdrawal) {
            return;
        }
        // The kernel refuses the wait for the process. A release still shows at once.
        while self.alive() && !withdrawal.has_left() && !deadline.reached(Instant::now()) {
            let look = Deadline::at(Instant::now() + POLL_INTERVAL);
            let word = &self.sleepers.word;
            sleep(word.word(), word.load(), deadline.min(look));
        }
    }

    /// Sleeps as [`wait`](Self::wait) does; false, at once, if no thread tells of the
    /// holder's end.
    pub(super) fn wait_told(&self, deadline: Deadline, withdrawal: &Withdrawal) -> bool {
        if self.is_told() && self.sleep(deadline, withdrawal) {
            return true;
        }
        // In a fork no thread would wake this one, and the counted sleepers are those
        // of the parent: the fork makes a watch of its own.
        let word = Arc::clone(&self.sleepers.word);
        let holder = self.holder.as_ref().map(|(process, _)| process);
        UnmarkedWatch::watching(word, holder)
            .is_ok_and(|own| own.is_told() && own.sleep(deadline, withdrawal))
    }

    fn is_told(&self) -> bool {
        let flag = self.holder.as_ref().map(|(_, watched)| &watched.flag);
        flag.is_some_and(|flag| flag.word().load(Ordering::SeqCst) != UNKNOWN)
    }

    /// Sleeps on the word; false if no thread tells of the end any more.
    fn sleep(&self, deadline: Deadline, withdrawal: &Withdrawal) -> bool {
        self.sleepers.count.fetch_add(1, Ordering::SeqCst);
        let word = &self.sleepers.word;
        let told = loop {
            let now = word.load();
            // With the fence in `wake_all`: either this thread is counted there, or it
            // sees the flag here.
            fence(Ordering::SeqCst);
            if !self.is_told() {
                // The waker waits until all sleepers have left.
                break false;
            }
            let is_over = !says_alive(now) || self.holder_has_died();
            if is_over || withdrawal.has_left() || deadline.reached(Instant::now()) {
                break true;
            }
            sleep(word.word(), now, deadline);
        };
        self.sleepers.count.fetch_sub(1, Ordering::SeqCst);
        told
    }
}
