//! A lock whose waiters can time out, be interrupted through a descriptor, or learn
//! that there is nothing left to wait for: `mutex_lock_interruptible` of the kernel,
//! for threads that sleep on a descriptor one at a time.
//!
//! One byte would wake all readers of a pipe if each polled it, and a close would as
//! well. Here the holder of the lock polls and the others queue. A thread that leaves
//! wakes the next, so that the closer wakes one and pays for one, however many there
//! are.
//!
//! A waiter with an interrupt cannot queue at a condition variable, which knows no
//! descriptors: it sleeps in `poll`, on the interrupt and a wake-up of its own. Only
//! such a waiter pays for that.
//!
//! # The race of a wake-up with a waiter that gives up
//!
//! 1. A waiter has its wake-up in the queue and sleeps.
//! 2. The holder leaves: under the mutex it frees the lock, takes the wake-up out of
//!    the queue and rings it.
//! 3. At that moment the waiter's interrupt comes or its time is over.
//! 4. The waiter takes the mutex before it gives up, and tries the lock once more. If
//!    it was rung, it takes the lock and passes it on later. If another thread was
//!    faster, that one holds the lock and will wake the next.
//!
//! No wake-up is lost with a waiter that gives up; the loom tests run all orders.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::{HandleError, Patience};
use crate::poll::{self, Fd, Flags};
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::time::Deadline;
use crate::wake::Wake;

/// A lock with interruptible waiters. `B` is the wake-up of such a waiter.
#[doc(alias = "mutex_lock_interruptible")]
#[derive(Debug)]
pub struct InterruptibleLock<B = Wake> {
    queue: Mutex<LockQueue<B>>,
    left: Condvar,
}

#[derive(Debug)]
struct LockQueue<B> {
    taken: bool,
    /// Waiters at the condition variable.
    at_condvar: usize,
    /// Wake-ups of the waiters that sleep in `poll`, the longest first.
    wakes: VecDeque<Arc<B>>,
    /// True if such a waiter is woken next when both kinds wait: none must starve.
    prefer_wakes: bool,
}

/// A wake-up that stays rung until its waiter has seen it.
pub trait StickyWake {
    /// Wakes the waiter, now or when it goes to sleep.
    fn ring(&self);
}

impl StickyWake for Wake {
    fn ring(&self) {
        Wake::ring(self);
    }
}

/// The lock as a guard; dropping it passes the lock on.
#[derive(Debug)]
pub struct InterruptibleGuard<'a, B: StickyWake = Wake>(&'a InterruptibleLock<B>);

impl InterruptibleLock {
    /// Waits for the lock, unless `over` says that there is nothing to wait for.
    ///
    /// # Errors
    /// `Closed` if `over` says so, `TimedOut`, `Interrupted`; `Os` if there is no
    /// descriptor for the wake-up.
    ///
    /// # Blocking
    /// As long as `patience` lasts.
    pub fn take(
        &self,
        patience: Patience<'_>,
        over: impl Fn() -> bool,
    ) -> Result<InterruptibleGuard<'_>, HandleError> {
        let deadline = patience.deadline();
        let Some(interrupt) = patience.interrupt() else {
            return self.lock_at_condvar(deadline, over);
        };
        // Mostly the lock is free, and a wake-up is a descriptor.
        if let Some(taken) = self.try_lock(&over) {
            return taken;
        }
        let wake = Arc::new(Wake::new()?);
        self.lock_with_wake(&wake, over, || {
            let mut fds = [
                Fd::new(&*wake, Flags::IN),
                Fd::from_borrowed_fd(interrupt, Flags::IN),
            ];
            match poll::poll(&mut fds, deadline) {
                Ok(0) => return Err(HandleError::TimedOut),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
                Ok(_) if fds[0].revents().is_empty() => return Err(HandleError::Interrupted),
                Ok(_) => wake.silence(),
            }
            Ok(())
        })
    }
}

impl<B: StickyWake> InterruptibleLock<B> {
    /// A free lock.
    pub fn new() -> InterruptibleLock<B> {
        InterruptibleLock {
            queue: Mutex::new(LockQueue {
                taken: false,
                at_condvar: 0,
                wakes: VecDeque::new(),
                prefer_wakes: false,
            }),
            left: Condvar::new(),
        }
    }

