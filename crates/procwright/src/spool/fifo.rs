//! A bounded queue between the drain and a thread that may be slow.
//!
//! One side is the drain, which never waits here: it asks, and is rung when the
//! answer may have changed. The other side is a thread that waits as long as it
//! likes: a consumer of output or a producer of input.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::BoxError;
use crate::std_stream::{PerStream, StdStream};
use procwright_os::sync::{Condvar, Mutex, MutexGuard};
use procwright_os::wake::Wake;

/// The bytes that may lie in a queue before its producer has to wait.
///
/// One more chunk may come on top, since a chunk is never split.
const BOUND: usize = 16 * 1024 * 1024;

/// The cost of a chunk beside its bytes: a program that writes byte by byte must not
/// fill the memory with bookkeeping.
const OVERHEAD: usize = 96;

/// A chunk in a queue, which is never split.
pub(crate) trait FifoItem {
    fn bytes(&self) -> usize;

    /// The output stream that it is part of.
    fn stream(&self) -> StdStream;
}

impl FifoItem for Bytes {
    fn bytes(&self) -> usize {
        self.len()
    }

    /// Input has no stream of output, and is counted in one place.
    fn stream(&self) -> StdStream {
        StdStream::Stdout
    }
}

pub(crate) struct Fifo<T> {
    state: Mutex<FifoState<T>>,
    /// Wakes the waiting side.
    changed: Condvar,
    /// Wakes the drain's side.
    wake: Arc<Wake>,
    bound: usize,
}

struct FifoState<T> {
    chunks: VecDeque<T>,
    /// The bytes in `chunks`.
    bytes: usize,
    /// The bytes that were ever offered.
    came: u64,
    /// The bytes of the chunk that the consumer has in hand, of each stream.
    in_hand: PerStream<usize>,
    /// The bytes that the consumer has taken and keeps, of each stream: the beginning of a
    /// line. They take no room here, or the rest of a long line would wait for itself.
    kept: PerStream<u64>,
    /// Bytes that no consumer will ever take, of each stream.
    lost: PerStream<u64>,
    /// The number of streams that still go on.
    open: usize,
    /// Streams of which the consumer takes no more, while it goes on with the other.
    broken: PerStream<bool>,
    /// The consumer takes no more: it is done, or has failed, or is gone.
    closed: bool,
    /// The drain's side has gone and wants nothing more to be consumed.
    left: bool,
    error: Option<BoxError>,
    /// The drain saw no room and waits to be rung.
    wants_room: bool,
}

/// The outcome of a look for input.
#[derive(Debug)]
pub(crate) enum TakeOutcome<T> {
    Chunk(T),
    Empty,
    End,
    Failed(BoxError),
}

impl<T: FifoItem> FifoState<T> {
    /// The memory that the queue takes.
    fn load(&self) -> usize {
        self.bytes + self.in_hand.stdout + self.in_hand.stderr + self.chunks.len() * OVERHEAD
    }

    /// Drops what waits or is in hand of some streams, and counts it as lost.
    fn lose(&mut self, which: impl Fn(StdStream) -> bool) {
        for stream in StdStream::BOTH {
            if which(stream) {
                self.lost[stream] += std::mem::take(&mut self.in_hand[stream]) as u64;
            }
        }
        let (bytes, lost) = (&mut self.bytes, &mut self.lost);
        self.chunks.retain(|chunk| {
            let goes = which(chunk.stream());
            if goes {
                *bytes -= chunk.bytes();
                lost[chunk.stream()] += chunk.bytes() as u64;
            }
            !goes
        });
    }
}

impl<T> fmt::Debug for Fifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fifo").finish_non_exhaustive()
    }
}

impl<T: FifoItem> Fifo<T> {
    /// A queue into which so many streams lead.
    pub(crate) fn new(wake: Arc<Wake>, streams: usize) -> Arc<Fifo<T>> {
        Arc::new(Fifo {
            state: Mutex::new(FifoState {
                chunks: VecDeque::new(),
                bytes: 0,
                came: 0,
                in_hand: PerStream::default(),
                kept: PerStream::default(),
                lost: PerStream::default(),
                open: streams,
                broken: PerStream::default(),
                closed: false,
                left: false,
                error: None,
                wants_room: false,
            }),
            changed: Condvar::new(),
            wake,
            bound: BOUND,
        })
    }

