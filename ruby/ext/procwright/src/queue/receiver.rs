//! The side that receives.

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use magnus::{Class, Error, Module, Object, RArray, RModule, RString, Ruby, function, method};
use procwright::queue::{self, Options};
use procwright::time::Timeout;
use procwright::wait::Waitable;

use super::blocking::briefly;
use super::errors::{Side, end_closed_error, queue_error};
use super::invitation::Invitation;
use super::sender::Sender;
use crate::arguments::seconds;
use crate::errors::{guarded, panic_error};
use crate::interruptible::{Interrupts, poll_readable};
use crate::string::binary_string;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Receiver", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("make", function!(Receiver::make, 4))?;
    class.define_singleton_method("of_name", function!(Receiver::of_name, 5))?;
    class.define_singleton_method("of_parent", function!(Receiver::of_parent, 4))?;
    class.define_singleton_method("take_over", function!(Receiver::take_over, 1))?;
    class.define_method("invite", method!(Receiver::invite, 0))?;
    class.define_method("sender", method!(Receiver::sender, 0))?;
    class.define_method("recv", method!(Receiver::recv, 1))?;
    class.define_method("try_recv", method!(Receiver::try_recv, 0))?;
    class.define_method("recv_many", method!(Receiver::recv_many, 2))?;
    class.define_method("readiness_fd", method!(Receiver::readiness_fd, 0))?;
    class.define_method("close", method!(Receiver::close, 0))?;
    class.define_method("closed?", method!(Receiver::is_closed, 0))
}

/// The receiver of a queue.
///
/// Any thread may call it at any time: it is used with Ruby's lock held, and for as long
/// as a look takes. A thread that waits sleeps on its descriptor, and does not borrow it.
#[magnus::wrap(class = "Procwright::Native::Receiver", free_immediately)]
pub(crate) struct Receiver {
    /// The core's receiver; none once it was closed and dropped.
    receiver: RefCell<Option<queue::Receiver>>,
    /// An error for the next look: the core tells of damage only once.
    pending_error: Cell<Option<queue::Error>>,
    /// True once closed. The last thread that sleeps on the descriptor then drops the receiver.
    is_closed: Cell<bool>,
    /// Number of threads that sleep on the descriptor.
    sleepers: Cell<usize>,
    /// A duplicate of its descriptor, which stays open under the sleepers.
    descriptor: OnceCell<Arc<OwnedFd>>,
}

/// The options of a new queue.
fn options(lanes: i64, first: Option<usize>, limit: usize, keep: usize) -> Options {
    // The core refuses 0, and with it any number that is no `u32`.
    let lanes = u32::try_from(lanes).unwrap_or(0);
    let options = Options::new().lanes(lanes).limit(limit).keep(keep);
    first.map_or(options, |first| options.first(first))
}

impl Receiver {
    pub(crate) fn of(receiver: queue::Receiver) -> Receiver {
        Receiver {
            receiver: RefCell::new(Some(receiver)),
            pending_error: Cell::new(None),
            is_closed: Cell::new(false),
            sleepers: Cell::new(0),
            descriptor: OnceCell::new(),
        }
    }

    fn make(
        lanes: i64,
        first: Option<usize>,
        limit: usize,
        keep: usize,
    ) -> Result<Receiver, Error> {
        guarded(|| {
            let options = options(lanes, first, limit, keep);
            briefly(Side::Receiver, || options.create()).map(Receiver::of)
        })
    }

    fn of_name(
        name: String,
        lanes: i64,
        first: Option<usize>,
        limit: usize,
        keep: usize,
    ) -> Result<Receiver, Error> {
        guarded(|| {
            let options = options(lanes, first, limit, keep);
            briefly(Side::Receiver, || options.open(&name)).map(Receiver::of)
        })
    }