    fn try_lock(
        &self,
        over: impl Fn() -> bool,
    ) -> Option<Result<InterruptibleGuard<'_, B>, HandleError>> {
        self.try_lock_unless_over(self.queue.lock(), over).ok()
    }

    /// Waits for the lock at the condition variable.
    pub(super) fn lock_at_condvar(
        &self,
        deadline: Deadline,
        over: impl Fn() -> bool,
    ) -> Result<InterruptibleGuard<'_, B>, HandleError> {
        let mut queue = self.queue.lock();
        loop {
            queue = match self.try_lock_unless_over(queue, &over) {
                Ok(decided) => return decided,
                Err(queue) => queue,
            };
            let left = deadline.remaining(Instant::now());
            if left.is_some_and(|left| left.is_zero()) {
                return Err(HandleError::TimedOut);
            }
            queue.at_condvar += 1;
            queue = match left {
                None => self.left.wait(queue),
                Some(left) => self.left.wait_timeout(queue, left).0,
            };
            queue.at_condvar -= 1;
        }
    }

    /// Waits for the lock on `wake`: `sleep` returns when that was rung, or sooner, and
    /// fails when the waiter gives up.
    pub(super) fn lock_with_wake(
        &self,
        wake: &Arc<B>,
        over: impl Fn() -> bool,
        mut sleep: impl FnMut() -> Result<(), HandleError>,
    ) -> Result<InterruptibleGuard<'_, B>, HandleError> {
        let mut given_up = None;
        loop {
            let mut queue = self.queue.lock();
            queue.wakes.retain(|other| !Arc::ptr_eq(other, wake));
            // Tried by a waiter that gives up too: step 4 of the race told above.
            queue = match self.try_lock_unless_over(queue, &over) {
                Ok(decided) => return decided,
                Err(queue) => queue,
            };
            if let Some(refused) = given_up {
                return Err(refused);
            }
            queue.wakes.push_back(Arc::clone(wake));
            drop(queue);
            given_up = sleep().err();
        }
    }

    /// Takes the lock if it is free, unless all is over; gives the mutex back if
    /// there is something to wait for.
    fn try_lock_unless_over<'a>(
        &'a self,
        mut queue: MutexGuard<'a, LockQueue<B>>,
        over: impl Fn() -> bool,
    ) -> Result<Result<InterruptibleGuard<'a, B>, HandleError>, MutexGuard<'a, LockQueue<B>>> {
        if over() {
            // The next waiter has to learn of it as well, and this one may have been woken in
            // its stead.
            self.wake_next(&mut queue);
            return Ok(Err(HandleError::Closed));
        }
        if queue.taken {
            return Err(queue);
        }
        queue.taken = true;
        Ok(Ok(InterruptibleGuard(self)))
    }

    /// Wakes one waiter. It takes the lock, or finds it taken by a thread that will wake
    /// the next, or finds that all is over and wakes the next itself.
    fn wake_next(&self, queue: &mut LockQueue<B>) {
        queue.prefer_wakes = !queue.prefer_wakes;
        if (queue.prefer_wakes || queue.at_condvar == 0)
            && let Some(wake) = queue.wakes.pop_front()
        {
            wake.ring();
        } else if queue.at_condvar > 0 {
            // A system call whether a thread waits or not, so the waiters are counted.
            self.left.notify_one();
        }
    }

    /// Wakes one waiter, which finds that all is over and wakes the next: for a thread
    /// that has ended it while the holder may not notice soon.
    pub fn wake_one(&self) {
        let mut queue = self.queue.lock();
        self.wake_next(&mut queue);
    }
}

impl<B: StickyWake> Default for InterruptibleLock<B> {
    fn default() -> InterruptibleLock<B> {
        InterruptibleLock::new()
    }
}

impl<B: StickyWake> Drop for InterruptibleGuard<'_, B> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.taken = false;
        self.0.wake_next(&mut queue);
    }
}
