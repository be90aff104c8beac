//! Descriptors for event loops that become readable when a futex word tells of an
//! end.
//!
//! A word in memory is no descriptor. A thread of this process sleeps on the word and
//! writes to an eventfd: one thread for up to 127 words where the kernel has
//! `futex_waitv` (Linux 5.16), one thread a word elsewhere. No thread wakes up before
//! a word has changed. The first thread of the first kind stays when no word is left;
//! all others end.

mod many;
mod single;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::unmarked::UnmarkedWatch;
use many::{FutexSystem, WordSet};
use procwright_os::fork::{ForkId, PerProcess};
use procwright_os::robust::{
    LiveWord, MANY, may_sleep_on_many, says_alive, sleep, sleep_on_many, wake,
};
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::thread::spawn_bare;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;
use single::SingleWordThread;

/// A futex word, and the descriptor that becomes readable when its holder does not
/// live any more.
#[derive(Debug)]
pub(super) struct WatchedWord {
    futex: LiveWord,
    ended: Arc<Wake>,
}

impl WatchedWord {
    fn value_if_alive(&self) -> Option<u32> {
        let word = self.futex.load();
        says_alive(word).then_some(word)
    }

    /// Makes the descriptor readable for ever: no peer comes back to life.
    fn notify(&self) {
        self.ended.ring();
        // The kernel wakes one sleeper of the word, which may have been this thread.
        wake(self.futex.word());
    }
}

struct LinuxFutexes;

impl FutexSystem for LinuxFutexes {
    type Control = AtomicU32;
    type WatchedWord = WatchedWord;

    fn read_control(control: &AtomicU32) -> u32 {
        control.load(Ordering::SeqCst)
    }

    fn change_control(control: &AtomicU32) {
        control.fetch_add(1, Ordering::SeqCst);
        wake(control);
    }

    fn value_if_alive(word: &WatchedWord) -> Option<u32> {
        word.value_if_alive()
    }

    fn notify(word: &WatchedWord) {
        word.notify();
    }

    fn sleep((control, value): (&AtomicU32, u32), words: &[(&WatchedWord, u32)]) {
        let words = words
            .iter()
            .map(|(word, value)| (word.futex.word(), *value));
        let words: Vec<_> = [(control, value)].into_iter().chain(words).collect();
        if sleep_on_many(&words).is_err() {
            // A seccomp filter was installed after the probe. One thread a word is no
            // way out then: threads may not be had any more either.
            sleep(control, value, Deadline::at(Instant::now() + POLL_INTERVAL));
        }
    }
}

/// Time between two looks at the words when the kernel refuses every sleep on them.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Stack of a thread: room for a list of 127 words, and the allocator.
pub(super) const STACK: usize = 64 * 1024;

static WATCH_THREADS: PerProcess<WatchThreads> = PerProcess::new();

#[derive(Default)]
struct WatchThreads(Mutex<Threads>);

#[derive(Default)]
struct Threads {
    /// Whether the kernel has `futex_waitv`; none before the probe.
    has_waitv: Option<bool>,
    sets: Vec<Arc<WordSet<LinuxFutexes>>>,
    next_key: u64,
}

impl WatchThreads {
    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.0.lock()
    }
}

/// A descriptor that becomes readable when the holder of a word does not live any
/// more. The drop ends the watch.
#[derive(Debug)]
pub(super) struct FutexWatch {
    pub(super) ended: Arc<Wake>,
    sleeper: Sleeper,
    pub(super) process: ForkId,
    _guard: Option<UnmarkedWatch>,
}

/// The thread that sleeps on the word.
#[derive(Debug)]
enum Sleeper {
    /// No thread: the end was notified at once.
    None,
    /// The thread of a set, which knows the word by this key.
    WordSet(u64),
    /// A thread for this word alone.
    Alone(SingleWordThread),
}

impl FutexWatch {
    /// Watches `word`. `guard` makes the descriptor readable as well, when the
    /// holder's process ends.
    ///
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub(super) fn new(word: LiveWord, guard: Option<UnmarkedWatch>) -> io::Result<FutexWatch> {
        let ended = Arc::new(Wake::new()?);
        if let Some(guard) = &guard {
            // A guard that cannot tell is no loss: the word tells.
            let _ = guard.ring_too(&ended);
        }
        let word = Arc::new(WatchedWord {
            futex: word,
            ended: Arc::clone(&ended),
        });
        let sleeper = match word.value_if_alive() {
            Some(_) => assign_thread(&word)?,
            None => {
                word.notify();
                Sleeper::None
            }
        };
        Ok(FutexWatch {
            ended,
            sleeper,
            process: ForkId::current(),
            _guard: guard,
        })
    }
}

/// Finds or starts a thread that sleeps on `word`.
fn assign_thread(word: &Arc<WatchedWord>) -> io::Result<Sleeper> {
    let mut threads = WATCH_THREADS.get().threads();
    let threads = &mut *threads;
    if !*threads.has_waitv.get_or_insert_with(may_sleep_on_many) {
        return SingleWordThread::start(word).map(Sleeper::Alone);
    }
    threads.next_key += 1;
    let key = threads.next_key;
    // The control word takes one place.
    let most = MANY - 1;
    if !threads.sets.iter().any(|set| set.add(key, word, most)) {
        let set = Arc::new(WordSet::new());
        set.add(key, word, most);
        let thread = Arc::clone(&set);
        spawn_bare(c"procwright-word", STACK, move || thread.run())?;
        threads.sets.push(set);
    }
    Ok(Sleeper::WordSet(key))
}

impl Drop for FutexWatch {
    fn drop(&mut self) {
        // A fork has none of the threads.
        if !self.process.is_current() {
            if let Sleeper::Alone(thread) = std::mem::replace(&mut self.sleeper, Sleeper::None) {
                std::mem::forget(thread);
            }
            return;
        }
        if let Sleeper::WordSet(key) = self.sleeper {
            let mut threads = WATCH_THREADS.get().threads();
            let mut first = true;
            threads.sets.retain(|set| {
                set.remove(key);
                let stays = std::mem::take(&mut first) || !set.is_empty();
                if !stays {
                    set.close();
                }
                stays
            });
        }
    }
}
