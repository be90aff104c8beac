//! The side that sends.

use std::cell::{Cell, OnceCell, RefCell, RefMut};
use std::os::fd::AsFd;
use std::time::Instant;

use magnus::{
    Class, Error, Module, Object, RArray, RModule, RObject, RString, Ruby, function, method,
};
use procwright::Cancel;
use procwright::queue::{self, Overflow};
use procwright::time::{Deadline, Timeout};

use super::bytes::{each, with_bytes};
use super::errors::{Side, end_closed, failed, made_of};
use super::invitation::Invitation;
use super::made;
use crate::errors::{choice, guarded, panicked, refused};
use crate::gvl::{self, Caller};
use crate::patient::{Ring, until_readable};
use crate::values::seconds;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Sender", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("attach", function!(Sender::attach, 1))?;
    class.define_singleton_method("of_name", function!(Sender::of_name, 1))?;
    class.define_singleton_method("of_parent", function!(Sender::of_parent, 0))?;
    class.define_method("send_by", method!(Sender::send_by, 2))?;
    class.define_method("try_send", method!(Sender::try_send, 1))?;
    class.define_method("send_many", method!(Sender::send_many, 2))?;
    class.define_method("another", method!(Sender::another, 0))?;
    class.define_method("overflow=", method!(Sender::set_overflow, 1))?;
    class.define_method("overflow", method!(Sender::overflow, 0))?;
    class.define_method("limit=", method!(Sender::set_limit, 1))?;
    class.define_method("dropped", method!(Sender::dropped, 0))?;
    class.define_method("close", method!(Sender::close, 0))?;
    class.define_method("closed?", method!(Sender::is_closed, 0))
}

/// A sender to a queue.
///
/// Any thread may call it at any time. Who waits for room has it, without Ruby's lock:
/// others who come meanwhile wait until that is over.
#[magnus::wrap(class = "Procwright::Native::Sender", free_immediately)]
pub(crate) struct Sender {
    /// None once closed. Borrowed by who waits for room.
    place: RefCell<Option<queue::Sender>>,
    /// To be dropped by who waits for room.
    is_closing: Cell<bool>,
    /// Who that is.
    inside: Cell<Option<Caller>>,
    /// Tells those who come meanwhile that it is over.
    over: RefCell<Option<Cancel>>,
    overflow: Cell<Overflow>,
    limit: OnceCell<usize>,
    /// Whose it is: in a fork nobody comes back who was inside.
    process: u32,
}

/// What can happen when there is no room.
const OVERFLOWS: [(&str, Overflow); 3] = [
    ("block", Overflow::Block),
    ("fail", Overflow::Fail),
    ("drop_newest", Overflow::DropNewest),
];

/// What became of a look at it.
enum Had<T> {
    It(T),
    /// Somebody waits for room.
    Busy,
}

/// Who may wait is more patient with a message of so many bytes before it takes memory for
/// it, and that is not for who has Ruby's lock.
const LONG: usize = 32 * 1024;

impl Sender {
    pub(crate) fn of(sender: queue::Sender) -> Sender {
        Sender {
            place: RefCell::new(Some(sender)),
            is_closing: Cell::new(false),
            inside: Cell::new(None),
            over: RefCell::new(None),
            overflow: Cell::new(Overflow::Block),
            limit: OnceCell::new(),
            process: std::process::id(),
        }
    }

    fn attach(invitation: &Invitation) -> Result<Sender, Error> {
        guarded(|| {
            let mut place = Some(invitation.again()?);
            let sender = made(Side::Sender, || {
                // Once: it is called again only where it was not called.
                queue::Sender::attach(place.take().expect("it was not used"))
            })?;
            invitation.close();
            Ok(Sender::of(sender))
        })
    }

    fn of_name(name: String) -> Result<Sender, Error> {
        guarded(|| made(Side::Sender, || queue::Sender::open(&name)).map(Sender::of))
    }

