//! Tokens of the main thread, which stay on it, for objects that any thread may have.

use procwright_os::fork::PerProcess;
use procwright_os::sync::{Mutex, MutexGuard};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Error, Guarantee, Invitation, ThreadToken};

thread_local! {
    /// The tokens of this thread. They are never dropped with it: at the end of the
    /// process they would say that they were released, which they were not.
    static TOKENS: RefCell<ManuallyDrop<BTreeMap<u64, ThreadToken>>> = const {
        RefCell::new(ManuallyDrop::new(BTreeMap::new()))
    };
}

/// Numbers of tokens, across all threads: in a fork another thread may be the main
/// one, and must not take the objects of its parent for its own.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Numbers of tokens whose objects another thread has dropped. The main thread
/// releases them when it makes the next token.
static DROPPED_ELSEWHERE: PerProcess<Mutex<Vec<u64>>> = PerProcess::new();

fn dropped_elsewhere() -> MutexGuard<'static, Vec<u64>> {
    DROPPED_ELSEWHERE.get().lock()
}

/// A [`ThreadToken`] that any thread may have.
///
/// For hosts whose objects go from thread to thread and are dropped on any: the token
/// itself stays on the main thread. One that another thread drops is given back when the
/// main thread makes the next, and says until then that the thread lives. In a fork it is
/// as the token itself.
///
/// ```standalone_crate
/// use procwright_liveness::{Error, Monitor, PortableToken, State};
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
    /// Makes a token on the main thread.
    ///
    /// # Errors
    /// Those of [`ThreadToken::new`].
    pub fn new() -> Result<PortableToken, Error> {
        let token = ThreadToken::new()?;
        release_dropped();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        TOKENS.with_borrow_mut(|held| held.insert(number, token));
        Ok(PortableToken {
            number,
            process: std::process::id(),
        })
    }

    /// Calls `work` with the token.
    ///
    /// # Errors
    /// [`Error::NotMain`] on another thread than the main one, [`Error::Forked`] in a
    /// fork.
    fn with<T>(&self, work: impl FnOnce(&ThreadToken) -> T) -> Result<T, Error> {
        if self.is_fork() {
            return Err(Error::Forked);
        }
        TOKENS
            .with_borrow(|held| held.get(&self.number).map(work))
            .ok_or(Error::NotMain)
    }

    fn is_fork(&self) -> bool {
        self.process != std::process::id()
    }

    /// Makes an invitation, as [`ThreadToken::invite`] does.
    ///
    /// # Errors
    /// Those of [`ThreadToken::invite`]; [`Error::NotMain`] on another thread, [`Error::Forked`].
    pub fn invite(&self) -> Result<Invitation, Error> {
        self.with(ThreadToken::invite)?
    }

    /// What a monitor of it can promise, as [`ThreadToken::guarantee`] says.
    ///
    /// # Errors
    /// [`Error::NotMain`] on another thread, [`Error::Forked`].
    pub fn guarantee(&self) -> Result<Guarantee, Error> {
        self.with(ThreadToken::guarantee)
    }

    /// Releases the token. False on another thread than the main one, which cannot do
    /// that; true in a fork, which has nothing to release.
    pub fn release(&self) -> bool {
        let token = TOKENS.with_borrow_mut(|held| held.remove(&self.number));
        token.is_some() || self.is_fork()
    }
}

impl Drop for PortableToken {
    fn drop(&mut self) {
        if !self.release() {
            dropped_elsewhere().push(self.number);
        }
    }
}

/// Releases, on the main thread, the tokens that were dropped on others.
fn release_dropped() {
    let numbers = std::mem::take(&mut *dropped_elsewhere());
    let gone: Vec<_> = TOKENS.with_borrow_mut(|held| {
        let gone = numbers.iter().filter_map(|number| held.remove(number));
        gone.collect()
    });
    drop(gone);
}
