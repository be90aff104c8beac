//! The side that receives.

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use magnus::{Class, Error, Module, Object, RArray, RModule, RString, Ruby, function, method};
use procwright::queue::{self, Options};
use procwright::time::Timeout;
use procwright::wait::Waitable;

use super::errors::{Side, end_closed, failed};
use super::invitation::Invitation;
use super::{Sender, made};
use crate::errors::{guarded, panicked};
use crate::patient::{Ring, until_readable};
use crate::string::copied;
use crate::values::seconds;

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
/// as a look takes. Who waits sleeps on its descriptor, and does not have it meanwhile.
#[magnus::wrap(class = "Procwright::Native::Receiver", free_immediately)]
pub(crate) struct Receiver {
    /// None once closed.
    place: RefCell<Option<queue::Receiver>>,
    /// What is to be told by the next look: of damage it tells once.
    put_off: Cell<Option<queue::Error>>,
    /// To be dropped by the last who sleeps on its descriptor.
    is_closing: Cell<bool>,
    /// How many sleep on it.
    sleepers: Cell<usize>,
    /// A duplicate of its descriptor: the number stays good under those who sleep.
    descriptor: OnceCell<Arc<OwnedFd>>,
}

/// What a new queue is like.
fn shape(lanes: i64, first: usize, limit: usize, keep: usize) -> Options {
    // What no `u32` can be is refused with 0.
    let lanes = u32::try_from(lanes).unwrap_or(0);
    let options = Options::new().lanes(lanes);
    options.first(first).limit(limit).keep(keep)
}

impl Receiver {
    pub(crate) fn of(receiver: queue::Receiver) -> Receiver {
        Receiver {
            place: RefCell::new(Some(receiver)),
            put_off: Cell::new(None),
            is_closing: Cell::new(false),
            sleepers: Cell::new(0),
            descriptor: OnceCell::new(),
        }
    }

    fn make(lanes: i64, first: usize, limit: usize, keep: usize) -> Result<Receiver, Error> {
        guarded(|| {
            let options = shape(lanes, first, limit, keep);
            made(Side::Receiver, || options.create()).map(Receiver::of)
        })
    }

    fn of_name(
        name: String,
        lanes: i64,
        first: usize,
        limit: usize,
        keep: usize,
    ) -> Result<Receiver, Error> {
        guarded(|| {
            let options = shape(lanes, first, limit, keep);
            made(Side::Receiver, || options.open(&name)).map(Receiver::of)
        })
    }

    fn of_parent(lanes: i64, first: usize, limit: usize, keep: usize) -> Result<Receiver, Error> {
        guarded(|| {
            let options = shape(lanes, first, limit, keep);
            made(Side::Receiver, || options.of_parent()).map(Receiver::of)
        })
    }

    fn take_over(invitation: &Invitation) -> Result<Receiver, Error> {
        guarded(|| {
            let place = invitation.again()?;
            made(Side::Receiver, || queue::Receiver::take_over(&place)).map(Receiver::of)
        })
    }

    fn invite(&self) -> Result<Invitation, Error> {
        guarded(|| told(self.ask(queue::Receiver::invite)?).map(Invitation::of))
    }

    fn sender(&self) -> Result<Sender, Error> {
        guarded(|| told(self.ask(queue::Receiver::sender)?).map(Sender::of))
    }

    /// The next message; nil if the timeout came first.
    fn recv(&self, timeout: Option<f64>) -> Result<Option<RString>, Error> {
        guarded(|| self.next(seconds("timeout", timeout)?))
    }