    fn lock(&self) -> MutexGuard<'_, FifoState<T>> {
        self.state.lock()
    }

    /// Holds its lock, as a thread may that a fork has not.
    #[cfg(test)]
    pub(crate) fn hold(&self) -> impl Drop + '_ {
        self.lock()
    }

    // The drain as the producer.

    /// True if another chunk may be offered. After "no" the wake-up rings once there is
    /// room.
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.lock();
        let room = state.closed || state.left || state.load() < self.bound;
        // A "yes" does not take back an earlier "no":
        //
        // 1. the first stream is told "no", and waits for the ring;
        // 2. the consumer takes a chunk;
        // 3. the second stream is told "yes": the first still has to be rung.
        state.wants_room |= !room;
        room
    }

    /// Adds a chunk, or drops it if the consumer takes no more of its stream.
    pub(crate) fn offer(&self, chunk: T) {
        let mut state = self.lock();
        let stream = chunk.stream();
        state.came += chunk.bytes() as u64;
        if state.closed || state.left || state.broken[stream] {
            state.lost[stream] += chunk.bytes() as u64;
        } else {
            state.bytes += chunk.bytes();
            state.chunks.push_back(chunk);
            self.changed.notify_one();
        }
    }

    /// The bytes that were offered so far.
    pub(crate) fn came(&self) -> u64 {
        self.lock().came
    }

    /// True while the consumer waits for more, or takes no more.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        let in_hand = state.in_hand.stdout + state.in_hand.stderr;
        state.closed || state.left || (state.chunks.is_empty() && in_hand == 0)
    }

    /// Ends one of the streams.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
        drop(state);
        self.changed.notify_all();
    }

    /// Ends all streams.
    pub(crate) fn end_all(&self) {
        self.lock().open = 0;
        self.changed.notify_all();
    }

    /// The streams of which the consumer takes no more, while it goes on.
    pub(crate) fn broken(&self) -> PerStream<bool> {
        self.lock().broken
    }

    /// True once the consumer has finished, and the error with which it finished.
    pub(crate) fn closed(&self) -> (bool, Option<BoxError>) {
        let mut state = self.lock();
        (state.closed, state.error.take())
    }

    /// Ends all streams without giving out what is there.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.left = true;
        // The consumer deals with the chunk in hand still.
        let in_hand = std::mem::take(&mut state.in_hand);
        state.lose(|_| true);
        state.in_hand = in_hand;
        let wants_room = std::mem::take(&mut state.wants_room);
        drop(state);
        self.changed.notify_all();
        if wants_room {
            self.wake.ring();
        }
    }

    /// The bytes that the consumer has not dealt with, or never will, of each
    /// stream.
    pub(crate) fn undelivered(&self) -> PerStream<u64> {
        let state = self.lock();
        let mut bytes = state.lost;
        for (stream, in_hand) in state.in_hand {
            bytes[stream] += in_hand as u64 + state.kept[stream];
        }
        for chunk in &state.chunks {
            bytes[chunk.stream()] += chunk.bytes() as u64;
        }
        bytes
    }

    // The consumer thread.

    /// Waits for the next chunk; none at the end.
    pub(crate) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        state.in_hand = PerStream::default();
        loop {
            if state.closed || state.left {
                return None;
            }
            if let Some(chunk) = state.chunks.pop_front() {
                state.bytes -= chunk.bytes();
                state.in_hand[chunk.stream()] = chunk.bytes();
                // Half empty, not just below the bound: one wake-up of the
                // drain for 8 MiB instead of one for each chunk.
                if state.wants_room && state.load() <= self.bound / 2 {
                    state.wants_room = false;
                    self.wake.ring();
                }
                return Some(chunk);
            }
            if state.open == 0 {
                return None;
            }
            state = self.changed.wait(state);
        }
    }

    /// Notes how many bytes the consumer has taken and not dealt with, beside the chunk in
    /// hand.
    pub(crate) fn keep(&self, stream: StdStream, bytes: usize) {
        self.lock().kept[stream] = bytes as u64;
    }

    /// True if the stream was left before its end.
    pub(crate) fn was_left(&self) -> bool {
        self.lock().left
    }

    /// Ends one stream for the consumer. The chunk in hand was dealt with in part at
    /// best.
    pub(crate) fn break_off(&self, stream: StdStream) {
        let mut state = self.lock();
        state.broken[stream] = true;
        state.lose(|of| of == stream);
        drop(state);
        self.wake.ring();
    }

    /// Ends the queue for the consumer.
    pub(crate) fn close(&self, error: Option<BoxError>) {
        let mut state = self.lock();
        state.closed = true;
        state.error = error;
        // The chunk in hand after a failure was dealt with in part at best.
        state.lose(|_| true);
        drop(state);
        self.changed.notify_all();
        self.wake.ring();
    }

    // The producer thread.

    /// Waits for room and adds a chunk; false once no more is wanted.
    pub(crate) fn put(&self, chunk: T) -> bool {
        let mut state = self.lock();
        while state.load() >= self.bound && !state.closed {
            state = self.changed.wait(state);
        }
        if state.closed {
            return false;
        }
        state.bytes += chunk.bytes();
        state.chunks.push_back(chunk);
        drop(state);
        self.wake.ring();
        true
    }

    /// Ends the queue for the producer, which has said all or has failed.
    pub(crate) fn finish(&self, error: Option<BoxError>) {
        let mut state = self.lock();
        state.open = 0;
        state.error = error;
        drop(state);
        self.wake.ring();
    }

    // The drain as the consumer.

    pub(crate) fn try_take(&self) -> TakeOutcome<T> {
        let mut state = self.lock();
        if let Some(chunk) = state.chunks.pop_front() {
            state.bytes -= chunk.bytes();
            self.changed.notify_one();
            return TakeOutcome::Chunk(chunk);
        }
        match (state.open == 0, state.error.take()) {
            (true, Some(error)) => TakeOutcome::Failed(error),
            (true, None) => TakeOutcome::End,
            (false, _) => TakeOutcome::Empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Instant;

    use super::*;
    use StdStream::{Stderr, Stdout};
    use procwright_os::poll::{self, Flags};
    use procwright_os::time::Deadline;

    struct TestItem(StdStream, usize);

    impl FifoItem for TestItem {
        fn bytes(&self) -> usize {
            self.1
        }

        fn stream(&self) -> StdStream {
            self.0
        }
    }

    fn rings(wake: &Wake) -> bool {
        let mut fds = [poll::Fd::from_borrowed_fd(wake.as_fd(), Flags::IN)];
        poll::poll(&mut fds, Deadline::at(Instant::now())).unwrap() > 0
    }

    #[test]
    fn who_was_told_to_wait_is_rung_though_the_other_was_let_in() {
        let wake = Arc::new(Wake::new().unwrap());
        let queue = Fifo::new(Arc::clone(&wake), 2);
        for _ in 0..4 {
            assert!(queue.has_room());
            queue.offer(TestItem(StdStream::Stdout, BOUND / 4));
        }
        assert!(!queue.has_room(), "the first stream waits");
        // One in hand still counts, so it takes two to make room.
        let _ = (queue.take(), queue.take());
        assert!(queue.has_room(), "the second does not");
        let _ = (queue.take(), queue.take());
        assert!(rings(&wake));
    }

    #[test]
    fn a_broken_stream_takes_nothing_from_the_other() {
        let queue = Fifo::new(Arc::new(Wake::new().unwrap()), 2);
        for (stream, bytes) in [(Stdout, 1), (Stderr, 10), (Stdout, 100), (Stderr, 1000)] {
            queue.offer(TestItem(stream, bytes));
        }
        assert_eq!(queue.take().map(|of| of.1), Some(1));
        queue.break_off(Stdout);
        queue.offer(TestItem(Stdout, 7));
        assert_eq!(queue.broken(), PerStream::new(true, false));
        assert_eq!(queue.undelivered(), PerStream::new(108, 1010));
        queue.end();
        queue.end();
        let rest: Vec<usize> = std::iter::from_fn(|| queue.take()).map(|of| of.1).collect();
        assert_eq!(rest, [10, 1000]);
        assert_eq!(queue.undelivered(), PerStream::new(108, 0));
    }
}
