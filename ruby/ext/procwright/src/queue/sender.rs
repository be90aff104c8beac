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

use super::blocking::briefly;
use super::bytes::{each, with_bytes};
use super::errors::{Side, end_closed_error, queue_error, queue_error_text};
use super::invitation::Invitation;
use crate::arguments::seconds;
use crate::errors::{choice_error, guarded, io_error, panic_error};
use crate::gvl::{self, BlockedThread};
use crate::interruptible::{Interrupts, poll_readable};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Sender", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("attach", function!(Sender::attach, 2))?;
    class.define_singleton_method("of_name", function!(Sender::of_name, 2))?;
    class.define_singleton_method("of_parent", function!(Sender::of_parent, 0))?;
    class.define_method("send_by", method!(Sender::send_by, 2))?;
    class.define_method("try_send", method!(Sender::try_send, 1))?;
    class.define_method("send_many", method!(Sender::send_many, 2))?;
    class.define_method("another", method!(Sender::another, 1))?;
    class.define_method("overflow=", method!(Sender::set_overflow, 1))?;
    class.define_method("overflow", method!(Sender::overflow, 0))?;
    class.define_method("limit=", method!(Sender::set_limit, 1))?;
    class.define_method("dropped", method!(Sender::dropped, 0))?;
    class.define_method("close", method!(Sender::close, 0))?;
    class.define_method("closed?", method!(Sender::is_closed, 0))
}

/// A sender to a queue.
///
/// Any thread may call it at any time. A thread that waits for room borrows it, without Ruby's
/// lock: other threads that come meanwhile wait until that is over.
#[magnus::wrap(class = "Procwright::Native::Sender", free_immediately)]
pub(crate) struct Sender {
    /// The core's sender; none once it was closed and dropped. The thread that waits for room
    /// borrows it.
    sender: RefCell<Option<queue::Sender>>,
    /// True once closed. A thread that waits for room then drops the sender.
    is_closed: Cell<bool>,
    /// The thread that waits for room.
    waiter: Cell<Option<BlockedThread>>,
    /// Wakes the threads that wait for their turn, once the wait for room is over.
    turn: RefCell<Option<Cancel>>,
    overflow: Cell<Overflow>,
    limit: OnceCell<usize>,
    /// The process that made it: in a fork, the thread that was waiting does not exist.
    process: u32,
}

/// The treatments of a message that finds no room.
const OVERFLOWS: [(&str, Overflow); 3] = [
    ("block", Overflow::Block),
    ("fail", Overflow::Fail),
    ("drop_newest", Overflow::DropNewest),
];

/// The result of an attempt to borrow the sender.
enum Borrowed<T> {
    Done(T),
    /// Another thread waits for room.
    Busy,
}

/// Bytes of a message from which on the core waits a while for room before it takes more
/// memory. That wait is not for a thread that has Ruby's lock.
const LONG: usize = 32 * 1024;

impl Sender {
    pub(crate) fn of(sender: queue::Sender) -> Sender {
        Sender {
            sender: RefCell::new(Some(sender)),
            is_closed: Cell::new(false),
            waiter: Cell::new(None),
            turn: RefCell::new(None),
            overflow: Cell::new(Overflow::Block),
            limit: OnceCell::new(),
            process: std::process::id(),
        }
    }

    fn attach(invitation: &Invitation, wait: Option<f64>) -> Result<Sender, Error> {
        guarded(|| {
            let wait = seconds("wait", wait)?;
            let mut place = Some(invitation.try_clone()?);
            // The closure is called again only if it was not called.
            let mut place = || place.take().expect("called once");
            let sender = match wait.has_expired() {
                true => briefly(Side::Sender, || queue::Sender::attach(place()))?,
                false => {
                    let opening = briefly(Side::Sender, || queue::Opening::invited(place()))?;
                    wait_for_place(opening, wait)?
                }
            };
            invitation.close();
            Ok(Sender::of(sender))
        })
    }

    fn of_name(name: String, wait: Option<f64>) -> Result<Sender, Error> {
        guarded(|| {
            let wait = seconds("wait", wait)?;
            let sender = match wait.has_expired() {
                true => briefly(Side::Sender, || queue::Sender::open(&name))?,
                false => {
                    let opening = queue::Opening::named(&name);
                    let opening = opening.map_err(|error| queue_error(&error, Side::Sender))?;
                    wait_for_place(opening, wait)?
                }
            };
            Ok(Sender::of(sender))
        })
    }

