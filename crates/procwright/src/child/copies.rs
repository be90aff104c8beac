//! Copies of a child's outputs: their consumers, a thread each, and the wait for what they have
//! not taken.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::drain::{Copies, News, OutputChunk};
use crate::error::{BoxError, SpawnError, Step};
use crate::spec::Spec;
use crate::spool::fifo::Fifo;
use crate::std_stream::{PerStream, StdStream};
use crate::stream::{Framing, Patience};
use crate::taps::{ConsumerRole, ConsumerThread, TapPlan};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::sync::Mutex;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// For how long nothing may come of an output before a wait for a child that has ended waits no
/// more for the rest: other processes hold the output then.
const QUIET: Duration = Duration::from_secs(1);

/// The consumers of a child that is not started yet. Dropped, none of them is called, also not for
/// an end: the file of one of them keeps what it holds.
pub(super) struct PreparedCopies {
    queues: PerStream<Vec<Arc<Fifo<OutputChunk>>>>,
    copies: Option<ChildCopies>,
}

impl PreparedCopies {
    /// Starts a thread for each consumer. `wakes` are rung when a queue of theirs has room again,
    /// and `news` is told when all have ended.
    ///
    /// # Errors
    /// A file that cannot be made, no descriptor or no thread left.
    pub(super) fn open(
        spec: &Spec,
        taps: TapPlan,
        wakes: PerStream<Option<Arc<Wake>>>,
        news: Option<News>,
    ) -> Result<PreparedCopies, SpawnError> {
        let mut prepared = PreparedCopies {
            queues: PerStream::default(),
            copies: None,
        };
        let consumers = taps.open(spec)?;
        if consumers.is_empty() {
            return Ok(prepared);
        }
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let ended = Arc::new(Wake::new().map_err(no_descriptor)?);
        let copies = prepared.copies.insert(ChildCopies {
            consumers: Mutex::default(),
            ended: Arc::clone(&ended),
            quiet: Mutex::new(None),
        });
        let at_end = Arc::new(AllEnded { ended, news });
        for (streams, new) in consumers {
            let mut wakes = streams.chosen().filter_map(|stream| wakes[stream].as_ref());
            let Some(wake) = wakes.next() else { continue };
            let (count, at_end) = (streams.chosen().count(), Arc::clone(&at_end));
            let started = ConsumerThread::start(new, count, wake, &Framing::default(), at_end);
            let thread = started.map_err(|error| SpawnError::new(Step::Thread, "", error))?;
            for stream in streams.chosen() {
                prepared.queues[stream].push(Arc::clone(&thread.fifo));
            }
            copies.consumers.lock().push(ChildConsumer {
                thread,
                streams,
                error: None,
            });
        }
        Ok(prepared)
    }

    /// What the drain of a stream has to feed, if anything.
    pub(super) fn of(&self, stream: StdStream) -> Option<Copies> {
        let queues = &self.queues[stream];
        (!queues.is_empty()).then(|| Copies {
            stream,
            queues: queues.clone(),
        })
    }

    /// The copies of the child, which has started.
    pub(super) fn begin(mut self) -> Option<ChildCopies> {
        self.copies.take()
    }
}

impl Drop for PreparedCopies {
    fn drop(&mut self) {
        if let Some(copies) = &self.copies {
            copies.leave();
            for consumer in copies.consumers.lock().iter() {
                consumer.thread.fifo.end_all();
            }
        }
    }
}

/// Dropped by the last consumer that ends.
struct AllEnded {
    ended: Arc<Wake>,
    news: Option<News>,
}

impl Drop for AllEnded {
    fn drop(&mut self) {
        // Never silenced: any number of waits may sleep on it.
        self.ended.ring();
        if let Some(news) = &self.news {
            news.tell();
        }
    }
}

/// The consumers of a child's outputs.
#[derive(Debug)]
pub(super) struct ChildCopies {
    consumers: Mutex<Vec<ChildConsumer>>,
    /// Readable once all of them have ended, or were left.
    ended: Arc<Wake>,
    /// How much had come when a wait has looked last, and since when that is so.
    quiet: Mutex<Option<(u64, Instant)>>,
}

#[derive(Debug)]
struct ChildConsumer {
    thread: ConsumerThread,
    streams: PerStream<bool>,
    error: Option<BoxError>,
}

/// What came of a copy of a stream.
pub(crate) struct CopyEnd {
    pub(crate) role: ConsumerRole,
    pub(crate) error: Option<String>,
    /// The bytes that it has not taken, or never will.
    pub(crate) undelivered: u64,
}

