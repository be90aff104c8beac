//! One thread that sleeps on many futex words at a time (`futex_waitv`), while
//! words are added and removed.
//!
//! Watchers cannot write to the words that they watch, so the set has one word of
//! its own, the control word. No added word is missed:
//!
//! 1. The adder puts the word into the list, then changes the control word.
//! 2. The thread reads the control word, then the list.
//! 3. The kernel lets the thread sleep only while every word, the control word
//!    included, still has the value that the thread read.
//!
//! If the thread read the list before 1, the change of the control word either comes
//! before 3, which is refused then, or wakes the thread.

use procwright_os::sync::Mutex;
use std::sync::Arc;

/// The system calls that a [`WordSet`] makes; the models of loom have their own.
pub(super) trait FutexSystem {
    /// The control word.
    type Control: Default;
    /// A word of a peer, and what to notify when the peer ends.
    type WatchedWord;

    fn read_control(control: &Self::Control) -> u32;
    /// Changes the control word, and wakes the thread that sleeps on it.
    fn change_control(control: &Self::Control);
    /// The value of a word while its holder lives.
    fn value_if_alive(word: &Self::WatchedWord) -> Option<u32>;
    fn notify(word: &Self::WatchedWord);
    /// Sleeps while every word has the given value. Spurious returns are allowed.
    fn sleep(control: (&Self::Control, u32), words: &[(&Self::WatchedWord, u32)]);
}

pub(super) struct WordSet<S: FutexSystem> {
    control: S::Control,
    list: Mutex<WordList<S::WatchedWord>>,
}

struct WordList<T> {
    words: Vec<(u64, Arc<T>)>,
    closed: bool,
}

impl<S: FutexSystem> WordSet<S> {
    pub(super) fn new() -> WordSet<S> {
        WordSet {
            control: S::Control::default(),
            list: Mutex::new(WordList {
                words: Vec::new(),
                closed: false,
            }),
        }
    }

    /// Adds a word. False if the set has `most` words already.
    pub(super) fn add(&self, key: u64, word: &Arc<S::WatchedWord>, most: usize) -> bool {
        let has_room = self.with(|list| {
            let has_room = list.words.len() < most;
            if has_room {
                list.words.push((key, Arc::clone(word)));
            }
            has_room
        });
        if has_room {
            S::change_control(&self.control);
        }
        has_room
    }

    /// Removes a word. False if it is not in the list: it is in another set, or its
    /// end was notified.
    pub(super) fn remove(&self, key: u64) -> bool {
        let found = self.with(|list| {
            let before = list.words.len();
            list.words.retain(|(other, _)| *other != key);
            list.words.len() < before
        });
        if found {
            S::change_control(&self.control);
        }
        found
    }

    pub(super) fn is_empty(&self) -> bool {
        self.with(|list| list.words.is_empty())
    }

    /// Ends the thread.
    pub(super) fn close(&self) {
        self.with(|list| list.closed = true);
        S::change_control(&self.control);
    }

    /// The body of the thread.
    pub(super) fn run(&self) {
        loop {
            // Before the list: see the module's second step.
            let control = S::read_control(&self.control);
            let Some(words) = self.with(|list| (!list.closed).then(|| list.words.clone())) else {
                return;
            };
            let looked = words
                .iter()
                .map(|(_, word)| Some((&**word, S::value_if_alive(word)?)));
            match looked.collect::<Option<Vec<_>>>() {
                Some(alive) => S::sleep((&self.control, control), &alive),
                None => self.notify_ended(&words),
            }
        }
    }

    /// Notifies of the words whose holder does not live any more, and removes them.
    fn notify_ended(&self, words: &[(u64, Arc<S::WatchedWord>)]) {
        let mut ended = Vec::new();
        for (key, word) in words {
            if S::value_if_alive(word).is_none() {
                S::notify(word);
                ended.push(*key);
            }
        }
        self.with(|list| list.words.retain(|(key, _)| !ended.contains(key)));
    }

