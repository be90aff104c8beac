//! Tokens of the main thread, which stay on it, for objects that any thread may have.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use procwright::liveness::{Error, Guarantee, Invitation, ThreadToken};

thread_local! {
    /// Those of this thread. Never dropped with it: at the end of the process they
    /// would say that they were released, as nobody did.
    static HELD: RefCell<ManuallyDrop<BTreeMap<u64, ThreadToken>>> = const {
        RefCell::new(ManuallyDrop::new(BTreeMap::new()))
    };
}

/// The places are numbered across threads: in a fork another thread may be the main
/// one, and the objects of its parent must not be taken for its own.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Those whose objects another thread has dropped: the main thread gives them back
/// when it makes the next.
static LEFT: Mutex<Vec<u64>> = Mutex::new(Vec::new());

fn left() -> MutexGuard<'static, Vec<u64>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A token of the main thread's.
pub(super) struct Place {
    number: u64,
    process: u32,
}

impl Place {
    pub(super) fn hold() -> Result<Place, Error> {
        let token = ThreadToken::new()?;
        sweep();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        HELD.with_borrow_mut(|held| held.insert(number, token));
        Ok(Place {
            number,
            process: std::process::id(),
        })
    }

    /// Not on another thread than the main one, and not in a fork.
    fn with<T>(&self, work: impl FnOnce(&ThreadToken) -> T) -> Result<T, Error> {
        if self.is_inherited() {
            return Err(Error::Forked);
        }
        HELD.with_borrow(|held| held.get(&self.number).map(work))
            .ok_or(Error::NotMain)
    }

    fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    pub(super) fn invite(&self) -> Result<Invitation, Error> {
        self.with(ThreadToken::invite)?
    }

    pub(super) fn guarantee(&self) -> Result<Guarantee, Error> {
        self.with(ThreadToken::guarantee)
    }

    /// False on another thread than the main one, where it cannot be given back. A
    /// fork has nothing to give back.
    pub(super) fn release(&self) -> bool {
        let token = HELD.with_borrow_mut(|held| held.remove(&self.number));
        token.is_some() || self.is_inherited()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.release() {
            left().push(self.number);
        }
    }
}

/// Gives back, on the main thread, what others could not.
fn sweep() {
    let numbers = std::mem::take(&mut *left());
    let gone: Vec<_> = HELD.with_borrow_mut(|held| {
        let gone = numbers.iter().filter_map(|number| held.remove(number));
        gone.collect()
    });
    drop(gone);
}
