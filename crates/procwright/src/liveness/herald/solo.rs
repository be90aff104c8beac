//! A thread for one word, where none can sleep on many.
//!
//! Nobody but the holder changes the word, so whoever wants the thread to end can
//! only wake it, which does nothing if it comes just before the thread goes to
//! sleep: so it is done again until the thread has heard.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{STACK, Seat};
use crate::sys::robust::{sleep_alone, wake_alone};
use crate::sys::thread::spawn_bare;

/// The thread, which has ended when this was dropped.
#[derive(Debug)]
pub(super) struct Solo {
    seat: Arc<Seat>,
    stage: Arc<AtomicU32>,
}

const SLEEPS: u32 = 0;
const UNWANTED: u32 = 1;
const HEARD: u32 = 2;

impl Solo {
    /// # Errors
    /// When there is no thread left.
    pub(super) fn start(seat: &Arc<Seat>) -> io::Result<Solo> {
        let solo = Solo {
            seat: Arc::clone(seat),
            stage: Arc::new(AtomicU32::new(SLEEPS)),
        };
        let (seat, stage) = (Arc::clone(seat), Arc::clone(&solo.stage));
        let started = spawn_bare(c"procwright-herald", STACK, move || {
            work(&seat, &stage);
            // Before it is said: whoever waits for that may count descriptors.
            drop(seat);
            stage.store(HEARD, Ordering::SeqCst);
        });
        match started {
            Ok(_) => Ok(solo),
            Err(error) => {
                solo.stage.store(HEARD, Ordering::SeqCst);
                Err(error)
            }
        }
    }
}

fn work(seat: &Seat, stage: &AtomicU32) {
    while stage.load(Ordering::SeqCst) == SLEEPS {
        match seat.alive() {
            Some(value) => sleep_alone(seat.word.word(), value),
            None => return seat.tell(),
        }
    }
}

impl Drop for Solo {
    fn drop(&mut self) {
        let _ = self
            .stage
            .compare_exchange(SLEEPS, UNWANTED, Ordering::SeqCst, Ordering::SeqCst);
        while self.stage.load(Ordering::SeqCst) != HEARD {
            wake_alone(self.seat.word.word());
            std::thread::yield_now();
        }
    }
}
