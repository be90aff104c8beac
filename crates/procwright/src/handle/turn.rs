//! One at a time: whose turn it is to sleep on a descriptor.
//!
//! If every reader of a pipe polled it, one byte would wake them all, and a
//! close as well. Here one polls and the others queue. Whoever leaves wakes the
//! next, so that the closer wakes one and pays for one, however many there are.
//!
//! Who may be interrupted cannot queue at a condition variable, which knows no
//! descriptors: it sleeps in `poll`, on the interrupt and a wake-up of its own.
//! Only such a one pays for that.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::{Patience, Refused};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::sys::poll::{self, Fd, Flags};
use crate::sys::wake::Wake;
use crate::time::Deadline;

#[derive(Debug)]
pub(crate) struct Turn<B = Wake> {
    queue: Mutex<Queue<B>>,
    left: Condvar,
}

#[derive(Debug)]
struct Queue<B> {
    taken: bool,
    /// Those who sleep at the condition variable.
    plain: usize,
    /// Those who sleep on a wake-up of their own, the longest first.
    bells: VecDeque<Arc<B>>,
    /// Which of the two kinds comes next, if both wait: none must starve.
    bell_next: bool,
}

/// A wake-up of somebody's own, sticky.
pub(crate) trait Bell {
    fn ring(&self);
}

impl Bell for Wake {
    fn ring(&self) {
        Wake::ring(self);
    }
}

/// It is ours; dropping it passes it on.
#[derive(Debug)]
pub(crate) struct Mine<'a, B: Bell = Wake>(&'a Turn<B>);

impl Turn {
    /// Waits for the turn, unless `over` says that there is nothing to wait for.
    pub(crate) fn take(
        &self,
        patience: Patience<'_>,
        over: impl Fn() -> bool,
    ) -> Result<Mine<'_>, Refused> {
        let deadline = patience.deadline();
        let Some(interrupt) = patience.interrupt() else {
            return self.queue_up(deadline, over);
        };
        // Mostly nobody is there, and a wake-up is a descriptor.
        if let Some(taken) = self.try_take(&over) {
            return taken;
        }
        let bell = Arc::new(Wake::new()?);
        self.queue_with(&bell, over, || {
            let mut fds = [
                Fd::new(&*bell, Flags::IN),
                Fd::from_borrowed_fd(interrupt, Flags::IN),
            ];
            match poll::poll(&mut fds, deadline) {
                Ok(0) => return Err(Refused::TimedOut),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
                Ok(_) if fds[0].revents().is_empty() => return Err(Refused::Interrupted),
                Ok(_) => bell.silence(),
            }
            Ok(())
        })
    }
}

impl<B: Bell> Turn<B> {
    pub(crate) fn new() -> Turn<B> {
        Turn {
            queue: Mutex::new(Queue {
                taken: false,
                plain: 0,
                bells: VecDeque::new(),
                bell_next: false,
            }),
            left: Condvar::new(),
        }
    }

    fn try_take(&self, over: impl Fn() -> bool) -> Option<Result<Mine<'_, B>, Refused>> {
        self.decide(self.lock(), over).ok()
    }

    /// At the condition variable.
    pub(super) fn queue_up(
        &self,
        deadline: Deadline,
        over: impl Fn() -> bool,
    ) -> Result<Mine<'_, B>, Refused> {
        let mut queue = self.lock();
        loop {
            queue = match self.decide(queue, &over) {
                Ok(decided) => return decided,
                Err(queue) => queue,
            };
            let left = deadline.remaining(Instant::now());
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Refused::TimedOut);
            }
            queue.plain += 1;
            queue = match left {
                None => wait(&self.left, queue),
                Some(left) => wait_timeout(&self.left, queue, left),
            };
            queue.plain -= 1;
        }
    }

    /// On `bell`: `sleep` returns when it was rung, or sooner, and fails when it
    /// will not wait any longer.
    pub(super) fn queue_with(
        &self,
        bell: &Arc<B>,
        over: impl Fn() -> bool,
        mut sleep: impl FnMut() -> Result<(), Refused>,
    ) -> Result<Mine<'_, B>, Refused> {
        let mut given_up = None;
        loop {
            let mut queue = self.lock();
            queue.bells.retain(|other| !Arc::ptr_eq(other, bell));
            // Also for one who has given up: it may have been rung at the same
            // moment, and then the turn is its own to take or to pass on.
            queue = match self.decide(queue, &over) {
                Ok(decided) => return decided,
                Err(queue) => queue,
            };
            if let Some(refused) = given_up {
                return Err(refused);
            }
            queue.bells.push_back(Arc::clone(bell));
            drop(queue);
            given_up = sleep().err();
        }
    }

    /// Takes the turn if it is free, unless all is over; gives the lock back if
    /// there is something to wait for.
    fn decide<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue<B>>,
        over: impl Fn() -> bool,
    ) -> Result<Result<Mine<'a, B>, Refused>, MutexGuard<'a, Queue<B>>> {
        if over() {
            // The next has to learn of it as well, and it was us who were woken.
            self.wake_next(&mut queue);
            return Ok(Err(Refused::Closed));
        }
        if queue.taken {
            return Err(queue);
        }
        queue.taken = true;
        Ok(Ok(Mine(self)))
    }

    /// Wakes one. It takes the turn, or finds it taken by one who will pass it on
    /// in his turn, or finds that all is over and wakes the next itself.
    fn wake_next(&self, queue: &mut Queue<B>) {
        queue.bell_next = !queue.bell_next;
        if (queue.bell_next || queue.plain == 0)
            && let Some(bell) = queue.bells.pop_front()
        {
            bell.ring();
        } else if queue.plain > 0 {
            // A system call, whether anybody hears it or not.
            self.left.notify_one();
        }
    }

    /// Wakes one of those who queue, who finds that all is over and wakes the next:
    /// for whoever has ended it, where the one whose turn it is may not notice soon.
    pub(crate) fn wake_queue(&self) {
        let mut queue = self.lock();
        self.wake_next(&mut queue);
    }

    fn lock(&self) -> MutexGuard<'_, Queue<B>> {
        self.queue
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<B: Bell> Drop for Mine<'_, B> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.taken = false;
        self.0.wake_next(&mut queue);
    }
}

fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar
        .wait(guard)
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn wait_timeout<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    left: std::time::Duration,
) -> MutexGuard<'a, T> {
    let waited = condvar.wait_timeout(guard, left);
    waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
}
