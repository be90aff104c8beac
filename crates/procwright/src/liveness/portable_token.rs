//! Tokens of the main thread, which stay on it, for objects that any thread may have.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Error, Guarantee, Invitation, ThreadToken};

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

/// A [`ThreadToken`] that any thread may have.
///
/// For hosts whose objects go from thread to thread and are dropped on any: the token
/// itself stays on the main thread. One that another thread drops is given back when the
/// main thread makes the next, and says until then that the thread lives. In a fork it is
/// as the token itself.
///
/// ```standalone_crate
/// use procwright::liveness::{Error, Monitor, PortableToken, State};
///
/// # fn work() -> Result<(), Error> {
/// let token = PortableToken::new()?; // on the main thread
/// let monitor = Monitor::accept(token.invite()?)?;
/// let token = std::thread::spawn(|| {
///     assert!(!token.release()); // not here
///     token
/// })
/// .join()
/// .unwrap();
/// assert_eq!(monitor.state(), State::Alive);
/// assert!(token.release());
/// assert_eq!(monitor.state(), State::Released);
/// # Ok(())
/// # }
/// # match work() { Err(Error::Unsupported(_)) => {}, done => done.unwrap() }
/// ```
#[derive(Debug)]
pub struct PortableToken {
    number: u64,
    process: u32,
}

impl PortableToken {
    /// # Errors
    /// As [`ThreadToken::new`].
    pub fn new() -> Result<PortableToken, Error> {
        let token = ThreadToken::new()?;
        sweep();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        HELD.with_borrow_mut(|held| held.insert(number, token));
        Ok(PortableToken {
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

    /// As [`ThreadToken::invite`].
    ///
    /// # Errors
    /// As there; [`Error::NotMain`] on another thread, [`Error::Forked`].
    pub fn invite(&self) -> Result<Invitation, Error> {
        self.with(ThreadToken::invite)?
    }

    /// As [`ThreadToken::guarantee`].
    ///
    /// # Errors
    /// [`Error::NotMain`] on another thread, [`Error::Forked`].
    pub fn guarantee(&self) -> Result<Guarantee, Error> {
        self.with(ThreadToken::guarantee)
    }

    /// Says that it was released. False on another thread than the main one, where it
    /// cannot be given back. A fork has nothing to give back.
    pub fn release(&self) -> bool {
        let token = HELD.with_borrow_mut(|held| held.remove(&self.number));
        token.is_some() || self.is_inherited()
    }
}

impl Drop for PortableToken {
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
