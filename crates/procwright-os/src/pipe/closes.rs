//! Which end of a pipe is closed last, by inotify.
//!
//! The inode of a pipe is watched, by way of `/proc/self/fd`: each open file description of it
//! makes an event when it is closed everywhere, before the other side can notice.
//!
//! # One instance for all pipes
//!
//! A user has 128 instances by default, for all processes: a process that takes one for each
//! pipe is soon without, and takes them from whatever else watches files for that user. And the
//! close of one waits until the kernel has forgotten its watches, 15 ms on Linux 6.18 for one
//! watch or a thousand. So all pipes of a process share one. It stays for a moment when the last
//! pipe has gone, since the next is often not far, and is closed by a thread, which is there for
//! that moment alone.
//!
//! A queue that is too short for all events (16,384 by default) costs what is known of all pipes
//! at that moment.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::fork::{self, CloseOnFork, PerProcess};
use crate::sync::{Mutex, MutexGuard};
use crate::thread;

/// How long the instance stays after the last pipe.
const LINGER: Duration = Duration::from_millis(100);

/// An end of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Read,
    Write,
}

/// The instance of this process. A fork has none of its pipes, and gets one of its own.
static CLOSES: PerProcess<Mutex<Closes>> = PerProcess::new();

#[derive(Debug, Default)]
struct Closes {
    instance: Option<Instance>,
    /// Number of watches so far, by which the thread sees that there was one meanwhile.
    watches: u64,
    /// True while there is a thread that will close the instance.
    is_attended: bool,
}

#[derive(Debug)]
struct Instance {
    inotify: CloseOnFork,
    /// The end of each watched pipe that was closed last, as far as that is known.
    last_closed: HashMap<i32, Option<End>>,
}

/// A watch of the closes of a pipe.
#[derive(Debug)]
pub(super) struct CloseWatch {
    /// Number of the watch. The kernel gives it to no other while the instance is there.
    descriptor: i32,
    generation: u32,
}

impl CloseWatch {
    /// Watches the pipe that `end` belongs to.
    ///
    /// # Errors
    /// Those of `inotify_init1(2)` and `inotify_add_watch(2)`: where the instances, or the
    /// watches, of this user are used up.
    pub(super) fn new(end: BorrowedFd<'_>) -> io::Result<CloseWatch> {
        let mut closes = CLOSES.get().lock();
        let added = closes.add(end);
        settle(closes);
        Ok(CloseWatch {
            descriptor: added?,
            generation: fork::generation(),
        })
    }

    /// The end that was closed last so far, if that is known. A program that opens its end again
    /// by `/dev/stdin` or `/dev/stdout` makes closes of that end before.
    pub(super) fn last_closed(&self) -> Option<End> {
        if self.generation != fork::generation() {
            return None;
        }
        let mut closes = CLOSES.get().lock();
        let instance = closes.instance.as_mut()?;
        instance.take_events();
        instance.last_closed.get(&self.descriptor).copied()?
    }
}

impl Drop for CloseWatch {
    fn drop(&mut self) {
        // The number may be that of a watch of the fork's own.
        if self.generation != fork::generation() {
            return;
        }
        let mut closes = CLOSES.get().lock();
        if let Some(instance) = &mut closes.instance {
            instance.last_closed.remove(&self.descriptor);
            if let Ok(inotify) = instance.inotify.get() {
                // It keeps the inode of a pipe that is closed.
                let _ = inotify::remove_watch(inotify, self.descriptor);
            }
        }
        settle(closes);
    }
}

impl Closes {
    fn add(&mut self, end: BorrowedFd<'_>) -> io::Result<i32> {
        let instance = match &mut self.instance {
            Some(instance) => instance,
            none => none.insert(Instance::new()?),
        };
        self.watches += 1;
        let path = format!("/proc/self/fd/{}", end.as_raw_fd());
        let what = WatchFlags::CLOSE_WRITE | WatchFlags::CLOSE_NOWRITE;
        let descriptor = inotify::add_watch(instance.inotify.get()?, path, what)?;
        instance.last_closed.insert(descriptor, None);
        Ok(descriptor)
    }

    fn is_idle(&self) -> bool {
        let instance = self.instance.as_ref();
        instance.is_some_and(|instance| instance.last_closed.is_empty())
    }

    /// Takes the instance out if it is not used. It is closed without the lock, as the close
    /// waits.
    fn take_idle(&mut self) -> Option<Instance> {
        match self.is_idle() {
            true => self.instance.take(),
            false => None,
        }
    }
}

impl Instance {
    fn new() -> io::Result<Instance> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Instance {
            inotify: CloseOnFork::new(inotify),
            last_closed: HashMap::new(),
        })
    }

    /// Takes the closes that have been told of.
    fn take_events(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let Ok(inotify) = self.inotify.get() else {
            return;
        };
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        loop {
            let (pipe, event) = match reader.next() {
                Ok(event) => (event.wd(), event.events()),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(_) => break,
            };
            if event.contains(ReadFlags::QUEUE_OVERFLOW) {
                // What came after it has made no event; what comes from now on will.
                self.last_closed.values_mut().for_each(|last| *last = None);
            } else if let Some(last) = self.last_closed.get_mut(&pipe) {
                *last = match event {
                    event if event.contains(ReadFlags::CLOSE_WRITE) => Some(End::Write),
                    event if event.contains(ReadFlags::CLOSE_NOWRITE) => Some(End::Read),
                    _ => None,
                };
            }
        }
        self.last_closed.values_mut().for_each(|last| *last = None);
    }
}

/// Has somebody close the instance if it is not used: a thread, soon, or who has come without
/// one.
fn settle(mut closes: MutexGuard<'_, Closes>) {
    if !closes.is_idle() || closes.is_attended {
        return;
    }
    closes.is_attended = true;
    drop(closes);
    // Without the lock: the new thread may come first.
    if thread::spawn_quiet("procwright-close", close_when_idle).is_err() {
        let mut closes = CLOSES.get().lock();
        closes.is_attended = false;
        let unused = closes.take_idle();
        drop(closes);
        drop(unused);
    }
}

/// Closes the instance once no pipe has been watched for a while.
fn close_when_idle() {
    let mut seen = CLOSES.get().lock().watches;
    loop {
        // Nobody unparks it; where it wakes for no reason the instance goes sooner.
        std::thread::park_timeout(LINGER);
        let mut closes = CLOSES.get().lock();
        if closes.is_idle() && closes.watches != seen {
            seen = closes.watches;
            continue;
        }
        // Either closed here, or used: then the drop of the last watch starts another thread.
        closes.is_attended = false;
        let unused = closes.take_idle();
        drop(closes);
        drop(unused);
        return;
    }
}