impl ChildCopies {
    /// True once all of them have ended, or were left.
    pub(super) fn have_ended(&self) -> bool {
        wait_for(
            [Some(self.ended.as_fd()), None],
            Deadline::at(Instant::now()),
        ) == Ring::First
    }

    /// Has them take no more than what they have in hand.
    pub(super) fn leave(&self) {
        for consumer in self.consumers.lock().iter() {
            consumer.thread.fifo.leave();
        }
        self.ended.ring();
    }

    /// Waits until they have taken all that comes of the outputs of a program that has ended; false
    /// if the patience is over before. Where other processes hold these, and write nothing, it
    /// waits for [`QUIET`].
    ///
    /// # Errors
    /// `Interrupted` alone.
    pub(super) fn settle(&self, patience: &Patience<'_>) -> io::Result<bool> {
        if self.are_called_from_here() {
            return Ok(true);
        }
        loop {
            let until = Deadline::at(self.quiet_at()).min(patience.deadline());
            match wait_for([Some(self.ended.as_fd()), patience.interrupt()], until) {
                Ring::First => return Ok(true),
                Ring::Second => return Err(io::ErrorKind::Interrupted.into()),
                Ring::None => {}
            }
            let now = Instant::now();
            if self.quiet_since(now) + QUIET <= now {
                return Ok(true);
            }
            if patience.deadline().reached(now) {
                return Ok(false);
            }
        }
    }

    /// Readable once all of them have ended, or were left.
    pub(super) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// When a wait for them is over at the earliest, unless they end before.
    pub(super) fn quiet_at(&self) -> Instant {
        self.quiet_since(Instant::now()) + QUIET
    }

    /// The time since which nothing was seen to come, and all that had come is taken.
    fn quiet_since(&self, now: Instant) -> Instant {
        let (came, is_busy) = (self.came(), self.are_busy());
        let mut quiet = self.quiet.lock();
        match *quiet {
            Some((before, since)) if before == came && !is_busy => since,
            _ => quiet.insert((came, now)).1,
        }
    }

    /// True on the thread of one of them, which does not wait for itself.
    fn are_called_from_here(&self) -> bool {
        let consumers = self.consumers.lock();
        let here = thread::current().id();
        consumers.iter().any(|one| one.thread.id == here)
    }

    /// The bytes that have come to them so far.
    fn came(&self) -> u64 {
        let consumers = self.consumers.lock();
        let came = consumers.iter().map(|one| one.thread.fifo.came());
        came.sum()
    }

    /// True if one of them has not taken all that has come.
    fn are_busy(&self) -> bool {
        let consumers = self.consumers.lock();
        let mut fifos = consumers.iter().map(|one| &one.thread.fifo);
        fifos.any(|fifo| !fifo.is_idle())
    }

    /// The error of one that had to take everything, once.
    pub(super) fn take_failure(&self) -> Option<BoxError> {
        let mut consumers = self.consumers.lock();
        let mut failed = consumers.iter_mut().filter_map(|one| {
            one.note_error();
            match one.thread.role {
                ConsumerRole::Required => one.error.take(),
                _ => None,
            }
        });
        failed.next()
    }

    /// What came of the copies of a stream so far.
    pub(super) fn ends_of(&self, stream: StdStream) -> Vec<CopyEnd> {
        let mut consumers = self.consumers.lock();
        let of_it = consumers.iter_mut().filter(|one| one.streams[stream]);
        let ends = of_it.map(|one| {
            one.note_error();
            CopyEnd {
                role: one.thread.role.clone(),
                error: one.error.as_ref().map(ToString::to_string),
                undelivered: one.thread.fifo.undelivered()[stream],
            }
        });
        ends.collect()
    }
}

impl ChildConsumer {
    /// Takes the error with which it has ended.
    fn note_error(&mut self) {
        let (_, error) = self.thread.fifo.closed();
        self.error = self.error.take().or(error);
    }
}

/// The descriptor that has ended a wait.
#[derive(PartialEq, Eq)]
enum Ring {
    None,
    First,
    Second,
}

/// Sleeps until one of `fds` is readable or the deadline has come.
fn wait_for(fds: [Option<BorrowedFd<'_>>; 2], until: Deadline) -> Ring {
    let given = fds.into_iter().flatten();
    let mut polled: Vec<_> = given
        .map(|fd| Fd::from_borrowed_fd(fd, Flags::IN))
        .collect();
    // A failed wait is a reason to look, and no more.
    if poll::poll(&mut polled, until).is_err() {
        return Ring::None;
    }
    let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
    match (ready.next(), ready.next()) {
        (Some(true), _) => Ring::First,
        (_, Some(true)) => Ring::Second,
        _ => Ring::None,
    }
}
