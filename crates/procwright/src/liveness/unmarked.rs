//! A token whose word the kernel does not mark: the word tells of its release, the
//! pidfd of its holder's end.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::monitor::says_alive;
use super::watcher::{UNKNOWN, Watched};
use crate::process::Process;
use crate::sys::robust::{DIED, Word, sleep, wake};
use crate::sys::wake::Wake;
use crate::time::Deadline;
use crate::wait::Event;

/// Watches such a token.
#[derive(Debug)]
pub(super) struct Unmarked {
    bell: Arc<Bell>,
    /// None if it was gone already.
    holder: Option<(Process, Watched)>,
}

/// Wakes those who sleep on a word that does not change when the holder dies.
#[derive(Debug)]
pub(super) struct Bell {
    word: Arc<Word>,
    /// Threads of this process that sleep on it, or are about to.
    sleepers: AtomicU32,
    /// For event loops, once one was asked for.
    wake: OnceLock<Arc<Wake>>,
}

impl Bell {
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

impl Unmarked {
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn new(word: Word, holder: Option<&Process>) -> io::Result<Unmarked> {
        Unmarked::watching(Arc::new(word), holder)
    }

    fn watching(word: Arc<Word>, holder: Option<&Process>) -> io::Result<Unmarked> {
        let bell = Arc::new(Bell {
            word,
            sleepers: AtomicU32::new(0),
            wake: OnceLock::new(),
        });
        let watched = holder.map(|process| Watched::with_bell(process, Some(Arc::clone(&bell))));
        Ok(Unmarked {
            bell,
            holder: holder.cloned().zip(watched.transpose()?),
        })
    }

    /// The word, which tells of the release.
    pub(super) fn word(&self) -> &Word {
        &self.bell.word
    }

    /// Rings when the holder has died. One only: of the monitor that this is of.
    ///
    /// # Errors
    /// In a fork, where nobody is told, unless this was made there.
    pub(super) fn ring_too(&self, wake: &Arc<Wake>) -> io::Result<()> {
        let wake = self.bell.wake.get_or_init(|| Arc::clone(wake));
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
        says_alive(self.bell.word.load()) && !self.holder_has_died()
    }

    /// Not so if it died while it held it.
    pub(super) fn was_released(&self) -> bool {
        self.bell.word.load() == 0
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
            flag => flag & DIED != 0,
        }
    }

    /// Sleeps until it is not alive any more, or the deadline comes.
    pub(super) fn wait(&self, deadline: Deadline) {
        let Some((process, watched)) = &self.holder else {
            return;
        };
        if watched.flag.word().load(Ordering::SeqCst) != UNKNOWN {
            return self.sleep(deadline);
        }
        // This is a fork: nobody would ring. And the sleepers that were counted are
        // not here.
        let word = Arc::clone(&self.bell.word);
        match Unmarked::watching(word, Some(process)) {
            Ok(own) if own.is_told() => own.sleep(deadline),
            // The kernel does not let our thread wait. Then it is all that can be
            // waited for.
            _ => drop(process.wait_until(Event::Exited, deadline)),
        }
    }

    fn is_told(&self) -> bool {
        let flag = self.holder.as_ref().map(|(_, watched)| &watched.flag);
        flag.is_some_and(|flag| flag.word().load(Ordering::SeqCst) != UNKNOWN)
    }

    fn sleep(&self, deadline: Deadline) {
        self.bell.sleepers.fetch_add(1, Ordering::SeqCst);
        let word = &self.bell.word;
        loop {
            let now = word.load();
            fence(Ordering::SeqCst);
            if !says_alive(now) || self.holder_has_died() || deadline.reached(Instant::now()) {
                break;
            }
            sleep(word.word(), now, deadline);
        }
        self.bell.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::sys::robust::{AWAITED, Flag};

    #[test]
    fn who_falls_asleep_after_the_bell_was_rung_is_woken() {
        let flag = Arc::new(Flag::new(AWAITED | 1).unwrap());
        let bell = Bell {
            word: Arc::new(Word::of_flag(&flag)),
            sleepers: AtomicU32::new(1),
            wake: OnceLock::new(),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| bell.ring(true));
            // Most likely it has rung by then.
            std::thread::park_timeout(std::time::Duration::from_millis(20));
            sleep(flag.word(), AWAITED | 1, Deadline::NEVER);
            bell.sleepers.store(0, Ordering::SeqCst);
        });
    }
}
