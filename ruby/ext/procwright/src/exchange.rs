//! Questions of the core's threads, which a thread of Ruby's answers: the core calls from threads
//! that Ruby does not know, and that must not touch it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use magnus::Error;
use procwright::time::Deadline;
use procwright_os::sync::{Condvar, Mutex};
use procwright_os::wake::Wake;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::interruptible::{Interrupts, poll_readable};

/// One question at a time: a second thread that asks waits for its turn.
pub(crate) struct Exchange<Q, A> {
    /// Held by the thread that asks.
    turn: Mutex<()>,
    shared: Mutex<Shared<Q, A>>,
    /// Wakes the thread that asks.
    answered: Condvar,
    /// Wakes Ruby's.
    came: Wake,
}

struct Shared<Q, A> {
    state: State<Q, A>,
    /// There are no answers any more, but one that was given already.
    is_closed: bool,
    /// It is closed by whoever finds this readable, and no question.
    over: Option<Arc<OwnedFd>>,
}

enum State<Q, A> {
    /// Nobody asks.
    Idle,
    Asked(Q),
    /// Ruby's thread has the question.
    Taken,
    Answered(A),
}

impl<Q, A> Exchange<Q, A> {
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn new() -> std::io::Result<Exchange<Q, A>> {
        Ok(Exchange {
            turn: Mutex::new(()),
            shared: Mutex::new(Shared {
                state: State::Idle,
                is_closed: false,
                over: None,
            }),
            answered: Condvar::new(),
            came: Wake::new()?,
        })
    }

    /// Asks, and waits for the answer; none once it is closed.
    pub(crate) fn ask(&self, question: Q) -> Option<A> {
        let _turn = self.turn.lock();
        let mut shared = self.shared.lock();
        if shared.is_closed {
            return None;
        }
        shared.state = State::Asked(question);
        self.came.ring();
        loop {
            match std::mem::replace(&mut shared.state, State::Idle) {
                State::Answered(answer) => return Some(answer),
                _ if shared.is_closed => return None,
                other => {
                    shared.state = other;
                    shared = self.answered.wait(shared);
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
            let mut shared = self.shared.lock();
            if shared.is_closed {
                return Ok(None);
            }
            match std::mem::replace(&mut shared.state, State::Taken) {
                State::Asked(question) => return Ok(Some(question)),
                other => shared.state = other,
            }
            let over = shared.over.clone();
            if over.as_deref().is_some_and(is_readable) {
                shared.is_closed = true;
                return Ok(None);
            }
            drop(shared);
            let mut watched = vec![self.came.as_fd(), interrupts.as_fd()];
            watched.extend(over.as_deref().map(AsFd::as_fd));
            interrupts.without_gvl(|| poll_readable(&watched, Deadline::NEVER))?;
        }
        Ok(None)
    }

    /// Answers the question that was taken.
    pub(crate) fn answer(&self, answer: A) {
        self.shared.lock().state = State::Answered(answer);
        self.answered.notify_all();
    }

    /// Has it closed once `over` is readable.
    pub(crate) fn close_with(&self, over: OwnedFd) {
        self.shared.lock().over = Some(Arc::new(over));
        self.came.ring();
    }

    /// There are no answers any more, and nobody waits for one.
    pub(crate) fn close(&self) {
        self.shared.lock().is_closed = true;
        self.answered.notify_all();
        self.came.ring();
    }
}

fn is_readable(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
