//! A bounded queue between the drain and whoever may be slow.
//!
//! One side is the drain, which never waits here: it asks, and is rung when the
//! answer may have changed. The other side is a thread that waits as long as it
//! likes: a consumer of output or a producer of input.

use std::collections::VecDeque;
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

#[derive(Debug)]
pub(crate) struct Fifo {
    state: Mutex<State>,
    /// For the waiting side.
    changed: Condvar,
    /// For the drain's side.
    wake: Arc<Wake>,
    bound: usize,
}

#[derive(Debug, Default)]
struct State {
    chunks: VecDeque<Bytes>,
    /// The bytes in `chunks`.
    bytes: usize,
    /// The bytes of the chunk that the consumer has in hand.
    in_hand: usize,
    /// Bytes that no consumer will ever take.
    lost: u64,
    /// The producer has said all.
    ended: bool,
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
pub(crate) enum Take {
    Chunk(Bytes),
    Empty,
    End,
    Failed(BoxError),
}

impl State {
    /// The memory that is taken.
    fn load(&self) -> usize {
        self.bytes + self.in_hand + self.chunks.len() * OVERHEAD
    }
}

impl Fifo {
    pub(crate) fn new(wake: Arc<Wake>) -> Arc<Fifo> {
        Arc::new(Fifo {
            state: Mutex::default(),
            changed: Condvar::new(),
            wake,
            bound: BOUND,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of a user's callback must not turn into one of ours.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The drain as the producer.

    /// Whether another chunk may be offered. After "no" the wake-up rings once
    /// there is room.
    pub(crate) fn has_room(&self) -> bool {
        let mut state = self.lock();
        let room = state.closed || state.load() < self.bound;
        state.wants_room = !room;
        room
    }

    /// Adds a chunk; dropped if nobody takes it any more.
    pub(crate) fn offer(&self, chunk: Bytes) {
        let mut state = self.lock();
        if state.closed {
            state.lost += chunk.len() as u64;
        } else {
            state.bytes += chunk.len();
            state.chunks.push_back(chunk);
            self.changed.notify_one();
        }
    }

    /// Nothing more will come, from whichever side produces.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
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
        state.lost += std::mem::take(&mut state.bytes) as u64;
        state.chunks.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// The bytes that the consumer has not dealt with, or never will.
    pub(crate) fn undelivered(&self) -> u64 {
        let state = self.lock();
        state.lost + (state.bytes + state.in_hand) as u64
    }

    // The consumer thread.

    /// Waits for the next chunk; none at the end.
    pub(crate) fn take(&self) -> Option<Bytes> {
        let mut state = self.lock();
        state.in_hand = 0;
        loop {
            if state.closed || state.left {
                return None;
            }
            if let Some(chunk) = state.chunks.pop_front() {
                state.bytes -= chunk.len();
                state.in_hand = chunk.len();
                // Half empty, not just below the bound: one wake-up of the
                // drain for 8 MiB instead of one for each chunk.
                if state.wants_room && state.load() <= self.bound / 2 {
                    state.wants_room = false;
                    self.wake.ring();
                }
                return Some(chunk);
            }
            if state.ended {
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

    /// The consumer takes no more.
    pub(crate) fn close(&self, error: Option<BoxError>) {
        let mut state = self.lock();
        state.closed = true;
        state.error = error;
        // What is in hand after a failure was dealt with in part at best.
        state.lost += (state.bytes + state.in_hand) as u64;
        (state.bytes, state.in_hand) = (0, 0);
        state.chunks.clear();
        drop(state);
        self.changed.notify_all();
        self.wake.ring();
    }

    // The producer thread.

    /// Waits for room and adds a chunk; false once nobody wants it.
    pub(crate) fn put(&self, chunk: Bytes) -> bool {
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
        state.bytes += chunk.len();
        state.chunks.push_back(chunk);
        drop(state);
        self.wake.ring();
        true
    }

    /// The producer has said all, or has failed.
    pub(crate) fn finish(&self, error: Option<BoxError>) {
        let mut state = self.lock();
        state.ended = true;
        state.error = error;
        drop(state);
        self.wake.ring();
    }

    // The drain as the consumer.

    pub(crate) fn try_take(&self) -> Take {
        let mut state = self.lock();
        if let Some(chunk) = state.chunks.pop_front() {
            state.bytes -= chunk.len();
            self.changed.notify_one();
            return Take::Chunk(chunk);
        }
        match (state.ended, state.error.take()) {
            (true, Some(error)) => Take::Failed(error),
            (true, None) => Take::End,
            (false, _) => Take::Empty,
        }
    }
}