    fn of_parent(
        lanes: i64,
        first: Option<usize>,
        limit: usize,
        keep: usize,
    ) -> Result<Receiver, Error> {
        guarded(|| {
            let options = options(lanes, first, limit, keep);
            briefly(Side::Receiver, || options.of_parent()).map(Receiver::of)
        })
    }

    fn take_over(invitation: &Invitation) -> Result<Receiver, Error> {
        guarded(|| {
            let place = invitation.try_clone()?;
            briefly(Side::Receiver, || queue::Receiver::take_over(&place)).map(Receiver::of)
        })
    }

    fn invite(&self) -> Result<Invitation, Error> {
        guarded(|| receiver_result(self.with(queue::Receiver::invite)?).map(Invitation::of))
    }

    fn sender(&self) -> Result<Sender, Error> {
        guarded(|| receiver_result(self.with(queue::Receiver::sender)?).map(Sender::of))
    }

    /// The next message; nil if the timeout came first.
    fn recv(&self, timeout: Option<f64>) -> Result<Option<RString>, Error> {
        guarded(|| self.next(seconds("timeout", timeout)?))
    }

    /// The next message, if there is one now.
    fn try_recv(&self) -> Result<Option<RString>, Error> {
        guarded(|| self.try_next())
    }

    /// One message to `most`, with what has come besides; nil if the timeout came first.
    fn recv_many(
        ruby: &Ruby,
        this: &Receiver,
        most: usize,
        timeout: Option<f64>,
    ) -> Result<Option<RArray>, Error> {
        guarded(|| {
            let timeout = seconds("timeout", timeout)?;
            let messages = ruby.ary_new();
            let Some(first) = this.next(timeout)? else {
                return Ok(None);
            };
            messages.push(first)?;
            while messages.len() < most {
                match this.with(recv_string)? {
                    Ok(message) => messages.push(message?)?,
                    Err(damaged @ queue::Error::Damaged { .. }) => {
                        this.pending_error.set(Some(damaged));
                        this.make_readable();
                        break;
                    }
                    // The next look finds it again.
                    Err(_) => break,
                }
            }
            if this.sleepers.get() > 0 {
                this.make_readable();
            }
            Ok(Some(messages))
        })
    }

    /// The descriptor, made readable if there is something already.
    pub(crate) fn readiness_fd(&self) -> Result<RawFd, Error> {
        guarded(|| {
            receiver_result(self.with(|receiver| receiver.readiness_fd().map(drop))?)?;
            Ok(self.descriptor()?.as_raw_fd())
        })
    }

