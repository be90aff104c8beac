//! One thread for one futex word, where the kernel has no `futex_waitv`.
//!
//! The holder alone can write to the word, so a drop can only wake the thread. A wake
//! that comes just before the thread falls asleep is lost; the drop therefore wakes
//! again until the thread has said that it ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{STACK, WatchedWord};
use procwright_os::robust::{sleep_alone, wake_alone};
use procwright_os::thread::spawn_bare;

/// The thread. It has ended when the drop returns.
#[derive(Debug)]
pub(super) struct SingleWordThread {
    word: Arc<WatchedWord>,
    phase: Arc<AtomicU32>,
}

/// The thread sleeps, or is about to.
const SLEEPS: u32 = 0;
/// The thread shall end.
const UNWANTED: u32 = 1;
/// The thread touches the word no more.
const DONE: u32 = 2;

impl SingleWordThread {
    /// # Errors
    /// When there is no thread left.
    pub(super) fn start(word: &Arc<WatchedWord>) -> io::Result<SingleWordThread> {
        let thread = SingleWordThread {
            word: Arc::clone(word),
            phase: Arc::new(AtomicU32::new(SLEEPS)),
        };
        let (word, phase) = (Arc::clone(word), Arc::clone(&thread.phase));
        let started = spawn_bare(c"procwright-word", STACK, move || {
            work(&word, &phase);
            // Dropped before DONE is stored: the dropper may count descriptors.
            drop(word);
            phase.store(DONE, Ordering::SeqCst);
        });
        match started {
            Ok(_) => Ok(thread),
            Err(error) => {
                thread.phase.store(DONE, Ordering::SeqCst);
                Err(error)
            }
        }
    }
}

fn work(word: &WatchedWord, phase: &AtomicU32) {
    while phase.load(Ordering::SeqCst) == SLEEPS {
        match word.value_if_alive() {
            Some(value) => sleep_alone(word.futex.word(), value),
            None => return word.notify(),
        }
    }
}

impl Drop for SingleWordThread {
    fn drop(&mut self) {
        let _ = self
            .phase
            .compare_exchange(SLEEPS, UNWANTED, Ordering::SeqCst, Ordering::SeqCst);
        while self.phase.load(Ordering::SeqCst) != DONE {
            wake_alone(self.word.futex.word());
            std::thread::yield_now();
        }
    }
}
