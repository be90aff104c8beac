//! Whether the receiver lives: one load.
//!
//! Its thread holds a word in the queue's file, which the kernel marks when that
//! thread ends. A thread that ends is not a process that dies: so whoever finds the
//! word marked asks the link, which tells when the process has let go of it. As long
//! as it has not, the receiver lives, and has a new word as soon as it does
//! anything.
//!
//! Where there is no word, senders ask the link now and then, and nothing else.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ground::Ground;
use super::link::{Link, Links};
use super::page::{LifeWord, Nonsense, Page, plot_of};
use crate::liveness::{Holder, Seen};
use crate::queue::Error;
use crate::queue::format::{LIVENESS, PLOT};
use crate::sys::rendezvous::Name;
use crate::sys::robust::PlacedWord;
use crate::sys::shared;

/// The receiver's side. It says that the receiver is there until it is dropped.
#[derive(Debug)]
pub(super) struct Life {
    ground: Arc<Ground>,
    word: Option<PlacedWord>,
    page: Page,
}

impl Life {
    /// Says that this process receives from now on, and where it is to be had. No
    /// other does: the caller has the lock that says so.
    ///
    /// # Errors
    /// In a fork; when there is no memory left.
    pub(super) fn hold(ground: &Arc<Ground>, name: Name) -> Result<Life, Error> {
        let epoch = Page::next(Page::epochs(&ground.receivers));
        let mut life = Life {
            ground: Arc::clone(ground),
            word: None,
            page: Page {
                epoch,
                word: None,
                holder: Holder::ourselves(),
                is_closed: false,
                name,
            },
        };
        life.hold_word(epoch)?;
        life.page.write(&ground.receivers);
        Ok(life)
    }

    /// To be called now and then: a new word if the thread that held it has ended.
    #[inline]
    pub(super) fn keep(&mut self) {
        if self.is_lost() {
            self.hold_another();
        }
    }

    /// One load.
    #[inline]
    pub(super) fn is_lost(&self) -> bool {
        self.word.as_ref().is_some_and(PlacedWord::has_died)
    }

    #[cold]
    fn hold_another(&mut self) {
        let old = self.word.take();
        // If there is none to be had, senders ask the link.
        let epoch = Page::next(self.page.epoch);
        let _ = self.hold_word(epoch);
        self.page.epoch = epoch;
        self.page.write(&self.ground.receivers);
        // After that: whoever looks at the old one then finds the new one.
        drop(old);
    }

    /// None where it cannot be had.
    fn hold_word(&mut self, epoch: u64) -> io::Result<()> {
        let at = LIVENESS + plot_of(epoch) * PLOT;
        let file = self.ground.file()?;
        self.page.word = None;
        self.word = match PlacedWord::hold(file, at) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => None,
            held => held?,
        };
        self.page.word = self.word.as_ref().map(|word| LifeWord {
            at: at + u64::from(word.place()),
            value: word.value(),
        });
        Ok(())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.ground.is_here() {
            // Before the word, which leads here whoever looks at it.
            Page::close(&self.ground.receivers);
        }
    }
}

/// A sender's side.
#[derive(Debug)]
pub(super) struct Watch {
    ground: Arc<Ground>,
    /// Where the word is (upper half) and what it says while the receiver lives. If
    /// there is none: the beginning of the header, which is never 0.
    word: AtomicU64,
    asked: Mutex<Asked>,
}

/// What is known when the word does not tell.
#[derive(Debug, Default)]
struct Asked {
    /// The epoch of all that follows.
    epoch: u64,
    /// Where there is memory for a word.
    memory: Option<u64>,
    /// When it lived, as the last tick of the clock was.
    lived: Option<Duration>,
    /// How often it was looked for since then, and how often that is at most.
    looks: u32,
    most: u32,
    nap: Duration,
    /// Its process, if it was looked for.
    process: Option<Seen>,
}

/// What a receiver is that does not live any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Died,
    Closed,
    /// What it says of itself makes no sense.
    Nonsense,
}

/// A process that dies marks its word some time before it lets go of its end of the
/// link: so it is asked again at once, and then less and less often, as many messages
/// as this or as much time apart.
const MOST_LOOKS: u32 = 64;
const ASKED_FOR: Duration = Duration::from_millis(10);

/// The same for who waits for room. Where there is a word it looks at least this
/// often, should the kernel have failed to mark it, or wake us.
const LEAST_NAP: Duration = Duration::from_micros(20);
const NAP: Duration = Duration::from_secs(1);

impl Watch {
    pub(super) fn new(ground: &Arc<Ground>) -> Watch {
        Watch {
            ground: Arc::clone(ground),
            word: AtomicU64::new(0),
            asked: Mutex::default(),
        }
    }

    /// Whether the receiver's word says that it lives. One relaxed load.
    #[inline]
    pub(super) fn is_told_alive(&self) -> bool {
        let (at, value) = self.place();
        self.look(at).load(Ordering::Relaxed) == value
    }

