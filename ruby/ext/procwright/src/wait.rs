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

use crate::errors::{choice, guarded, invalid, panicked, system};
use crate::liveness;
use crate::patient::Ring;
use crate::process::Handle;
use crate::queue::Receiver;
use crate::values::seconds;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("wait", function!(wait, 4))?;
    native.define_singleton_method("linger", function!(linger, 1))
}

struct Item {
    place: usize,
    what: What,
}

enum What {
    Process(Process),
    /// A duplicate, so that it is there for as long as it is in the set.
    Readable(OwnedFd),
    Monitor(Arc<Monitor>),
    /// The descriptor of a queue's receiver, which has to be asked, with Ruby's lock, what
    /// it means that it is readable.
    Queue(Arc<OwnedFd>),
}

impl Waitable for Item {
    fn awaits(&self) -> Awaits<'_> {
        match &self.what {
            What::Process(process) => process.awaits(),
            What::Readable(fd) => Awaits::readable(fd.as_fd()),
            What::Monitor(monitor) => monitor.awaits(),
            What::Queue(fd) => Awaits::readable(fd.as_fd()),
        }
    }
}

impl Item {
    /// Whether it has come about, once the set has said so.
    fn has_come(&self, items: RArray) -> Result<bool, Error> {
        match &self.what {
            What::Queue(_) => {
                Ok(<&Receiver>::try_convert(items.entry(self.place as isize)?)?.has_come())
            }
            What::Monitor(monitor) => {
                // Its descriptor may tell of an end before its word does.
                monitor.confirm();
                Ok(true)
            }
            What::Process(_) | What::Readable(_) => Ok(true),
        }
    }
}

/// Waits for processes, monitors, receivers of queues, and descriptors that become
/// readable. The places of those
/// that have ended, in the order in which that was learned. `want` is how many: -1 for
/// all, 0 for any.
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
            other => return Err(choice("event", other, ":exited or :reaped")),
        };
        let want = match usize::try_from(want) {
            Ok(0) => Want::Any,
            Ok(n) => Want::First(n),
            Err(_) => Want::All,
        };
        let deadline = seconds("timeout", timeout)?.starting(Instant::now());
        let mut set = WaitSet::new().map_err(|error| refused(&error))?;
        // So that a close leaves the descriptors open, and makes them readable.
        let mut asleep = Vec::new();
        for (place, item) in items.into_iter().enumerate() {
            if let Ok(receiver) = <&Receiver>::try_convert(item) {
                receiver.readiness_fd()?;
                asleep.push(receiver.fall_asleep());
            }
            let (what, event) = member(item, event)?;
            let added = set.add(Item { place, what }, event);
            added.map_err(|error| unwatchable(&error, place))?;
        }
        let ring = Ring::take()?;
        // The set has a duplicate, and goes before the ring does.
        let bell = ring.as_fd().try_clone_to_owned();
        let bell = Arc::new(bell.map_err(|error| refused(&error))?);
        set.cancel_on(bell).map_err(|error| refused(&error))?;
        let ended = ruby.ary_new();
        loop {
            let left = match want {
                Want::First(n) => Want::First(n.saturating_sub(ended.len())),
                any_or_all => any_or_all,
            };
            let waited = match ring.unlocked(|| set.wait_until(left, deadline))? {
                None => continue,
                Some(waited) => waited.map_err(|panic| panicked(&*panic))?,
            };
            let waited = waited.map_err(|error| refused(&error))?;
            let mut is_over = waited.outcome != Outcome::Cancelled;
            for (_, item) in waited.ended {
                if item.has_come(items)? {
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

fn member(item: Value, event: Event) -> Result<(What, Event), Error> {
    if let Ok(handle) = <&Handle>::try_convert(item) {
        return Ok((What::Process(handle.0.clone()), event));
    }
    if let Ok(monitor) = <&liveness::Monitor>::try_convert(item) {
        return Ok((What::Monitor(Arc::clone(&monitor.0)), Event::Exited));
    }
    if let Ok(receiver) = <&Receiver>::try_convert(item) {
        return Ok((What::Queue(receiver.descriptor()?), Event::Exited));
    }
    let number = RawFd::try_convert(item)?;
    let fd = duplicate_fd(number);
    let fd = fd.map_err(|error| system(&error, format!("descriptor {number}: {error}")))?;
    Ok((What::Readable(fd), Event::Exited))
}

/// Waits a moment, 10 ms for all together, until the processes that have ended and
/// whose status only their reaping will tell are reaped.
fn linger(handles: RArray) -> Result<(), Error> {
    guarded(|| {
        let mut ended = Vec::new();
        for handle in handles {
            ended.push(<&Handle>::try_convert(handle)?.0.clone());
        }
        let done = crate::gvl::briefly_unlocked(|| Process::linger(&ended))?;
        done.map_err(|panic| panicked(&*panic))
    })
}

fn refused(error: &std::io::Error) -> Error {
    system(error, format!("cannot wait: {error}"))
}

fn unwatchable(error: &std::io::Error, place: usize) -> Error {
    let problem = match error.raw_os_error().map(Errno::from_raw_os_error) {
        // What epoll says of a file on a disk.
        Some(Errno::PERM) => "cannot be waited for",
        Some(Errno::BADF) => "is not open",
        _ => return refused(error),
    };
    let hint = "pass a process, or a pipe, socket or other thing that becomes readable; \
                a file on a disk always is";
    invalid(&Invalid::new(format!("item {place}"), problem, hint))
}