    fn with<T>(&self, what: impl FnOnce(&mut WordList<S::WatchedWord>) -> T) -> T {
        what(&mut self.list.lock())
    }
}

#[cfg(all(test, procwright_loom))]
mod loom_tests {
    use super::{FutexSystem, WordSet};
    use loom::sync::atomic::{AtomicU32, Ordering};
    use loom::sync::{Condvar, Mutex};
    use loom::thread;
    use std::sync::Arc;

    /// The kernel. Comparing the words and falling asleep are one step for every
    /// thread that wakes; memory may change at any time.
    struct Kernel {
        lock: Mutex<()>,
        wakes: Condvar,
    }

    loom::lazy_static! {
        static ref KERNEL: Kernel = Kernel { lock: Mutex::new(()), wakes: Condvar::new() };
    }

    fn wake() {
        let _lock = KERNEL.lock.lock().unwrap();
        KERNEL.wakes.notify_all();
    }

    struct Model;

    #[derive(Default)]
    struct Control(AtomicU32);

    struct WatchedWord {
        value: AtomicU32,
        told: Mutex<bool>,
        tells: Condvar,
    }

    impl FutexSystem for Model {
        type Control = Control;
        type WatchedWord = WatchedWord;

        fn read_control(control: &Control) -> u32 {
            control.0.load(Ordering::SeqCst)
        }

        fn change_control(control: &Control) {
            control.0.fetch_add(1, Ordering::SeqCst);
            wake();
        }

        fn value_if_alive(word: &WatchedWord) -> Option<u32> {
            let value = word.value.load(Ordering::SeqCst);
            (value != 0).then_some(value)
        }

        fn notify(word: &WatchedWord) {
            let mut told = word.told.lock().unwrap();
            assert!(!std::mem::replace(&mut told, true), "told twice");
            word.tells.notify_all();
        }

        fn sleep(control: (&Control, u32), words: &[(&WatchedWord, u32)]) {
            let lock = KERNEL.lock.lock().unwrap();
            let same = Model::read_control(control.0) == control.1
                && words
                    .iter()
                    .all(|(word, value)| word.value.load(Ordering::SeqCst) == *value);
            if same {
                // A lost wake-up hangs here, and loom reports that.
                drop(KERNEL.wakes.wait(lock).unwrap());
            }
        }
    }

    /// Runs all interleavings of up to three preemptions; more of them take hours.
    fn model(body: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(body);
    }

    fn word() -> Arc<WatchedWord> {
        Arc::new(WatchedWord {
            value: AtomicU32::new(1),
            told: Mutex::new(false),
            tells: Condvar::new(),
        })
    }

    /// Ends the holder of the word.
    fn end(word: &WatchedWord) {
        word.value.store(0, Ordering::SeqCst);
        wake();
    }

    #[test]
    fn loom_every_listed_word_is_notified() {
        model(|| {
            let set = Arc::new(WordSet::<Model>::new());
            let word = word();
            let thread = thread::spawn({
                let set = set.clone();
                move || set.run()
            });
            assert!(set.add(1, &word, 1));
            end(&word);
            // A lost wake-up hangs here, and loom reports that.
            let mut told = word.told.lock().unwrap();
            while !*told {
                told = word.tells.wait(told).unwrap();
            }
            drop(told);
            set.close();
            thread.join().unwrap();
        });
    }

    #[test]
    fn loom_a_removed_word_is_not_waited_for() {
        loom::model(|| {
            let set = Arc::new(WordSet::<Model>::new());
            let word = word();
            assert!(set.add(1, &word, 1));
            let thread = thread::spawn({
                let set = set.clone();
                move || set.run()
            });
            set.remove(1);
            set.close();
            // A thread that sleeps on hangs here, and loom reports that.
            thread.join().unwrap();
            assert!(!*word.told.lock().unwrap());
        });
    }
}
