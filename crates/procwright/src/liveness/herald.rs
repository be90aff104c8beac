//! Who rings when a word changes, for event loops: a word is no descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys::robust::{Word, sleep, wake};
use crate::sys::thread::spawn_small;
use crate::sys::wake::Wake;
use crate::time::Deadline;

/// A descriptor that is readable once the word says that nobody lives.
#[derive(Debug)]
pub(super) struct Herald {
    word: Arc<Word>,
    wake: Arc<Wake>,
    left: Arc<AtomicBool>,
}

impl Herald {
    /// Starts a thread that sleeps on the word.
    ///
    /// # Errors
    /// When there is no descriptor or thread left.
    pub(super) fn new(word: &Arc<Word>) -> io::Result<Herald> {
        let herald = Herald {
            word: Arc::clone(word),
            wake: Arc::new(Wake::new()?),
            left: Arc::new(AtomicBool::new(false)),
        };
        let (word, bell, left) = (
            Arc::clone(&herald.word),
            Arc::clone(&herald.wake),
            Arc::clone(&herald.left),
        );
        spawn_small("procwright-herald", move || {
            while !left.load(Ordering::SeqCst) {
                let now = word.load();
                if !super::monitor::says_alive(now) {
                    wake(word.word());
                    bell.ring();
                    return;
                }
                sleep(word.word(), now, Deadline::NEVER);
            }
        })?;
        Ok(herald)
    }
}

impl AsFd for Herald {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Herald {
    fn drop(&mut self) {
        self.left.store(true, Ordering::SeqCst);
        // Others on this word look, see that nothing has changed, and sleep on.
        wake(self.word.word());
    }
}
