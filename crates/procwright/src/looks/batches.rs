//! A thread that does at once what several ask for, and is there while there is something to do.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use procwright_os::sync::Mutex;
use procwright_os::thread;

/// What is asked of such a thread.
pub(super) struct Batches<R> {
    asked: Mutex<Asked<R>>,
}

struct Asked<R> {
    /// What is not being worked on.
    new: Vec<R>,
    has_thread: bool,
}

impl<R> Default for Batches<R> {
    fn default() -> Self {
        let asked = Asked {
            new: Vec::new(),
            has_thread: false,
        };
        Batches {
            asked: Mutex::new(asked),
        }
    }
}

/// Calls `tell` for each request of a batch, also for those behind one at which it panics: each is
/// somebody's who waits.
pub(super) fn tell_each<R>(batch: Vec<R>, mut tell: impl FnMut(R)) {
    for request in batch {
        let _ = catch_unwind(AssertUnwindSafe(|| tell(request)));
    }
}

impl<R: Send> Batches<R> {
    /// Has `work` called with this request, and with those that others make until it is: all
    /// that have come while it was at work are its next batch. After a panic of `work` the next
    /// batch comes as ever: without the thread all that ask later would wait for ever.
    ///
    /// # Errors
    /// No thread can be had.
    pub(super) fn ask(
        &'static self,
        request: R,
        work: impl Fn(Vec<R>) + Send + 'static,
    ) -> io::Result<()> {
        // Held over the start of the thread: whoever comes meanwhile finds a thread, or none.
        let mut asked = self.asked.lock();
        if !asked.has_thread {
            thread::spawn_quiet("procwright-look", move || {
                while let Some(batch) = self.next() {
                    // The panic hook has told why.
                    let _ = catch_unwind(AssertUnwindSafe(|| work(batch)));
                }
            })?;
            asked.has_thread = true;
        }
        asked.new.push(request);
        Ok(())
    }

    /// What has come; none, and the thread ends, if that is nothing.
    fn next(&self) -> Option<Vec<R>> {
        let mut asked = self.asked.lock();
        asked.has_thread = !asked.new.is_empty();
        asked.has_thread.then(|| std::mem::take(&mut asked.new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};
    use test_support::watchdog;

    #[test]
    fn who_asks_behind_one_that_panics_is_told() {
        let told = Mutex::new(Vec::new());
        tell_each(vec![1, 2, 3], |request| {
            assert_ne!(request, 2, "a fault that the test wants");
            told.lock().push(request);
        });
        assert_eq!(*told.lock(), [1, 3]);
    }

    #[test]
    fn who_asks_after_a_panic_is_told() {
        let _watchdog = watchdog("who_asks_after_a_panic");
        let batches: &'static Batches<Option<Sender<()>>> = Box::leak(Box::default());
        let work = |batch: Vec<Option<Sender<()>>>| {
            for request in batch {
                let tell = request.expect("a fault that the test wants");
                let _ = tell.send(());
            }
        };
        batches.ask(None, work).unwrap();
        // It may come into the batch of the fault, and then nobody tells it: its end is gone.
        loop {
            let (tell, told) = channel();
            batches.ask(Some(tell), work).unwrap();
            if told.recv().is_ok() {
                break;
            }
        }
    }
}