    /// The same, and what else there is to find out.
    #[inline]
    pub(super) fn gone(&self, links: &Links) -> Option<Gone> {
        match self.is_told_alive() {
            true => None,
            false => self.why(&links.now()),
        }
    }

    /// The word and what it is while the receiver lives, to be slept on; none where
    /// the kernel does not wake who sleeps there when the receiver dies.
    pub(super) fn word(&self) -> Option<(&AtomicU32, u32)> {
        let (at, value) = self.place();
        (value != 0).then(|| (self.look(at), value))
    }

    /// How long to sleep for room before the receiver is asked for.
    pub(super) fn nap(&self) -> Duration {
        if self.word().is_some() {
            return NAP;
        }
        let mut asked = self.asked();
        asked.nap = (2 * asked.nap).clamp(LEAST_NAP, NAP);
        asked.nap
    }

    /// Asks whether it is there, whatever its word says.
    #[cold]
    pub(super) fn ask(&self, links: &Links) -> Option<Gone> {
        if !links.now().is_abandoned() {
            return None;
        }
        // Whatever the word says from now on.
        self.word.store(0, Ordering::Relaxed);
        self.asked().lived = None;
        // The page comes first, when the receiver leaves.
        match Page::read(&self.ground.receivers) {
            Ok(Some(page)) if page.is_closed => Some(Gone::Closed),
            _ => Some(Gone::Died),
        }
    }

    #[inline]
    fn place(&self) -> (u64, u32) {
        let word = self.word.load(Ordering::Relaxed);
        (word >> 32, word as u32)
    }

    #[inline]
    fn look(&self, at: u64) -> &AtomicU32 {
        self.ground.receivers.look(at)
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The word does not say that it lives.
    #[cold]
    fn why(&self, link: &Link) -> Option<Gone> {
        let Ok(page) = Page::read(&self.ground.receivers) else {
            return Some(Gone::Nonsense);
        };
        if page.as_ref().is_some_and(|page| page.is_closed) {
            return Some(Gone::Closed);
        }
        let mut asked = self.asked();
        if let Some(page) = &page {
            // Before what is remembered of the last one.
            if link.is_to_another(page) {
                return Some(Gone::Died);
            }
            if page.epoch != asked.epoch {
                *asked = Asked::default();
                asked.epoch = page.epoch;
            }
            if let Some(word) = page.word.filter(|word| self.is_held(*word, &mut asked)) {
                if link.is_abandoned() {
                    return Some(Gone::Died);
                }
                let word = word.at << 32 | u64::from(word.value);
                self.word.store(word, Ordering::Relaxed);
                return None;
            }
        }
        self.word.store(0, Ordering::Relaxed);
        asked.whether_it_lives(link, page.as_ref())
    }

    fn is_held(&self, word: LifeWord, asked: &mut Asked) -> bool {
        // Nobody needs to have put memory there, and to look then may be a SIGBUS.
        let is_provided = |file| shared::provide(file, word.at, 4).is_ok();
        if asked.memory != Some(word.at) && !self.ground.file().is_ok_and(is_provided) {
            return false;
        }
        asked.memory = Some(word.at);
        self.look(word.at).load(Ordering::Acquire) == word.value
    }
}

impl Asked {
    fn whether_it_lives(&mut self, link: &Link, page: Option<&Page>) -> Option<Gone> {
        // A call of the system's for each message would be a hundred times as much as
        // all else; this clock costs none, wherever there is any.
        let now = shared::last_tick();
        self.looks += 1;
        let is_recent = |lived: Duration| now.saturating_sub(lived) < ASKED_FOR;
        if self.looks < self.most && self.lived.is_some_and(is_recent) {
            return None;
        }
        if link.is_abandoned() || self.process_has_ended(page) {
            // Not to be forgotten: it is asked again the next time.
            self.lived = None;
            return Some(Gone::Died);
        }
        self.lived = Some(now);
        self.looks = 0;
        self.most = (2 * self.most).clamp(1, MOST_LOOKS);
        None
    }

    /// Not so if that cannot be known. Its end of the link may outlive it: in a fork
    /// that nobody was told of.
    fn process_has_ended(&mut self, page: Option<&Page>) -> bool {
        // Nearly always the link tells in time, and spares us this.
        let Some(page) = page.filter(|_| self.most == MOST_LOOKS) else {
            return false;
        };
        match self.process.get_or_insert_with(|| Seen::of(&page.holder)) {
            Seen::It(process) => !process.is_alive(),
            // Also where its end of the link is there: a fork has that.
            Seen::Gone => true,
            Seen::Hidden => false,
        }
    }
}

impl Gone {
    pub(super) fn told(self) -> Error {
        match self {
            Gone::Closed => Error::Closed,
            Gone::Died => Error::ReceiverDead,
            Gone::Nonsense => Nonsense.into(),
        }
    }
}
