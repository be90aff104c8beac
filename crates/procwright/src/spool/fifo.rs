//! A bounded queue between the drain and whoever may be slow.
//!
//! One side is the drain, which never waits here: it asks, and is rung when the
//! answer may have changed. The other side is a thread that waits as long as it
//! likes: a consumer of output or a producer of input.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::sys::wake::Wake;

/// An error of somebody else's code: an iterator, a callback.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The bytes that may lie in a queue before its producer has to wait.
///
/// One more chunk may come on top, since a chunk is never split.
const BOUND: usize = 16 * 1024 * 1024;

/// What a chunk costs beside its bytes: a program that writes byte by byte must
/// not fill the memory with bookkeeping.
const OVERHEAD: usize = 96;

/// What lies in a queue, and is never split.
pub(crate) trait Item {
    fn bytes(&self) -> usize;

    /// Which of the two output streams it is of, 0 or 1.
    fn stream(&self) -> usize;
}

impl Item for Bytes {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn stream(&self) -> usize {
        0
    }
}

pub(crate) struct Fifo<T> {
    state: Mutex<State<T>>,
    /// For the waiting side.
    changed: Condvar,
    /// For the drain's side.
    wake: Arc<Wake>,
    bound: usize,
}

struct State<T> {
    chunks: VecDeque<T>,
    /// The bytes in `chunks`.
    bytes: usize,
    /// The bytes of the chunk that the consumer has in hand, of each stream.
    in_hand: [usize; 2],
    /// Bytes that no consumer will ever take, of each stream.
    lost: [u64; 2],
    /// How many streams still go on.
    open: usize,
    /// The consumer takes no more of a stream, and goes on with the other.
    broken: [bool; 2],
    /// The consumer takes no more: it is done, or has failed, or is gone.
    closed: bool,
    /// The drain's side has gone and wants nothing more to be consumed.
    left: bool,
    error: Option<BoxError>,
    /// The drain saw no room and waits to be rung.
    wants_room: bool,
}

/// What the drain's side finds when it looks for input.
#[derive(Debug)]
pub(crate) enum Take<T> {
    Chunk(T),
    Empty,
    End,
    Failed(BoxError),
}

impl<T: Item> State<T> {
    /// The memory that is taken.
    fn load(&self) -> usize {
        self.bytes + self.in_hand[0] + self.in_hand[1] + self.chunks.len() * OVERHEAD
    }