    fn of_parent() -> Result<Sender, Error> {
        guarded(|| made(Side::Sender, queue::Sender::of_parent).map(Sender::of))
    }

    /// Sends a message; false if there was no room for it within the time. Without a time
    /// it waits if its overflow says so.
    fn send_by(&self, message: RString, timeout: Option<f64>) -> Result<bool, Error> {
        guarded(|| {
            let waits = timeout.is_some() || self.overflow.get() == Overflow::Block;
            let mut deadline = None;
            if waits && message.len() >= LONG {
                let timeout = seconds("timeout", timeout)?;
                let deadline = *deadline.insert(timeout.starting(Instant::now()));
                if !self.wait_for_room(message.len(), deadline)? {
                    return Ok(false);
                }
            }
            loop {
                let sent = self.try_borrow(|sender| {
                    with_bytes(message, |bytes| match waits {
                        true => sender.try_send(bytes),
                        false => sender.send(bytes),
                    })
                })?;
                let is_busy = match sent {
                    Had::It(Ok(())) => return Ok(true),
                    Had::It(Err(queue::Error::Full)) if waits => false,
                    Had::It(Err(error)) => return Err(failed(&error, Side::Sender)),
                    // Who is inside waits for room: there is none.
                    Had::Busy if !waits && self.overflow.get() == Overflow::Fail => {
                        return Err(failed(&queue::Error::Full, Side::Sender));
                    }
                    Had::Busy => true,
                };
                let deadline = match deadline {
                    Some(deadline) => deadline,
                    None => {
                        let timeout = seconds("timeout", timeout)?;
                        *deadline.insert(timeout.starting(Instant::now()))
                    }
                };
                let goes_on = match is_busy {
                    true => self.wait_for_turn(deadline)?,
                    false => self.wait_for_room(message.len(), deadline)?,
                };
                if !goes_on {
                    return Ok(false);
                }
            }
        })
    }

    /// Sends a message if there is room now; whether there was.
    fn try_send(&self, message: RString) -> Result<bool, Error> {
        guarded(|| {
            let sent =
                self.try_borrow(|sender| with_bytes(message, |bytes| sender.try_send(bytes)))?;
            match sent {
                Had::It(Ok(())) => Ok(true),
                // Who is inside waits for room: there is none.
                Had::Busy | Had::It(Err(queue::Error::Full)) => Ok(false),
                Had::It(Err(error)) => Err(failed(&error, Side::Sender)),
            }
        })
    }

    /// Sends strings at the price of one, and says how many were sent, and whether the
    /// time did not come before all were. The array is the caller's own: nobody changes it
    /// meanwhile.
    fn send_many(&self, array: RArray, timeout: Option<f64>) -> Result<(usize, bool), Error> {
        let mut sent = 0;
        let done = guarded(|| self.send_all(array, timeout, &mut sent));
        match done {
            Ok(all) => Ok((sent, all)),
            Err(error) => {
                if let Some(raised) = error.value().and_then(RObject::from_value) {
                    let _ = raised.ivar_set("@sent", sent);
                }
                Err(error)
            }
        }
    }

