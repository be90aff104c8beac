//! A token whose word the kernel does not mark: the word tells of its release, the
//! pidfd of its holder's end.
//!
//! Who waits long for a word that the kernel does mark has this besides: so a wait
//! ends with the holder, whatever became of word and wake-ups.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

use super::bell::Bell;
use super::watcher::{UNKNOWN, Watched};
use crate::process::Process;
use crate::sys::robust::{DIED, Word, says_alive, sleep};
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// How often the holder is asked for when all else fails.
const LOOKS: Duration = Duration::from_millis(10);

/// Watches such a token.
#[derive(Debug)]
pub(super) struct Unmarked {
    bell: Arc<Bell>,
    /// None if it was gone already.
    holder: Option<(Process, Watched)>,
}

impl Unmarked {
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn new(word: Word, holder: Option<&Process>) -> io::Result<Unmarked> {
        Unmarked::watching(Arc::new(word), holder)
    }

    fn watching(word: Arc<Word>, holder: Option<&Process>) -> io::Result<Unmarked> {
        let bell = Arc::new(Bell::new(word));
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
        let wake = match self.bell.wake.get() {
            Some(wake) => wake,
            None => self.bell.wake.put(Arc::clone(wake)),
        };
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
        if self.holder.is_none() || self.wait_told(deadline) {
            return;
        }
        // The kernel does not let our thread wait. The word still tells at once.
        while self.alive() && !deadline.reached(Instant::now()) {
            let look = Deadline::at(Instant::now() + LOOKS);
            let word = &self.bell.word;
            sleep(word.word(), word.load(), deadline.min(look));
        }
    }

    /// The same, unless nobody tells of the holder's end: then it is false, and
    /// returns at once.
    pub(super) fn wait_told(&self, deadline: Deadline) -> bool {
        if self.is_told() && self.sleep(deadline) {
            return true;
        }
        // If this is a fork, nobody would ring, and the sleepers that were counted
        // are not here.
        let word = Arc::clone(&self.bell.word);
        let holder = self.holder.as_ref().map(|(process, _)| process);
        Unmarked::watching(word, holder).is_ok_and(|own| own.is_told() && own.sleep(deadline))
    }

    fn is_told(&self) -> bool {
        let flag = self.holder.as_ref().map(|(_, watched)| &watched.flag);
        flag.is_some_and(|flag| flag.word().load(Ordering::SeqCst) != UNKNOWN)
    }

    /// False if nobody tells any more.
    fn sleep(&self, deadline: Deadline) -> bool {
        self.bell.sleepers.fetch_add(1, Ordering::SeqCst);
        let word = &self.bell.word;
        let told = loop {
            let now = word.load();
            fence(Ordering::SeqCst);
            if !self.is_told() {
                // Whoever rings waits for all to leave.
                break false;
            }
            if !says_alive(now) || self.holder_has_died() || deadline.reached(Instant::now()) {
                break true;
            }
            sleep(word.word(), now, deadline);
        };
        self.bell.sleepers.fetch_sub(1, Ordering::SeqCst);
        told
    }
}