    fn of_parent() -> Result<Sender, Error> {
        guarded(|| briefly(Side::Sender, queue::Sender::of_parent).map(Sender::of))
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
                let sent = self.try_with(|sender| {
                    with_bytes(message, |bytes| match waits {
                        true => sender.try_send(bytes),
                        false => sender.send(bytes),
                    })
                })?;
                let is_busy = match sent {
                    Borrowed::Done(Ok(())) => return Ok(true),
                    Borrowed::Done(Err(queue::Error::Full)) if waits => false,
                    Borrowed::Done(Err(error)) => return Err(queue_error(&error, Side::Sender)),
                    // Another thread waits for room: there is none.
                    Borrowed::Busy if !waits && self.overflow.get() == Overflow::Fail => {
                        return Err(queue_error(&queue::Error::Full, Side::Sender));
                    }
                    Borrowed::Busy => true,
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

    /// Sends a message if there is room now; false if there was none.
    fn try_send(&self, message: RString) -> Result<bool, Error> {
        guarded(|| {
            let sent =
                self.try_with(|sender| with_bytes(message, |bytes| sender.try_send(bytes)))?;
            match sent {
                Borrowed::Done(Ok(())) => Ok(true),
                // Another thread waits for room: there is none.
                Borrowed::Busy | Borrowed::Done(Err(queue::Error::Full)) => Ok(false),
                Borrowed::Done(Err(error)) => Err(queue_error(&error, Side::Sender)),
            }
        })
    }

    /// Sends strings at the price of one. Returns how many were sent, and false if the timeout
    /// came before all were. The array is our own: no other thread changes it meanwhile.
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
            let put = self.try_with(|sender| {
                // The wait is ours, not the core's.
                let meanwhile = if waits { Overflow::Fail } else { overflow };
                let put = send_batch(sender, array, &mut at, sent, meanwhile);
                sender.set_overflow(overflow);
                put
            })?;
            let is_busy = match put {
                Borrowed::Done(Ok(())) => continue,
                Borrowed::Done(Err(SendManyError::Ruby(error))) => return Err(error),
                Borrowed::Done(Err(SendManyError::Queue(queue::Error::Full))) if waits => false,
                Borrowed::Done(Err(SendManyError::Queue(error))) => {
                    return Err(queue_error(&error, Side::Sender));
                }
                Borrowed::Busy => true,
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

    /// A second sender to this queue, in this process.
    fn another(&self, wait: Option<f64>) -> Result<Sender, Error> {
        guarded(|| {
            let wait = seconds("wait", wait)?;
            let refused = |error| queue_error(&error, Side::Sender);
            let mut made = match wait.has_expired() {
                true => self.with(|sender| sender.try_clone())?.map_err(refused)?,
                false => {
                    let opening = self.with(|sender| queue::Opening::beside(sender))?;
                    wait_for_place(opening.map_err(refused)?, wait)?
                }
            };
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
                return Err(choice_error(
                    "overflow",
                    &name,
                    ":block, :fail or :drop_newest",
                ));
            };
            self.with(|sender| sender.set_overflow(overflow))?;
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

    /// Called once, before any other thread has it.
    fn set_limit(&self, bytes: usize) -> Result<(), Error> {
        guarded(|| {
            self.with(|sender| sender.set_limit(bytes))?;
            let _ = self.limit.set(bytes);
            Ok(())
        })
    }

    fn dropped(&self) -> Result<u64, Error> {
        guarded(|| self.with(|sender| sender.dropped()))
    }

    fn close(&self) {
        self.is_closed.set(true);
        match self.sender.try_borrow_mut() {
            Ok(mut place) => drop(place.take()),
            // The waiting thread finds it closed, and drops it.
            Err(_) => self.waiter.get().iter().for_each(BlockedThread::wakeup),
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    fn borrow(&self) -> Result<Borrowed<RefMut<'_, queue::Sender>>, Error> {
        let Ok(place) = self.sender.try_borrow_mut() else {
            if self.process != std::process::id() {
                return Err(queue_error(&queue::Error::Forked, Side::Sender));
            }
            return match self.is_closed.get() {
                true => Err(end_closed_error(Side::Sender, false)),
                false => Ok(Borrowed::Busy),
            };
        };
        match RefMut::filter_map(place, Option::as_mut) {
            Ok(sender) => Ok(Borrowed::Done(sender)),
            Err(_) => Err(end_closed_error(Side::Sender, false)),
        }
    }

    fn try_with<T>(
        &self,
        work: impl FnOnce(&mut queue::Sender) -> T,
    ) -> Result<Borrowed<T>, Error> {
        Ok(match self.borrow()? {
            Borrowed::Done(mut sender) => Borrowed::Done(work(&mut sender)),
            Borrowed::Busy => Borrowed::Busy,
        })
    }

    /// Lends the sender to `work`, once no other thread waits for room.
    fn with<T>(&self, work: impl FnOnce(&mut queue::Sender) -> T) -> Result<T, Error> {
        loop {
            match self.borrow()? {
                Borrowed::Done(mut sender) => return Ok(work(&mut sender)),
                Borrowed::Busy => self.wait_for_turn(Deadline::NEVER)?,
            };
        }
    }

    /// Waits until no other thread waits for room. False if the deadline comes first.
    fn wait_for_turn(&self, deadline: Deadline) -> Result<bool, Error> {
        let interrupts = Interrupts::watch()?;
        interrupts.check()?;
        // Other threads may have run until here, and do not from here on.
        if !matches!(self.borrow()?, Borrowed::Busy) {
            return Ok(true);
        }
        // A signal handler inside of the wait for room would wait for itself.
        if self.waiter.get() == Some(BlockedThread::current()) {
            let words = "this thread waits for room already, and this is its signal handler: \
                         use a sender of its own (dup), or try_send";
            return Err(queue_error_text("Busy", words));
        }
        if deadline.reached(Instant::now()) {
            return Ok(false);
        }
        let turn = self.turn.borrow().clone();
        let turn = match turn {
            Some(turn) => turn,
            None => {
                let turn = Cancel::new().map_err(|error| io_error(&error))?;
                self.turn.borrow_mut().insert(turn).clone()
            }
        };
        let slept = interrupts
            .without_gvl_unchecked(|| poll_readable(&[turn.as_fd(), interrupts.as_fd()], deadline));
        match slept {
            Some(Err(panic)) => Err(panic_error(&*panic)),
            _ => Ok(true),
        }
    }

    /// Waits until there is room for so many bytes. False if the deadline comes first.
    fn wait_for_room(&self, length: usize, deadline: Deadline) -> Result<bool, Error> {
        let Borrowed::Done(mut sender) = self.borrow()? else {
            return Ok(true);
        };
        let waiting = WaitingForRoom::begin(self);
        let room = loop {
            if let Err(raised) = gvl::check_interrupts() {
                break Err(raised);
            }
            if self.is_closed.get() {
                break Err(end_closed_error(Side::Sender, true));
            }
            let left = deadline.remaining(Instant::now());
            let left = left.map_or(Timeout::NEVER, Timeout::from);
            // Sleeps once: then Ruby's interrupts are due again.
            let mut has_slept = false;
            let once = || !std::mem::replace(&mut has_slept, true);
            match gvl::without_gvl_for_signals(|| sender.wait_for_room(length, left, once)) {
                None | Some(Ok(Ok(false))) => {}
                Some(Ok(Ok(true))) => break Ok(true),
                Some(Ok(Err(queue::Error::TimedOut))) => break Ok(false),
                Some(Ok(Err(error))) => break Err(queue_error(&error, Side::Sender)),
                Some(Err(panic)) => break Err(panic_error(&*panic)),
            }
        };
        drop(sender);
        drop(waiting);
        room
    }
}

/// Waits for a place at a queue: until there is one of that name, and a lane is free.
fn wait_for_place(mut opening: queue::Opening, wait: Timeout) -> Result<queue::Sender, Error> {
    let deadline = wait.starting(Instant::now());
    loop {
        gvl::check_interrupts()?;
        let left = deadline.remaining(Instant::now());
        let left = left.map_or(Timeout::NEVER, Timeout::from);
        // Sleeps once: then Ruby's interrupts are due again.
        let mut has_slept = false;
        let once = || !std::mem::replace(&mut has_slept, true);
        match gvl::without_gvl_for_signals(|| opening.wait(left, once)) {
            None | Some(Ok(Ok(None))) => {}
            Some(Ok(Ok(Some(sender)))) => return Ok(sender),
            Some(Ok(Err(error))) => return Err(queue_error(&error, Side::Sender)),
            Some(Err(panic)) => return Err(panic_error(&*panic)),
        }
    }
}

/// The wait of this thread for room.
struct WaitingForRoom<'a>(&'a Sender);

impl WaitingForRoom<'_> {
    fn begin(sender: &Sender) -> WaitingForRoom<'_> {
        sender.waiter.set(Some(BlockedThread::current()));
        WaitingForRoom(sender)
    }
}

impl Drop for WaitingForRoom<'_> {
    fn drop(&mut self) {
        self.0.waiter.set(None);
        if self.0.is_closed.get() {
            drop(self.0.sender.take());
        }
        if let Some(turn) = self.0.turn.take() {
            turn.cancel();
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // Borrowed only in a fork: the thread that waited left it in the middle of something.
        if self.sender.try_borrow_mut().is_err() {
            std::mem::forget(self.sender.get_mut().take());
        }
    }
}

/// The reason why not all of many were sent.
enum SendManyError {
    Queue(queue::Error),
    Ruby(Error),
}

/// Strings that are read from the array in one go. Each wait for room begins a new one.
const BATCH: usize = 1024;

/// Sends strings from `at` on, as far as there is room.
fn send_batch(
    sender: &mut queue::Sender,
    array: RArray,
    at: &mut usize,
    sent: &mut usize,
    overflow: Overflow,
) -> Result<(), SendManyError> {
    let end = array.len().min(*at + BATCH);
    let strings = (*at..end).map(|place| entry(array, place));
    let strings: Vec<RString> = strings
        .collect::<Result<_, _>>()
        .map_err(SendManyError::Ruby)?;
    let before = sender.dropped();
    let mut taken = 0;
    sender.set_overflow(overflow);
    let put = sender.send_many(each(&strings).inspect(|_| taken += 1));
    // The last string that was taken before an error was not sent.
    let done = taken - usize::from(put.is_err());
    *at += done;
    *sent += done - (sender.dropped() - before) as usize;
    put.map(drop).map_err(SendManyError::Queue)
}

fn entry(array: RArray, place: usize) -> Result<RString, Error> {
    array.entry(place as isize)
}
