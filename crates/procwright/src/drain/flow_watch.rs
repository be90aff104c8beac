//! What a drain tells of its stream while it goes on, for those who end a program by that.

use std::fmt;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use procwright_os::fork::CloseOnFork;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;

/// Has somebody look at what has changed.
#[derive(Clone)]
pub(crate) struct News(Arc<dyn Fn() + Send + Sync>);

impl News {
    pub(crate) fn new(tell: impl Fn() + Send + Sync + 'static) -> News {
        News(Arc::new(tell))
    }

    pub(crate) fn tell(&self) {
        (self.0)();
    }
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("News")
    }
}

/// One output stream as those see it who do not read it.
///
/// Relaxed accesses suffice, as each value is a fact by itself, and `news` is told after it;
/// but `is_reading` is ordered with the state of the pipe.
#[derive(Debug)]
pub(crate) struct FlowWatch {
    made: Instant,
    /// The time of the latest read, in nanoseconds since `made`; 0 before the first.
    last_read: AtomicU64,
    /// More bytes than this are too many.
    limit: Option<u64>,
    is_over_limit: AtomicBool,
    has_ended: AtomicBool,
    /// Whether a read has begun whose bytes may be neither in the pipe nor noted.
    is_reading: AtomicBool,
    /// Whether the next read is to be told.
    tells_next: AtomicBool,
    /// The pipe, while the drain has it. Not kept open.
    pipe: Weak<CloseOnFork>,
    /// Told when the stream has ended, has brought more than its limit, or goes on where that is
    /// waited for.
    news: News,
}

impl FlowWatch {
    pub(crate) fn new(pipe: Weak<CloseOnFork>, limit: Option<u64>, news: News) -> Arc<FlowWatch> {
        Arc::new(FlowWatch {
            made: Instant::now(),
            last_read: AtomicU64::new(0),
            limit,
            is_over_limit: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_reading: AtomicBool::new(false),
            tells_next: AtomicBool::new(false),
            pipe,
            news,
        })
    }

    /// The time of the latest read, none before the first.
    pub(crate) fn last_read(&self) -> Option<Instant> {
        match self.last_read.load(Ordering::Relaxed) {
            0 => None,
            since => self.made.checked_add(Duration::from_nanos(since)),
        }
    }

    /// Has the next read told, once.
    pub(crate) fn tell_of_next(&self) {
        self.tells_next.store(true, Ordering::Relaxed);
    }

    /// True once no more will be read.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over_limit(&self) -> bool {
        self.is_over_limit.load(Ordering::Relaxed)
    }

    /// True if there are bytes that the drain has not come to read.
    pub(crate) fn has_unread(&self) -> bool {
        self.look().contains(Flags::IN)
    }

    /// True if there are bytes that are not noted yet: the drain has not come to read them, or
    /// has just taken them from the pipe.
    pub(crate) fn is_behind(&self) -> bool {
        // In this order: a read that empties the pipe is seen in one of them.
        self.has_unread() || self.is_reading.load(Ordering::SeqCst)
    }

    /// True if no process has the other end any more, whether or not the drain has come to
    /// the end.
    pub(crate) fn has_no_writer(&self) -> bool {
        self.has_ended() || self.look().contains(Flags::HUP)
    }

    fn look(&self) -> Flags {
        let pipe = self.pipe.upgrade();
        let Some(fd) = pipe.as_ref().and_then(|pipe| pipe.get().ok()) else {
            return Flags::empty();
        };
        let mut fds = [Fd::from_borrowed_fd(fd.as_fd(), Flags::IN)];
        match poll::poll(&mut fds, Deadline::at(Instant::now())) {
            Ok(_) => fds[0].revents(),
            Err(_) => Flags::empty(),
        }
    }
}

/// The side of a [`FlowWatch`] that reads the stream. Dropped, it tells that the stream has
/// ended: so nobody who reads can forget to.
#[derive(Debug)]
pub(crate) struct FlowTeller(Arc<FlowWatch>);

impl FlowTeller {
    pub(crate) fn new(watch: Arc<FlowWatch>) -> FlowTeller {
        FlowTeller(watch)
    }

    /// Says that a read begins.
    pub(super) fn begins(&self) {
        self.0.is_reading.store(true, Ordering::SeqCst);
    }

    /// Says that it has brought nothing.
    pub(super) fn found_nothing(&self) {
        self.0.is_reading.store(false, Ordering::SeqCst);
    }

    /// Tells of a read, with all bytes so far.
    pub(super) fn read(&self, bytes: u64, now: Instant) {
        let watch = &self.0;
        let since = now.saturating_duration_since(watch.made).as_nanos();
        let since = u64::try_from(since).unwrap_or(u64::MAX).max(1);
        watch.last_read.store(since, Ordering::Relaxed);
        watch.is_reading.store(false, Ordering::SeqCst);
        let is_over = watch.limit.is_some_and(|limit| bytes > limit);
        if watch.tells_next.load(Ordering::Relaxed) {
            watch.tells_next.store(false, Ordering::Relaxed);
            watch.news.tell();
        }
        if is_over && !watch.is_over_limit.swap(true, Ordering::Relaxed) {
            watch.news.tell();
        }
    }
}

impl Drop for FlowTeller {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Relaxed);
        self.0.news.tell();
    }
}
