//! The operations that are inside a stream.

use procwright_os::sync::{Condvar, Mutex};

/// The operations on a stream that may block now, which `close(wait=True)` waits for.
///
/// Operations are counted in the process that made this. A fork has the count, and perhaps a
/// lock that is held, but none of the threads that would count down and release it.
pub(crate) struct OperationCount {
    counts: Mutex<Operations>,
    ended: Condvar,
    process: u32,
}

#[derive(Default)]
struct Operations {
    operations: usize,
    /// The number of waiting closers: without any the system call that wakes them is saved.
    closers: usize,
}

impl Default for OperationCount {
    fn default() -> OperationCount {
        OperationCount {
            counts: Mutex::default(),
            ended: Condvar::new(),
            process: std::process::id(),
        }
    }
}

/// An operation, as long as this lives. None in a fork.
pub(crate) struct OperationGuard<'a>(Option<&'a OperationCount>);

impl OperationCount {
    pub(crate) fn enter(&self) -> OperationGuard<'_> {
        if self.is_forked() {
            return OperationGuard(None);
        }
        self.counts.lock().operations += 1;
        OperationGuard(Some(self))
    }

    fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// Waits until there is no operation. A signal handler that closes does not wait for the
    /// operation of its own thread: handlers run outside of it.
    pub(crate) fn wait_empty(&self) {
        if self.is_forked() {
            return;
        }
        let mut counts = self.counts.lock();
        counts.closers += 1;
        while counts.operations > 0 {
            counts = self.ended.wait(counts);
        }
        counts.closers -= 1;
    }
}

impl Drop for OperationGuard<'_> {
    fn drop(&mut self) {
        let Some(count) = self.0 else { return };
        let mut counts = count.counts.lock();
        counts.operations -= 1;
        if counts.operations == 0 && counts.closers > 0 {
            count.ended.notify_all();
        }
    }
}