    fn send_all(
        &self,
        array: RArray,
        timeout: Option<f64>,
        sent: &mut usize,
    ) -> Result<bool, Error> {
        let deadline = seconds("timeout", timeout)?.starting(Instant::now());
        let overflow = self.overflow.get();
        let waits = timeout.is_some() || overflow == Overflow::Block;
        let mut at = 0;
        while at < array.len() {
            let put = self.try_borrow(|sender| {
                // It is we who wait.
                let meanwhile = if waits { Overflow::Fail } else { overflow };
                let put = put(sender, array, &mut at, sent, meanwhile);
                sender.set_overflow(overflow);
                put
            })?;
            let is_busy = match put {
                Had::It(Ok(())) => continue,
                Had::It(Err(Refused::Of(error))) => return Err(error),
                Had::It(Err(Refused::Queue(queue::Error::Full))) if waits => false,
                Had::It(Err(Refused::Queue(error))) => return Err(failed(&error, Side::Sender)),
                Had::Busy => true,
            };
            let goes_on = match is_busy {
                true => self.wait_for_turn(deadline)?,
                false => self.wait_for_room(entry(array, at)?.len(), deadline)?,
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Another one for the same queue, in this process.
    fn another(&self) -> Result<Sender, Error> {
        guarded(|| {
            let made = self.have(|sender| sender.try_clone())?;
            let mut made = made.map_err(|error| failed(&error, Side::Sender))?;
            made.set_overflow(self.overflow.get());
            if let Some(limit) = self.limit.get() {
                made.set_limit(*limit);
            }
            let another = Sender::of(made);
            another.overflow.set(self.overflow.get());
            if let Some(limit) = self.limit.get() {
                let _ = another.limit.set(*limit);
            }
            Ok(another)
        })
    }

    fn set_overflow(&self, name: String) -> Result<(), Error> {
        guarded(|| {
            let known = OVERFLOWS.into_iter().find(|(known, _)| *known == name);
            let Some((_, overflow)) = known else {
                return Err(choice("overflow", &name, ":block, :fail or :drop_newest"));
            };
            self.have(|sender| sender.set_overflow(overflow))?;
            self.overflow.set(overflow);
            Ok(())
        })
    }

    fn overflow(&self) -> &'static str {
        let known = OVERFLOWS
            .iter()
            .find(|(_, known)| *known == self.overflow.get());
        known.map_or("other", |(name, _)| name)
    }

    /// Once, before anybody else has it.
    fn set_limit(&self, bytes: usize) -> Result<(), Error> {
        guarded(|| {
            self.have(|sender| sender.set_limit(bytes))?;
            let _ = self.limit.set(bytes);
            Ok(())
        })
    }

    fn dropped(&self) -> Result<u64, Error> {
        guarded(|| self.have(|sender| sender.dropped()))
    }

    fn close(&self) {
        self.is_closing.set(true);
        match self.place.try_borrow_mut() {
            Ok(mut place) => drop(place.take()),
            // Who has it looks up, and drops it.
            Err(_) => self.inside.get().iter().for_each(Caller::wake),
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closing.get()
    }

    fn borrow(&self) -> Result<Had<RefMut<'_, queue::Sender>>, Error> {
        let Ok(place) = self.place.try_borrow_mut() else {
            if self.process != std::process::id() {
                return Err(failed(&queue::Error::Forked, Side::Sender));
            }
            return match self.is_closing.get() {
                true => Err(end_closed(Side::Sender, false)),
                false => Ok(Had::Busy),
            };
        };
        match RefMut::filter_map(place, Option::as_mut) {
            Ok(sender) => Ok(Had::It(sender)),
            Err(_) => Err(end_closed(Side::Sender, false)),
        }
    }

    fn try_borrow<T>(&self, work: impl FnOnce(&mut queue::Sender) -> T) -> Result<Had<T>, Error> {
        Ok(match self.borrow()? {
            Had::It(mut sender) => Had::It(work(&mut sender)),
            Had::Busy => Had::Busy,
        })
    }

    /// The same, once nobody else has it.
    fn have<T>(&self, work: impl FnOnce(&mut queue::Sender) -> T) -> Result<T, Error> {
        loop {
            match self.borrow()? {
                Had::It(mut sender) => return Ok(work(&mut sender)),
                Had::Busy => self.wait_for_turn(Deadline::NEVER)?,
            };
        }
    }

    /// Until nobody else waits for room. False if the time comes first.
    fn wait_for_turn(&self, deadline: Deadline) -> Result<bool, Error> {
        let ring = Ring::take()?;
        ring.hear()?;
        // Others may have run meanwhile, but from here on they do not.
        if !matches!(self.borrow()?, Had::Busy) {
            return Ok(true);
        }
        // A signal handler of that very call: it would wait for itself.
        if self.inside.get() == Some(Caller::here()) {
            let words = "this thread waits for room already, and this is its signal handler: \
                         use a sender of its own (dup), or try_send";
            return Err(made_of("Busy", words));
        }
        if deadline.reached(Instant::now()) {
            return Ok(false);
        }
        let over = self.over.borrow().clone();
        let over = match over {
            Some(over) => over,
            None => {
                let over = Cancel::new().map_err(|error| refused(&error))?;
                self.over.borrow_mut().insert(over).clone()
            }
        };
        let slept = ring.unlocked_now(|| until_readable(&[over.as_fd(), ring.as_fd()], deadline));
        match slept {
            Some(Err(panic)) => Err(panicked(&*panic)),
            _ => Ok(true),
        }
    }

    /// Until there is room for so many bytes. False if the time comes first.
    fn wait_for_room(&self, length: usize, deadline: Deadline) -> Result<bool, Error> {
        let Had::It(mut sender) = self.borrow()? else {
            return Ok(true);
        };
        let inside = Inside::of(self);
        let room = loop {
            if let Err(raised) = gvl::check() {
                break Err(raised);
            }
            if self.is_closing.get() {
                break Err(end_closed(Side::Sender, true));
            }
            let left = deadline.remaining(Instant::now());
            let left = left.map_or(Timeout::NEVER, Timeout::from);
            // One sleep, and then Ruby is asked again what there is to hear.
            let mut has_slept = false;
            let once = || !std::mem::replace(&mut has_slept, true);
            match gvl::unlocked_for_signals(|| sender.wait_for_room(length, left, once)) {
                None | Some(Ok(Ok(false))) => {}
                Some(Ok(Ok(true))) => break Ok(true),
                Some(Ok(Err(queue::Error::TimedOut))) => break Ok(false),
                Some(Ok(Err(error))) => break Err(failed(&error, Side::Sender)),
                Some(Err(panic)) => break Err(panicked(&*panic)),
            }
        };
        drop(sender);
        drop(inside);
        room
    }
}

/// Somebody waits for room.
struct Inside<'a>(&'a Sender);

impl Inside<'_> {
    fn of(sender: &Sender) -> Inside<'_> {
        sender.inside.set(Some(Caller::here()));
        Inside(sender)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.set(None);
        if self.0.is_closing.get() {
            drop(self.0.place.take());
        }
        if let Some(over) = self.0.over.take() {
            over.cancel();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // In a fork, who was inside has left it in the middle of something.
        if self.place.try_borrow_mut().is_err() {
            std::mem::forget(self.place.get_mut().take());
        }
    }
}

/// Why not all of many were sent.
enum Refused {
    Queue(queue::Error),
    Of(Error),
}

/// So many strings are looked at in one go. Each wait for room begins a new one.
const MANY: usize = 1024;

/// Sends strings from `at` on, as far as there is room.
fn put(
    sender: &mut queue::Sender,
    array: RArray,
    at: &mut usize,
    sent: &mut usize,
    overflow: Overflow,
) -> Result<(), Refused> {
    let end = array.len().min(*at + MANY);
    let strings = (*at..end).map(|place| entry(array, place));
    let strings: Vec<RString> = strings.collect::<Result<_, _>>().map_err(Refused::Of)?;
    let before = sender.dropped();
    let mut taken = 0;
    sender.set_overflow(overflow);
    let put = sender.send_many(each(&strings).inspect(|_| taken += 1));
    // The last one that it took was not sent.
    let done = taken - usize::from(put.is_err());
    *at += done;
    *sent += done - (sender.dropped() - before) as usize;
    put.map(drop).map_err(Refused::Queue)
}

fn entry(array: RArray, place: usize) -> Result<RString, Error> {
    array.entry(place as isize)
}