    /// Forgets what waits or is in hand, of the streams in question.
    fn lose(&mut self, which: impl Fn(usize) -> bool) {
        for stream in [0, 1] {
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

impl<T: Item> Fifo<T> {
    /// A queue that so many streams lead into.
    pub(crate) fn new(wake: Arc<Wake>, streams: usize) -> Arc<Fifo<T>> {
        Arc::new(Fifo {
            state: Mutex::new(State {
                chunks: VecDeque::new(),
                bytes: 0,
                in_hand: [0; 2],
                lost: [0; 2],
                open: streams,
                broken: [false; 2],
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

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // A panic of a user's callback must not turn into one of ours.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The drain as the producer.

    /// Whether another chunk may be offered. After "no" the wake-up rings once
    /// there is room.
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.lock();
        let room = state.closed || state.load() < self.bound;
        // Not taken back by a "yes": the queue's other stream may have been told
        // "no" before, and waits.
        state.wants_room |= !room;
        room
    }

    /// Adds a chunk; dropped if nobody takes it any more.
    pub(crate) fn offer(&self, chunk: T) {
        let mut state = self.lock();
        let stream = chunk.stream();
        if state.closed || state.broken[stream] {
            state.lost[stream] += chunk.bytes() as u64;
        } else {
            state.bytes += chunk.bytes();
            state.chunks.push_back(chunk);
            self.changed.notify_one();
        }
    }

    /// Nothing more will come of one of the streams.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.open = state.open.saturating_sub(1);
        drop(state);
        self.changed.notify_all();
    }

    /// Nothing more will come at all.
    pub(crate) fn end_all(&self) {
        self.lock().open = 0;
        self.changed.notify_all();
    }

    /// Which streams the consumer takes no more of, while it goes on.
    pub(crate) fn broken(&self) -> [bool; 2] {
        self.lock().broken
    }

    /// Whether the consumer has finished, and the error that it finished with.
    pub(crate) fn closed(&self) -> (bool, Option<BoxError>) {
        let mut state = self.lock();
        (state.closed, state.error.take())
    }

    /// Nothing more will come, and what is there will not be given out.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.left = true;
        // What is in hand is dealt with still.
        let in_hand = std::mem::take(&mut state.in_hand);
        state.lose(|_| true);
        state.in_hand = in_hand;
        drop(state);
        self.changed.notify_all();
    }

    /// The bytes that the consumer has not dealt with, or never will, of each
    /// stream.
    pub(crate) fn undelivered(&self) -> [u64; 2] {
        let state = self.lock();
        let mut bytes = state.lost;
        for stream in [0, 1] {
            bytes[stream] += state.in_hand[stream] as u64;
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
        state.in_hand = [0; 2];
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
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the stream was left before its end.
    pub(crate) fn was_left(&self) -> bool {
        self.lock().left
    }

    /// The consumer takes no more of one stream. What it has in hand of it was
    /// dealt with in part at best.
    pub(crate) fn break_off(&self, stream: usize) {
        let mut state = self.lock();
        state.broken[stream] = true;
        state.lose(|of| of == stream);
        drop(state);
        self.wake.ring();
    }

    /// The consumer takes no more.
    pub(crate) fn close(&self, error: Option<BoxError>) {
        let mut state = self.lock();
        state.closed = true;
        state.error = error;
        // What is in hand after a failure was dealt with in part at best.
        state.lose(|_| true);
        drop(state);
        self.changed.notify_all();
        self.wake.ring();
    }

    // The producer thread.

    /// Waits for room and adds a chunk; false once nobody wants it.
    pub(crate) fn put(&self, chunk: T) -> bool {
        let mut state = self.lock();
        while state.load() >= self.bound && !state.closed {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
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

    /// The producer has said all, or has failed.
    pub(crate) fn finish(&self, error: Option<BoxError>) {
        let mut state = self.lock();
        state.open = 0;
        state.error = error;
        drop(state);
        self.wake.ring();
    }

    // The drain as the consumer.

    pub(crate) fn try_take(&self) -> Take<T> {
        let mut state = self.lock();
        if let Some(chunk) = state.chunks.pop_front() {
            state.bytes -= chunk.bytes();
            self.changed.notify_one();
            return Take::Chunk(chunk);
        }
        match (state.open == 0, state.error.take()) {
            (true, Some(error)) => Take::Failed(error),
            (true, None) => Take::End,
            (false, _) => Take::Empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Instant;

    use super::*;
    use crate::sys::poll::{self, Flags};
    use crate::time::Deadline;

    struct Of(usize, usize);

    impl Item for Of {
        fn bytes(&self) -> usize {
            self.1
        }

        fn stream(&self) -> usize {
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
            queue.offer(Of(0, BOUND / 4));
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
        for (stream, bytes) in [(0, 1), (1, 10), (0, 100), (1, 1000)] {
            queue.offer(Of(stream, bytes));
        }
        assert_eq!(queue.take().map(|of| of.1), Some(1));
        queue.break_off(0);
        queue.offer(Of(0, 7));
        assert_eq!(queue.broken(), [true, false]);
        assert_eq!(queue.undelivered(), [108, 1010]);
        queue.end();
        queue.end();
        let rest: Vec<usize> = std::iter::from_fn(|| queue.take()).map(|of| of.1).collect();
        assert_eq!(rest, [10, 1000]);
        assert_eq!(queue.undelivered(), [108, 0]);
    }
}
