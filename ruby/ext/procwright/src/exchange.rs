//! Questions of the core's threads, which a thread of Ruby's answers: the core calls from threads
//! that Ruby does not know, and that must not touch it.

use std::os::fd::AsFd;

use magnus::Error;
use procwright::time::Deadline;
use procwright_os::sync::{Condvar, Mutex};
use procwright_os::wake::Wake;

use crate::interruptible::{Interrupts, poll_readable};

/// One question at a time: a second thread that asks waits for its turn.
pub(crate) struct Exchange<Q, A> {
    /// Held by the thread that asks.
    turn: Mutex<()>,
    state: Mutex<State<Q, A>>,
    /// Wakes the thread that asks.
    answered: Condvar,
    /// Wakes Ruby's.
    came: Wake,
}

enum State<Q, A> {
    /// Nobody asks.
    Idle,
    Asked(Q),
    /// Ruby's thread has the question.
    Taken,
    Answered(A),
    /// There are no answers any more.
    Closed,
}

impl<Q, A> Exchange<Q, A> {
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn new() -> std::io::Result<Exchange<Q, A>> {
        Ok(Exchange {
            turn: Mutex::new(()),
            state: Mutex::new(State::Idle),
            answered: Condvar::new(),
            came: Wake::new()?,
        })
    }

    /// Asks, and waits for the answer; none once it is closed.
    pub(crate) fn ask(&self, question: Q) -> Option<A> {
        let _turn = self.turn.lock();
        self.change(State::Asked(question));
        self.came.ring();
        let mut state = self.state.lock();
        loop {
            match std::mem::replace(&mut *state, State::Idle) {
                State::Answered(answer) => return Some(answer),
                State::Closed => {
                    *state = State::Closed;
                    return None;
                }
                other => {
                    *state = other;
                    state = self.answered.wait(state);
                }
            }
        }
    }

    /// Waits for the next question, as a thread of Ruby's; none once it is closed, and when
    /// `is_ours` is false, as in a fork.
    ///
    /// # Errors
    /// What an interrupt has thrown.
    pub(crate) fn take(&self, is_ours: impl Fn() -> bool) -> Result<Option<Q>, Error> {
        let interrupts = Interrupts::watch()?;
        while is_ours() {
            self.came.silence();
            let mut state = self.state.lock();
            match std::mem::replace(&mut *state, State::Taken) {
                State::Asked(question) => return Ok(Some(question)),
                State::Closed => {
                    *state = State::Closed;
                    return Ok(None);
                }
                other => *state = other,
            }
            drop(state);
            let watched = [self.came.as_fd(), interrupts.as_fd()];
            interrupts.without_gvl(|| poll_readable(&watched, Deadline::NEVER))?;
        }
        Ok(None)
    }

    /// Answers the question that was taken.
    pub(crate) fn answer(&self, answer: A) {
        self.change(State::Answered(answer));
    }

    /// There are no answers any more, and nobody waits for one.
    pub(crate) fn close(&self) {
        self.change(State::Closed);
        self.came.ring();
    }

    fn change(&self, to: State<Q, A>) {
        let mut state = self.state.lock();
        if !matches!(*state, State::Closed) {
            *state = to;
        }
        drop(state);
        self.answered.notify_all();
    }
}
