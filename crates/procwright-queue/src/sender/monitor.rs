//! The receiver's life, as a sender sees it: one load.
//!
//! A thread of the receiver holds a word in the queue's file, which the kernel marks when
//! that thread ends. A thread that ends is not a process that dies: so a sender that finds
//! the word marked asks the link, which tells when the process has closed its end. As long
//! as it has not, the receiver lives, and holds a new word as soon as it does anything.
//!
//! Senders without a word ask the link now and then, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::link::{CurrentLink, ReceiverLink};
use crate::error::Error;
use crate::shm::{BadPage, LivenessWord, QueueFile, ReceiverPage};
use procwright_liveness::HolderLookup;
use procwright_os::shared_memory;
use procwright_os::sync::{Mutex, MutexGuard};

/// A sender's view of the receiver's life.
#[doc(alias = "robust futex")]
#[doc(alias = "FUTEX_OWNER_DIED")]
#[derive(Debug)]
pub(super) struct ReceiverMonitor {
    queue: Arc<QueueFile>,
    /// Offset of the word (upper half) and its value while the receiver lives. Without a
    /// word: the beginning of the header, which is never 0.
    expected: AtomicU64,
    cache: Mutex<AliveCache>,
}

/// Answers of the system, for when the word does not tell.
#[derive(Debug, Default)]
struct AliveCache {
    /// Epoch of all that follows.
    epoch: u64,
    /// Offset of a word that is known to have memory.
    provided: Option<u64>,
    /// Last tick of the clock when the receiver was known to live.
    alive_at: Option<Duration>,
    /// Number of messages since then, and the number after which the system is asked again.
    messages: u32,
    interval: u32,
    sleep_limit: Duration,
    /// The receiver's process, if it was looked for.
    process: Option<HolderLookup>,
}

/// State of a receiver that does not live any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiverGone {
    Died,
    Closed,
    /// The receiver's page makes no sense.
    BadPage,
}

/// A process that dies marks its word some time before it closes its end of the link. So
/// the link is asked again at once, and then less and less often, up to so many messages,
/// or so much time, apart.
const MAX_INTERVAL: u32 = 64;
const ANSWER_LIFETIME: Duration = Duration::from_millis(10);

/// Length of a sleep for room where there is no word; it doubles. Where there is a word, a
/// sleep lasts at most `MAX_SLEEP`, since the kernel may have failed to mark it, or to wake
/// this thread.
const MIN_SLEEP: Duration = Duration::from_micros(20);
const MAX_SLEEP: Duration = Duration::from_secs(1);

impl ReceiverMonitor {
    pub(super) fn new(queue: &Arc<QueueFile>) -> ReceiverMonitor {
        ReceiverMonitor {
            queue: Arc::clone(queue),
            expected: AtomicU64::new(0),
            cache: Mutex::default(),
        }
    }

    /// Returns whether the receiver's word says that it lives. One load, relaxed: it
    /// decides on nothing but whether to look closer.
    #[inline]
    pub(super) fn word_says_alive(&self) -> bool {
        let (at, value) = self.expected();
        self.look(at).load(Ordering::Relaxed) == value
    }

    /// The state of the receiver if it does not live any more.
    #[inline]
    pub(super) fn receiver_gone(&self, link: &CurrentLink) -> Option<ReceiverGone> {
        match self.word_says_alive() {
            true => None,
            false => self.check_page(&link.current()),
        }
    }

    /// The word and its value while the receiver lives, to sleep on; none where the kernel
    /// does not wake a sleeper when the receiver dies.
    pub(super) fn word(&self) -> Option<(&AtomicU32, u32)> {
        let (at, value) = self.expected();
        (value != 0).then(|| (self.look(at), value))
    }

    /// Length of the next sleep for room, after which the system is asked.
    pub(super) fn sleep_limit(&self) -> Duration {
        if self.word().is_some() {
            return MAX_SLEEP;
        }
        let mut cache = self.cache();
        cache.sleep_limit = (2 * cache.sleep_limit).clamp(MIN_SLEEP, MAX_SLEEP);
        cache.sleep_limit
    }

    /// Asks whether the receiver is there, whatever its word says.
    #[cold]
    pub(super) fn ask_system(&self, link: &CurrentLink) -> Option<ReceiverGone> {
        if !link.current().is_abandoned() {
            return None;
        }
        // The word does not count any more.
        self.expected.store(0, Ordering::Relaxed);
        self.cache().alive_at = None;
        // A receiver that leaves writes the page before it closes the link.
        match ReceiverPage::read(&self.queue.receivers) {
            Ok(Some(page)) if page.is_closed => Some(ReceiverGone::Closed),
            _ => Some(ReceiverGone::Died),
        }
    }

