//! A thread that does at once what several ask for, and is there while there is something to do.

use std::io;

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

impl<R: Send> Batches<R> {
    /// Has `work` called with this request, and with those that others make until it is: all
    /// that have come while it was at work are its next batch.
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
                    work(batch);
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
