//! Waiting for one, many, any or all, without polling.
//!
//! [`Process::wait`](crate::Process::wait) is for one process. A [`WaitSet`] is
//! for many, and for whatever else is [`Waitable`].
//!
//! # How
//!
//! A process is watched through its pidfd; many of them by one epoll instance,
//! so that an idle wait costs nothing, however many there are. Where that cannot
//! be had there is a ladder of others, see [`Mechanism`]; which of them served is
//! told by [`stats()`].

mod fallback;
mod set;
mod stats;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::cancel::Cancel;
use crate::process_handle::ProcessHandle;
use procwright_os::pidfd;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::ready::Interest;
use procwright_os::time::Deadline;

pub(crate) use fallback::wait_in_thread;
pub use set::{Key, Outcome, Pending, WaitSet, Waited, Want};
pub use stats::{Mechanism, Stats, stats};

/// Something that a [`WaitSet`] can wait for.
///
/// ```
/// use procwright_process::wait::{Awaits, Event, Waitable, WaitSet, Want};
/// use std::os::fd::AsFd;
///
/// struct Line(std::io::PipeReader);
///
/// impl Waitable for Line {
///     fn awaits(&self) -> Awaits<'_> {
///         Awaits::readable(self.0.as_fd())
///     }
/// }
///
/// let (reader, writer) = std::io::pipe()?;
/// let mut set = WaitSet::new()?;
/// set.add(Line(reader), Event::Exited)?;
/// drop(writer);
/// assert_eq!(set.wait(Want::Any, None)?.ended.len(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Waitable {
    /// What to wait for. It must not change while this is in a set.
    fn awaits(&self) -> Awaits<'_>;

    /// Whether it has come about, for what says so
    /// [when asked](Awaits::asked_when_readable); not called for anything else. If it
    /// has not, the descriptor must become readable once it may have.
    fn has_come(&mut self) -> bool {
        true
    }
}

/// What a [`Waitable`] waits for.
#[derive(Clone, Copy, Debug)]
pub struct Awaits<'a>(AwaitSource<'a>);

#[derive(Clone, Copy, Debug)]
enum AwaitSource<'a> {
    Readable(BorrowedFd<'a>),
    /// The event may have come about when this is readable.
    Asked(BorrowedFd<'a>),
    Process(&'a ProcessHandle),
    Nothing(Impossible),
}

/// The reason why something cannot be awaited.
#[derive(Clone, Copy, Debug)]
struct Impossible {
    kind: io::ErrorKind,
    errno: Option<i32>,
    why: &'static str,
}

impl Impossible {
    fn error(self) -> io::Error {
        match self.errno {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::new(self.kind, self.why),
        }
    }
}

impl<'a> Awaits<'a> {
    /// A wait until this descriptor can be read from, is at its end, or was hung up. It
    /// has to be one that can be polled: the system refuses files on a disk, which are
    /// always readable.
    pub const fn readable(fd: BorrowedFd<'a>) -> Awaits<'a> {
        Awaits(AwaitSource::Readable(fd))
    }

    /// A wait until [`Waitable::has_come`] says so. It is asked when this goes into a
    /// set, and then whenever the descriptor is readable: for descriptors that tell of
    /// more than what is awaited.
    pub const fn asked_when_readable(fd: BorrowedFd<'a>) -> Awaits<'a> {
        Awaits(AwaitSource::Asked(fd))
    }

    /// The wait for something that is shared, which cannot be asked.
    fn of_shared(self) -> Awaits<'a> {
        match self.0 {
            AwaitSource::Asked(_) => Awaits(AwaitSource::Nothing(Impossible {
                kind: io::ErrorKind::Unsupported,
                errno: None,
                why: "what a set has to ask cannot be in it by a shared reference; \
                      put it in itself, in a box, or by `&mut`",
            })),
            _ => self,
        }
    }

    /// No wait is possible, or not now: this cannot be put into a set. The error of that
    /// is the system's, if `error` is that, and otherwise of its kind with the text
    /// `why`.
    pub fn impossible(error: &io::Error, why: &'static str) -> Awaits<'a> {
        Awaits(AwaitSource::Nothing(Impossible {
            kind: error.kind(),
            errno: error.raw_os_error(),
            why,
        }))
    }

    /// A wait until this process has ended, or was reaped.
    pub(crate) const fn process(process: &'a ProcessHandle) -> Awaits<'a> {
        Awaits(AwaitSource::Process(process))
    }
}

/// The event that is awaited of a process. Other things have only one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// All threads have ended: memory, descriptors and locks are released. The process
    /// may be a zombie.
    #[default]
    Exited,
    /// The parent has collected the status; the number is free.
    Reaped,
}

impl Event {
    /// The name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Event::Exited => "exited",
            Event::Reaped => "reaped",
        }
    }

    /// The readiness of a pidfd that tells of the event; none on systems where the
    /// descriptor does not tell of a reap.
    fn told_by(self, pidfd: BorrowedFd<'_>) -> Option<Interest> {
        match self {
            Event::Exited => Some(Interest::Read),
            Event::Reaped => pidfd::hangs_up_on_reap(pidfd).then_some(Interest::HangUp),
        }
    }

    /// Whether the event has come about.
    fn is_over(self, process: &ProcessHandle) -> bool {
        match self {
            Event::Exited => process.has_exited(),
            Event::Reaped => process.is_reaped(),
        }
    }
}

/// Sleeps until the event has come about: true, or false after the deadline; none if
/// this pidfd does not tell of the event.
pub(crate) fn sleep_on(
    pidfd: BorrowedFd<'_>,
    event: Event,
    deadline: Deadline,
) -> Option<io::Result<bool>> {
    let flags = match event.told_by(pidfd)? {
        Interest::Read => Flags::IN,
        // poll(2) tells of a hang-up whether asked for or not.
        Interest::Write => Flags::OUT,
        Interest::HangUp => Flags::empty(),
    };
    Some(poll::wait_one(Fd::from_borrowed_fd(pidfd, flags), deadline))
}

/// Comes about when the runs and waits are cancelled.
impl Waitable for Cancel {
    fn awaits(&self) -> Awaits<'_> {
        Awaits::readable(self.as_fd())
    }
}

impl<W: Waitable + ?Sized> Waitable for &W {
    fn awaits(&self) -> Awaits<'_> {
        (**self).awaits().of_shared()
    }
}

impl<W: Waitable + ?Sized> Waitable for Arc<W> {
    fn awaits(&self) -> Awaits<'_> {
        (**self).awaits().of_shared()
    }
}

impl<W: Waitable + ?Sized> Waitable for &mut W {
    fn awaits(&self) -> Awaits<'_> {
        (**self).awaits()
    }

    fn has_come(&mut self) -> bool {
        (**self).has_come()
    }
}

impl<W: Waitable + ?Sized> Waitable for Box<W> {
    fn awaits(&self) -> Awaits<'_> {
        (**self).awaits()
    }

    fn has_come(&mut self) -> bool {
        (**self).has_come()
    }
}