    /// Offset and value of the word. Relaxed: both are in one word, and a sender that sees an
    /// older one finds the word marked and looks at the page.
    #[inline]
    fn expected(&self) -> (u64, u32) {
        let word = self.expected.load(Ordering::Relaxed);
        (word >> 32, word as u32)
    }

    #[inline]
    fn look(&self, at: u64) -> &AtomicU32 {
        self.queue.receivers.atomic(at)
    }

    fn cache(&self) -> MutexGuard<'_, AliveCache> {
        self.cache.lock()
    }

    /// Finds out more, when the word does not say that the receiver lives.
    #[cold]
    fn check_page(&self, link: &ReceiverLink) -> Option<ReceiverGone> {
        let Ok(page) = ReceiverPage::read(&self.queue.receivers) else {
            return Some(ReceiverGone::BadPage);
        };
        if page.as_ref().is_some_and(|page| page.is_closed) {
            return Some(ReceiverGone::Closed);
        }
        let mut cache = self.cache();
        if let Some(page) = &page {
            // Another receiver comes before all that is remembered of the last one.
            if link.is_to_another(page) {
                return Some(ReceiverGone::Died);
            }
            if page.epoch != cache.epoch {
                *cache = AliveCache::default();
                cache.epoch = page.epoch;
            }
            if let Some(word) = page.word.filter(|word| self.is_held(*word, &mut cache)) {
                if link.is_abandoned() {
                    return Some(ReceiverGone::Died);
                }
                let word = word.at << 32 | u64::from(word.value);
                self.expected.store(word, Ordering::Relaxed);
                return None;
            }
        }
        self.expected.store(0, Ordering::Relaxed);
        cache.ask_link(link, page.as_ref())
    }

    fn is_held(&self, word: LivenessWord, cache: &mut AliveCache) -> bool {
        // The page may have no memory, and a load be a SIGBUS.
        let is_provided = |file| shared_memory::allocate(file, word.at, 4).is_ok();
        if cache.provided != Some(word.at) && !self.queue.file().is_ok_and(is_provided) {
            return false;
        }
        cache.provided = Some(word.at);
        // Acquire: the link is asked after this load, so a receiver that dies in between is
        // seen by one of the two.
        self.look(word.at).load(Ordering::Acquire) == word.value
    }
}

impl AliveCache {
    fn ask_link(
        &mut self,
        link: &ReceiverLink,
        page: Option<&ReceiverPage>,
    ) -> Option<ReceiverGone> {
        // A system call for each message would cost a hundred times as much as all else;
        // this clock costs none, wherever there is one.
        let now = shared_memory::coarse_now();
        self.messages += 1;
        let is_recent = |lived: Duration| now.saturating_sub(lived) < ANSWER_LIFETIME;
        if self.messages < self.interval && self.alive_at.is_some_and(is_recent) {
            return None;
        }
        if link.is_abandoned() || self.process_has_ended(page) {
            // The answer is not kept: the next message asks again.
            self.alive_at = None;
            return Some(ReceiverGone::Died);
        }
        self.alive_at = Some(now);
        self.messages = 0;
        self.interval = (2 * self.interval).clamp(1, MAX_INTERVAL);
        None
    }

    /// Returns whether the receiver's process has ended; false if that cannot be known. Its
    /// end of the link may outlive it: in a fork that did not learn of it.
    fn process_has_ended(&mut self, page: Option<&ReceiverPage>) -> bool {
        // The link nearly always tells in time, which spares this look.
        let Some(page) = page.filter(|_| self.interval == MAX_INTERVAL) else {
            return false;
        };
        match self
            .process
            .get_or_insert_with(|| HolderLookup::find(&page.holder))
        {
            HolderLookup::Found(process) => !process.is_alive(),
            // An open link proves nothing here: a fork of the receiver has it.
            HolderLookup::Gone => true,
            HolderLookup::Hidden => false,
        }
    }
}

impl From<ReceiverGone> for Error {
    fn from(gone: ReceiverGone) -> Error {
        match gone {
            ReceiverGone::Closed => Error::Closed,
            ReceiverGone::Died => Error::ReceiverDead,
            ReceiverGone::BadPage => BadPage.into(),
        }
    }
}
