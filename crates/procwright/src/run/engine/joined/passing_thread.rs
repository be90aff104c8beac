//! A thread of ours that passes bytes on between the programs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::next_pipe::RingOnDrop;
use crate::child::Unstarted;
use crate::error::{SpawnError, Step};
use procwright_os::thread;
use procwright_os::wake::Wake;

/// A thread that passes on until it has passed on all, or is cut. Dropped, it is cut.
///
/// It is there before the programs are, as whatever else may be refused. It sees no end before one
/// has been there: what has not been started yet keeps its end of the pipe open.
pub(super) struct PassingThread<T> {
    cut: Arc<Wake>,
    /// Rung when nothing more is passed on.
    done: Arc<Wake>,
    /// None once its end was seen.
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> PassingThread<T> {
    /// Starts it. `pass_on` returns soon after `cut` rings.
    ///
    /// # Errors
    /// No descriptor or thread is left.
    pub(super) fn start<F>(cut: Arc<Wake>, pass_on: F) -> Result<PassingThread<T>, Unstarted>
    where
        F: FnOnce() -> T + Send + 'static,
    {
        let done = new_wake()?;
        let rung_at_end = RingOnDrop(Arc::clone(&done));
        let run = move || {
            let _rung_at_end = rung_at_end;
            pass_on()
        };
        let thread = thread::spawn_quiet("procwright-in", run);
        let thread = thread.map_err(|error| SpawnError::new(Step::Thread, "", error))?;
        Ok(PassingThread {
            cut,
            done,
            thread: Some(thread),
        })
    }
}

impl<T> PassingThread<T> {
    /// True until its end was seen.
    pub(super) fn passes_on(&self) -> bool {
        self.thread.is_some()
    }

    /// Readable once it passes nothing more on; none when that was seen.
    pub(super) fn awaited_fd(&self) -> Option<BorrowedFd<'_>> {
        self.passes_on().then(|| self.done.as_fd())
    }

    /// What has come of it, which is that of a `name`; none if that was told before.
    ///
    /// # Errors
    /// It has panicked.
    pub(super) fn end(&mut self, name: &str) -> Option<io::Result<T>> {
        let ended = self.thread.take()?.join();
        let panicked = |_| io::Error::other(format!("the thread of the {name} has panicked"));
        Some(ended.map_err(panicked))
    }

    /// Has it pass nothing more on: all its pipes are closed soon.
    pub(super) fn cut(&self) {
        self.cut.ring();
    }
}

impl<T> Drop for PassingThread<T> {
    fn drop(&mut self) {
        self.cut();
    }
}

/// What rings when nothing more is to be passed on.
///
/// # Errors
/// No descriptor is left.
pub(super) fn new_wake() -> Result<Arc<Wake>, Unstarted> {
    let wake = Wake::new().map_err(|error| SpawnError::new(Step::Pipe, "", error))?;
    Ok(Arc::new(wake))
}