    /// The next message, if there is one now.
    fn try_recv(&self) -> Result<Option<RString>, Error> {
        guarded(|| self.look())
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
                match this.ask(next_of)? {
                    Ok(message) => messages.push(message?)?,
                    Err(damaged @ queue::Error::Damaged { .. }) => {
                        this.put_off.set(Some(damaged));
                        this.ring();
                        break;
                    }
                    // It finds that again.
                    Err(_) => break,
                }
            }
            if this.sleepers.get() > 0 {
                this.ring();
            }
            Ok(Some(messages))
        })
    }

    /// From now on it is readable if there is something already.
    pub(crate) fn readiness_fd(&self) -> Result<RawFd, Error> {
        guarded(|| {
            told(self.ask(|receiver| receiver.readiness_fd().map(drop))?)?;
            Ok(self.descriptor()?.as_raw_fd())
        })
    }

    fn close(&self) {
        self.is_closing.set(true);
        match self.sleepers.get() {
            0 => drop(self.place.take()),
            // Who sleeps looks up, and is told.
            _ => self.ring(),
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closing.get()
    }

    /// Lets `work` have it. No code of Ruby's runs meanwhile, but what makes a string: so
    /// nobody else comes.
    fn ask<T>(
        &self,
        work: impl FnOnce(&mut queue::Receiver) -> Result<T, queue::Error>,
    ) -> Result<Result<T, queue::Error>, Error> {
        match &mut *self.place.borrow_mut() {
            Some(receiver) if !self.is_closing.get() => Ok(work(receiver)),
            _ => Err(end_closed(Side::Receiver, false)),
        }
    }

    /// What there is now. Who sleeps is told of what comes after this look.
    fn look(&self) -> Result<Option<RString>, Error> {
        let found = match self.put_off.take() {
            None => self.ask(next_of)?,
            Some(error) => Err(error),
        };
        self.found(found)
    }

    /// The same, a little longer, for what is on its way. Who sleeps is told of nothing after
    /// this: another look has to follow at once.
    fn look_longer(&self) -> Result<Option<RString>, Error> {
        let at_once = Duration::ZERO;
        self.found(self.ask(|receiver| {
            let found = receiver.recv_view_timeout(at_once);
            found.map(|message| copied(&message))
        })?)
    }

    fn found(
        &self,
        found: Result<Result<RString, Error>, queue::Error>,
    ) -> Result<Option<RString>, Error> {
        if let Err(queue::Error::Empty | queue::Error::TimedOut) = found {
            return Ok(None);
        }
        // What says that there is something says so once, and may have said it to
        // another than us.
        if self.sleepers.get() > 0 {
            self.ring();
        }
        told(found)?.map(Some)
    }

    fn next(&self, timeout: Timeout) -> Result<Option<RString>, Error> {
        // Mostly one is there already.
        if let Some(message) = self.look()? {
            return Ok(Some(message));
        }
        let deadline = timeout.starting(Instant::now());
        if deadline.reached(Instant::now()) {
            return Ok(None);
        }
        let descriptor = self.descriptor()?;
        let ring = Ring::take()?;
        let mut is_first = true;
        loop {
            ring.hear()?;
            if self.is_closing.get() {
                return Err(end_closed(Side::Receiver, true));
            }
            if std::mem::take(&mut is_first)
                && let Some(message) = self.look_longer()?
            {
                return Ok(Some(message));
            }
            if let Some(message) = self.look()? {
                return Ok(Some(message));
            }
            if deadline.reached(Instant::now()) {
                return Ok(None);
            }
            let _asleep = self.fall_asleep();
            let slept =
                ring.unlocked_now(|| until_readable(&[descriptor.as_fd(), ring.as_fd()], deadline));
            if let Some(Err(panic)) = slept {
                return Err(panicked(&*panic));
            }
        }
    }

    /// What is readable when somebody should look: from the first time on it is told.
    pub(crate) fn descriptor(&self) -> Result<Arc<OwnedFd>, Error> {
        if let Some(descriptor) = self.descriptor.get() {
            return Ok(Arc::clone(descriptor));
        }
        let made = told(self.ask(|receiver| {
            let descriptor = receiver.readiness_fd()?.try_clone_to_owned();
            Ok(descriptor.map(Arc::new)?)
        })?)?;
        Ok(Arc::clone(self.descriptor.get_or_init(|| made)))
    }

    /// Whether there is something, or it was closed. If not, the descriptor tells when.
    pub(crate) fn has_come(&self) -> bool {
        let put_off = self.put_off.take();
        if put_off.is_some() {
            self.put_off.set(put_off);
            return true;
        }
        match &mut *self.place.borrow_mut() {
            Some(receiver) if !self.is_closing.get() => receiver.has_come(),
            _ => true,
        }
    }

    /// To sleep on the descriptor: until this is dropped, a close leaves it open.
    pub(crate) fn fall_asleep(&self) -> Asleep<'_> {
        self.sleepers.set(self.sleepers.get() + 1);
        Asleep(self)
    }

    /// Makes the descriptor readable.
    fn ring(&self) {
        if let Some(receiver) = &mut *self.place.borrow_mut() {
            let _ = receiver.readiness_fd();
        }
    }

    fn wake_up(&self) {
        self.sleepers.set(self.sleepers.get() - 1);
        if self.is_closing.get() && self.sleepers.get() == 0 {
            drop(self.place.take());
        }
    }
}

/// Somebody who sleeps.
pub(crate) struct Asleep<'a>(&'a Receiver);

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.wake_up();
    }
}

/// The next message, if there is one.
fn next_of(receiver: &mut queue::Receiver) -> Result<Result<RString, Error>, queue::Error> {
    receiver.try_recv_view().map(|message| copied(&message))
}

fn told<T>(done: Result<T, queue::Error>) -> Result<T, Error> {
    done.map_err(|error| failed(&error, Side::Receiver))
}
