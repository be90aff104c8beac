//! The calls that receive.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use super::Receiver;
use super::view::{Batch, View};
use crate::error::Error;
use procwright_os::time::{Deadline, Timeout};

impl Receiver {
    /// Receives a message.
    ///
    /// # Blocking
    /// Until there is one.
    ///
    /// # Errors
    /// [`Error::Closed`] if there will be none: every sender is gone, and no invitation is
    /// left. [`Error::Damaged`] once for a lane that is not read any more. [`Error::Io`]
    /// when there is no memory left to map a lane. [`Error::Forked`].
    #[doc(alias = "mq_receive")]
    pub fn recv(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.recv_view()?.to_vec())
    }

    /// Receives a message if there is one.
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv); [`Error::Empty`].
    #[doc(alias = "O_NONBLOCK")]
    #[inline]
    pub fn try_recv(&mut self) -> Result<Vec<u8>, Error> {
        Ok(self.try_recv_view()?.to_vec())
    }

    /// Receives a message that comes within the time.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv); [`Error::TimedOut`].
    #[doc(alias = "mq_timedreceive")]
    pub fn recv_timeout(&mut self, timeout: impl Into<Timeout>) -> Result<Vec<u8>, Error> {
        Ok(self.recv_view_timeout(timeout)?.to_vec())
    }

    /// Receives a message without a copy: it is read where it is, and received when the
    /// view is dropped.
    ///
    /// # Blocking
    /// As [`recv`](Receiver::recv).
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv).
    #[inline]
    pub fn recv_view(&mut self) -> Result<View<'_>, Error> {
        let mut found = self.next_in_current();
        if found.is_none() && self.spin_until_seen() {
            found = self.next_in_current();
        }
        if let Some(span) = found {
            return Ok(View::new(self, span));
        }
        self.recv_in_time()
    }

    fn recv_in_time(&mut self) -> Result<View<'_>, Error> {
        let span = self.wait(Deadline::NEVER)?;
        Ok(View::new(self, span))
    }

    /// Receives a message without a copy that comes within the time.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// As [`recv_timeout`](Receiver::recv_timeout).
    pub fn recv_view_timeout(&mut self, timeout: impl Into<Timeout>) -> Result<View<'_>, Error> {
        let deadline = timeout.into().starting(Instant::now());
        let span = self.wait(deadline)?;
        Ok(View::new(self, span))
    }

    /// Receives a message without a copy if there is one now.
    ///
    /// # Errors
    /// As [`try_recv`](Receiver::try_recv).
    #[inline]
    pub fn try_recv_view(&mut self) -> Result<View<'_>, Error> {
        if let Some(span) = self.next_in_current() {
            return Ok(View::new(self, span));
        }
        if self.is_quiet() {
            return Err(Error::Empty);
        }
        self.try_recv_anything()
    }

    fn try_recv_anything(&mut self) -> Result<View<'_>, Error> {
        self.end_sleep();
        match self.next_now()? {
            Some(span) => Ok(View::new(self, span)),
            None => {
                let span = self.look_before_empty()?;
                Ok(View::new(self, span))
            }
        }
    }

    /// Receives messages of one sender without a copy: one, and at most `most` if that is
    /// more. They are received when the batch is dropped: if this process dies before, none
    /// of them is.
    ///
    /// # Blocking
    /// Until there is one.
    ///
    /// # Errors
    /// As [`recv`](Receiver::recv).
    #[doc(alias = "recvmmsg")]
    pub fn recv_many(&mut self, most: usize) -> Result<Batch<'_>, Error> {
        let mut spans = vec![self.wait(Deadline::NEVER)?];
        while spans.len() < most {
            // Damage is left to the next call, which finds it again.
            match self.lanes[self.current].reader.next() {
                Ok(Some(span)) => spans.push(span),
                _ => break,
            }
        }
        let more = u32::try_from(spans.len() - 1).unwrap_or(u32::MAX);
        self.quota = self.quota.saturating_sub(more);
        Ok(Batch::new(self, spans))
    }

    /// Returns a descriptor that is readable when there may be something to receive: for
    /// event loops. Whenever it is, call [`try_recv`](Receiver::try_recv) until that says
    /// that the queue is empty, or closed; from then on the descriptor tells of the next
    /// message.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::Damaged`] or [`Error::Io`] for what was found on the
    /// way.
    #[doc(alias = "epoll")]
    #[doc(alias = "mq_notify")]
    pub fn readiness_fd(&mut self) -> Result<BorrowedFd<'_>, Error> {
        self.check()?;
        self.has_watcher = true;
        // Messages that are there already make it readable, too.
        self.links.wake_self();
        Ok(self.links.as_fd())
    }
}
