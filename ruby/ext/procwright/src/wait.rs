//! Waiting for many things at once.

use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use magnus::{Error, Object, RArray, RModule, Ruby, Symbol, TryConvert, Value, function};
use procwright::duplicate_fd;
use procwright::error::Invalid;
use procwright::liveness::Monitor;
use procwright::wait::{Awaits, Event, Outcome, Waitable, Want};
use procwright::{Process, WaitSet};
use rustix::io::Errno;

use crate::arguments::seconds;
use crate::errors::{choice_error, guarded, invalid_error, panic_error, system_error};
use crate::interruptible::Interrupts;
use crate::liveness;
use crate::process::Handle;
use crate::queue::Receiver;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("wait", function!(wait, 4))?;
    native.define_singleton_method("linger", function!(linger, 1))
}

/// One thing to wait for.
struct Item {
    place: usize,
    kind: ItemKind,
}

enum ItemKind {
    Process(Process),
    /// A duplicate, so that it stays open for as long as it is in the set.
    Readable(OwnedFd),
    Monitor(Arc<Monitor>),
    /// The descriptor of a queue's receiver. What it means that this is readable, only the
    /// receiver knows, which is used with Ruby's lock.
    Queue(Arc<OwnedFd>),
}

impl Waitable for Item {
    fn awaits(&self) -> Awaits<'_> {
        match &self.kind {
            ItemKind::Process(process) => process.awaits(),
            ItemKind::Readable(fd) => Awaits::readable(fd.as_fd()),
            ItemKind::Monitor(monitor) => monitor.awaits(),
            ItemKind::Queue(fd) => Awaits::readable(fd.as_fd()),
        }
    }
}

impl Item {
    /// True if the wait for it is over, once the set has said so.
    fn is_over(&self, items: RArray) -> Result<bool, Error> {
        match &self.kind {
            ItemKind::Queue(_) => {
                Ok(<&Receiver>::try_convert(items.entry(self.place as isize)?)?.has_message())
            }
            ItemKind::Monitor(monitor) => {
                // The descriptor may tell of an end before the word does.
                monitor.confirm();
                Ok(true)
            }
            ItemKind::Process(_) | ItemKind::Readable(_) => Ok(true),
        }
    }
}

/// Waits for processes, monitors, receivers of queues, and descriptors that become
/// readable. Returns the places of those that have ended, in the order in which that was
/// learned. `want` is their number: -1 for all, 0 for any.
fn wait(
    ruby: &Ruby,
    items: RArray,
    want: i64,
    event: Symbol,
    timeout: Option<f64>,
) -> Result<RArray, Error> {
    guarded(|| {
        let event = match &*event.name()? {
            "exited" => Event::Exited,
            "reaped" => Event::Reaped,
            other => return Err(choice_error("event", other, ":exited or :reaped")),
        };
        let want = match usize::try_from(want) {
            Ok(0) => Want::Any,
            Ok(n) => Want::First(n),
            Err(_) => Want::All,
        };
        let deadline = seconds("timeout", timeout)?.starting(Instant::now());
        let mut set = WaitSet::new().map_err(|error| cannot_wait(&error))?;
        // Receivers with sleepers keep their descriptors open when they are closed, and make
        // them readable.
        let mut sleepers = Vec::new();
        for (place, item) in items.into_iter().enumerate() {
            if let Ok(receiver) = <&Receiver>::try_convert(item) {
                receiver.readiness_fd()?;
                sleepers.push(receiver.add_sleeper());
            }
            let (kind, event) = to_item_kind(item, event)?;
            let added = set.add(Item { place, kind }, event);
            added.map_err(|error| unwatchable(&error, place))?;
        }
        let interrupts = Interrupts::watch()?;
        // The set has a duplicate, and is dropped before the original.
        let interrupt = interrupts.as_fd().try_clone_to_owned();
        let interrupt = Arc::new(interrupt.map_err(|error| cannot_wait(&error))?);
        set.cancel_on(interrupt)
            .map_err(|error| cannot_wait(&error))?;
        let ended = ruby.ary_new();
        loop {
            let left = match want {
                Want::First(n) => Want::First(n.saturating_sub(ended.len())),
                any_or_all => any_or_all,
            };
            let waited = match interrupts.without_gvl(|| set.wait_until(left, deadline))? {
                None => continue,
                Some(waited) => waited.map_err(|panic| panic_error(&*panic))?,
            };
            let waited = waited.map_err(|error| cannot_wait(&error))?;
            let mut is_over = waited.outcome != Outcome::Cancelled;
            for (_, item) in waited.ended {
                if item.is_over(items)? {
                    ended.push(item.place)?;
                    continue;
                }
                let place = item.place;
                let again = set.add(item, event);
                again.map_err(|error| unwatchable(&error, place))?;
                is_over = false;
            }
            let is_enough = match want {
                Want::Any => !ended.is_empty(),
                Want::First(n) => ended.len() >= n,
                _ => set.is_empty(),
            };
            if is_enough || is_over {
                return Ok(ended);
            }
        }
    })
}

fn to_item_kind(item: Value, event: Event) -> Result<(ItemKind, Event), Error> {
    if let Ok(handle) = <&Handle>::try_convert(item) {
        return Ok((ItemKind::Process(handle.process()), event));
    }
    if let Ok(monitor) = <&liveness::Monitor>::try_convert(item) {
        return Ok((ItemKind::Monitor(Arc::clone(&monitor.0)), Event::Exited));
    }
    if let Ok(receiver) = <&Receiver>::try_convert(item) {
        return Ok((ItemKind::Queue(receiver.descriptor()?), Event::Exited));
    }
    let number = RawFd::try_convert(item)?;
    let fd = duplicate_fd(number);
    let fd = fd.map_err(|error| system_error(&error, format!("descriptor {number}: {error}")))?;
    Ok((ItemKind::Readable(fd), Event::Exited))
}

/// Waits a moment, 10 ms for all together, until the processes that have ended and
/// whose status only their reaping will tell are reaped.
fn linger(handles: RArray) -> Result<(), Error> {
    guarded(|| {
        let mut ended = Vec::new();
        for handle in handles {
            ended.push(<&Handle>::try_convert(handle)?.process());
        }
        let done = crate::gvl::without_gvl_briefly(|| Process::linger(&ended))?;
        done.map_err(|panic| panic_error(&*panic))
    })
}

fn cannot_wait(error: &std::io::Error) -> Error {
    system_error(error, format!("cannot wait: {error}"))
}

fn unwatchable(error: &std::io::Error, place: usize) -> Error {
    let problem = match error.raw_os_error().map(Errno::from_raw_os_error) {
        // The answer of epoll for a file on a disk.
        Some(Errno::PERM) => "cannot be waited for",
        Some(Errno::BADF) => "is not open",
        _ => return cannot_wait(error),
    };
    let hint = "pass a process, or a pipe, socket or other thing that becomes readable; \
                a file on a disk always is";
    invalid_error(&Invalid::new(format!("item {place}"), problem, hint))
}
