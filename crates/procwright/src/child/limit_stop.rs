//! The stop of a child that a limit has begun, for those who wait for the child.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::limits::ReachedBound;
use crate::drain::News;
use crate::std_stream::PerStream;
use procwright_explain::Diagnosis;
use procwright_os::sync::Mutex;
use procwright_os::wake::Wake;
use procwright_process::Survivor;
use procwright_process::holders::Holders;

/// What is known of a child that a limit has stopped.
#[derive(Clone, Debug)]
pub(crate) struct PastLimitStop {
    pub(crate) reached: ReachedBound,
    pub(crate) duration: Duration,
    /// The time from the child's start to the end of the stop.
    pub(super) ended_after: Duration,
    pub(crate) survivors: Vec<Survivor>,
    /// Activities of the processes before the first signal, a line each.
    pub(crate) activities: Vec<String>,
    pub(crate) holders: PerStream<Option<Holders>>,
    /// What was found out shortly before about why the program does not end.
    pub(crate) diagnosis: Option<Box<Diagnosis>>,
    /// Streams that had not ended.
    pub(crate) open: PerStream<bool>,
    /// True if the program had exited, and others held its pipes.
    pub(crate) held_after_exit: bool,
}

/// The stop that a limit of a child begins, if it does.
#[derive(Debug)]
pub(super) struct LimitStop {
    progress: Mutex<LimitStopProgress>,
    /// Readable once the stop is over.
    over: Wake,
    is_hurried: AtomicBool,
    /// Has the supervisor look at the child.
    news: News,
}

#[derive(Debug)]
enum LimitStopProgress {
    /// No limit was reached.
    NotBegun,
    UnderWay,
    Over(Box<PastLimitStop>),
}

impl LimitStop {
    /// # Errors
    /// When no descriptor is left.
    pub(super) fn new(news: News) -> io::Result<LimitStop> {
        Ok(LimitStop {
            progress: Mutex::new(LimitStopProgress::NotBegun),
            over: Wake::new()?,
            is_hurried: AtomicBool::new(false),
            news,
        })
    }

    pub(super) fn begin(&self) {
        *self.progress.lock() = LimitStopProgress::UnderWay;
    }

    pub(super) fn end(&self, past: PastLimitStop) {
        *self.progress.lock() = LimitStopProgress::Over(Box::new(past));
        // Never silenced: any number of waits may sleep on it.
        self.over.ring();
    }

    /// Readable once the stop is over; none unless it is under way.
    pub(super) fn under_way(&self) -> Option<BorrowedFd<'_>> {
        let is_under_way = matches!(*self.progress.lock(), LimitStopProgress::UnderWay);
        is_under_way.then(|| self.over.as_fd())
    }

    /// What came of the stop, none before its end.
    pub(super) fn past(&self) -> Option<PastLimitStop> {
        match &*self.progress.lock() {
            LimitStopProgress::Over(past) => Some(PastLimitStop::clone(past)),
            _ => None,
        }
    }

    /// Ends the grace.
    pub(super) fn hurry(&self) {
        // Relaxed: the news is behind a lock.
        self.is_hurried.store(true, Ordering::Relaxed);
        self.news.tell();
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.is_hurried.load(Ordering::Relaxed)
    }

    /// Has the supervisor look at the child again.
    pub(super) fn look_again(&self) {
        self.news.tell();
    }
}