    fn close(&self) {
        self.is_closed.set(true);
        match self.sleepers.get() {
            0 => drop(self.receiver.take()),
            // The sleepers look, and find it closed.
            _ => self.make_readable(),
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Lends the receiver to `work`. Meanwhile no code of Ruby's runs but what makes a string,
    /// so no other thread comes.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut queue::Receiver) -> Result<T, queue::Error>,
    ) -> Result<Result<T, queue::Error>, Error> {
        match &mut *self.receiver.borrow_mut() {
            Some(receiver) if !self.is_closed.get() => Ok(work(receiver)),
            _ => Err(end_closed_error(Side::Receiver, false)),
        }
    }

    /// The next message, if there is one now. The descriptor tells of those that come later.
    fn try_next(&self) -> Result<Option<RString>, Error> {
        let found = match self.pending_error.take() {
            None => self.with(recv_string)?,
            Some(error) => Err(error),
        };
        self.finish_look(found)
    }

    /// The next message, also if it is just being sent. The descriptor tells of nothing after
    /// this: [`try_next`](Self::try_next) has to follow at once.
    fn try_next_patiently(&self) -> Result<Option<RString>, Error> {
        let at_once = Duration::ZERO;
        self.finish_look(self.with(|receiver| {
            let found = receiver.recv_view_timeout(at_once);
            found.map(|message| binary_string(&message))
        })?)
    }

    /// A look's result for the caller; none if there was nothing.
    fn finish_look(
        &self,
        found: Result<Result<RString, Error>, queue::Error>,
    ) -> Result<Option<RString>, Error> {
        if let Err(queue::Error::Empty | queue::Error::TimedOut) = found {
            return Ok(None);
        }
        // The descriptor tells of a message once, and may have woken another thread than the
        // one that took it.
        if self.sleepers.get() > 0 {
            self.make_readable();
        }
        receiver_result(found)?.map(Some)
    }

    fn next(&self, timeout: Timeout) -> Result<Option<RString>, Error> {
        // Mostly there is one already.
        if let Some(message) = self.try_next()? {
            return Ok(Some(message));
        }
        let deadline = timeout.starting(Instant::now());
        if deadline.reached(Instant::now()) {
            return Ok(None);
        }
        let descriptor = self.descriptor()?;
        let interrupts = Interrupts::watch()?;
        let mut is_first = true;
        loop {
            interrupts.check()?;
            if self.is_closed.get() {
                return Err(end_closed_error(Side::Receiver, true));
            }
            if std::mem::take(&mut is_first)
                && let Some(message) = self.try_next_patiently()?
            {
                return Ok(Some(message));
            }
            if let Some(message) = self.try_next()? {
                return Ok(Some(message));
            }
            if deadline.reached(Instant::now()) {
                return Ok(None);
            }
            let _sleeper = self.add_sleeper();
            let slept = interrupts.without_gvl_unchecked(|| {
                poll_readable(&[descriptor.as_fd(), interrupts.as_fd()], deadline)
            });
            if let Some(Err(panic)) = slept {
                return Err(panic_error(&*panic));
            }
        }
    }

    /// The descriptor to sleep on. The core keeps it up to date from its first use on.
    pub(crate) fn descriptor(&self) -> Result<Arc<OwnedFd>, Error> {
        if let Some(descriptor) = self.descriptor.get() {
            return Ok(Arc::clone(descriptor));
        }
        let made = receiver_result(self.with(|receiver| {
            let descriptor = receiver.readiness_fd()?.try_clone_to_owned();
            Ok(descriptor.map(Arc::new)?)
        })?)?;
        Ok(Arc::clone(self.descriptor.get_or_init(|| made)))
    }

    /// True if there is something, or it was closed. If not, the descriptor tells when.
    pub(crate) fn has_message(&self) -> bool {
        let pending_error = self.pending_error.take();
        if pending_error.is_some() {
            self.pending_error.set(pending_error);
            return true;
        }
        match &mut *self.receiver.borrow_mut() {
            Some(receiver) if !self.is_closed.get() => receiver.has_come(),
            _ => true,
        }
    }

    /// Counts a thread that sleeps on the descriptor. Until the guard is dropped, a close leaves
    /// the descriptor open.
    pub(crate) fn add_sleeper(&self) -> Sleeper<'_> {
        self.sleepers.set(self.sleepers.get() + 1);
        Sleeper(self)
    }

    /// Makes the descriptor readable.
    fn make_readable(&self) {
        if let Some(receiver) = &mut *self.receiver.borrow_mut() {
            let _ = receiver.readiness_fd();
        }
    }

    fn remove_sleeper(&self) {
        self.sleepers.set(self.sleepers.get() - 1);
        if self.is_closed.get() && self.sleepers.get() == 0 {
            drop(self.receiver.take());
        }
    }
}

/// A thread that sleeps on a receiver's descriptor.
pub(crate) struct Sleeper<'a>(&'a Receiver);

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.0.remove_sleeper();
    }
}

/// The next message as a string, if there is one.
fn recv_string(receiver: &mut queue::Receiver) -> Result<Result<RString, Error>, queue::Error> {
    receiver
        .try_recv_view()
        .map(|message| binary_string(&message))
}

fn receiver_result<T>(done: Result<T, queue::Error>) -> Result<T, Error> {
    done.map_err(|error| queue_error(&error, Side::Receiver))
}
