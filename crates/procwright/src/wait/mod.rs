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
//! told by [`stats`].

mod fallback;
mod set;
mod stats;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::cancel::Cancel;
use crate::ident::Watched;
use crate::sys::pidfd;
use crate::sys::poll::{self, Fd, Flags};
use crate::sys::ready::On;
use crate::time::Deadline;

pub(crate) use fallback::errand;
pub use set::{Key, Outcome, Pending, WaitSet, Waited, Want};
pub use stats::{Mechanism, Stats, stats};

/// Something whose coming about can be awaited in a [`WaitSet`].
///
/// ```
/// use procwright::wait::{Awaits, Event, Waitable, WaitSet, Want};
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
    /// What to wait for. It must be the same for as long as this is in a set.
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
pub struct Awaits<'a>(Source<'a>);

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Readable(BorrowedFd<'a>),
    /// May have come about when this is readable.
    Asked(BorrowedFd<'a>),
    Process(&'a Watched),
    Nothing(Impossible),
}

/// Why something cannot be awaited.
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
    /// Until this descriptor can be read from, is at its end, or was hung up. For
    /// descriptors that can be polled: not for files on a disk, which are always
    /// readable and which the system refuses.
    pub const fn readable(fd: BorrowedFd<'a>) -> Awaits<'a> {
        Awaits(Source::Readable(fd))
    }

    /// Until [`Waitable::has_come`] says so. It is asked when this goes into a set, and
    /// then whenever the descriptor is readable: for those on which more comes than what
    /// is awaited.
    pub const fn asked_when_readable(fd: BorrowedFd<'a>) -> Awaits<'a> {
        Awaits(Source::Asked(fd))
    }

    /// Of something that is shared, and so cannot be asked.
    fn of_shared(self) -> Awaits<'a> {
        match self.0 {
            Source::Asked(_) => Awaits(Source::Nothing(Impossible {
                kind: io::ErrorKind::Unsupported,
                errno: None,
                why: "what a set has to ask cannot be in it by a shared reference; \
                      put it in itself, in a box, or by `&mut`",
            })),
            _ => self,
        }
    }

    /// This cannot be awaited, or not now: it cannot be put into a set. The error
    /// of that is the system's, if `error` is that, and otherwise of the same kind
    /// and says `why`.
    pub fn impossible(error: &io::Error, why: &'static str) -> Awaits<'a> {
        Awaits(Source::Nothing(Impossible {
            kind: error.kind(),
            errno: error.raw_os_error(),
            why,
        }))
    }

    /// Until this process has ended, or was reaped.
    pub(crate) const fn process(process: &'a Watched) -> Awaits<'a> {
        Awaits(Source::Process(process))
    }
}

/// What is awaited of a process. Other things have only one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// All its threads have ended: its memory, its descriptors and its locks are
    /// released. It may be a zombie yet.
    #[default]
    Exited,
    /// Its parent has collected its status; its number is free.
    Reaped,
}

impl Event {
    /// Its name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Event::Exited => "exited",
            Event::Reaped => "reaped",
        }
    }

    /// What of its pidfd tells that it has come about; none on systems where the
    /// descriptor does not tell of a reap.
    fn told_by(self, pidfd: BorrowedFd<'_>) -> Option<On> {
        match self {
            Event::Exited => Some(On::Read),
            Event::Reaped => pidfd::tells_of_reaps(pidfd).then_some(On::HangUp),
        }
    }

    /// Whether it has come about.
    fn is_over(self, process: &Watched) -> bool {
        match self {
            Event::Exited => process.has_exited(),
            Event::Reaped => process.is_reaped(),
        }
    }
}

/// Sleeps until the event has come about, and says whether it has by the
/// deadline; none if this pidfd does not tell of it.
pub(crate) fn sleep_on(
    pidfd: BorrowedFd<'_>,
    event: Event,
    deadline: Deadline,
) -> Option<io::Result<bool>> {
    let flags = match event.told_by(pidfd)? {
        On::Read => Flags::IN,
        // A hang-up is told of whether asked for or not.
        On::Write => Flags::OUT,
        On::HangUp => Flags::empty(),
    };
    Some(poll::one(Fd::from_borrowed_fd(pidfd, flags), deadline))
}

/// Once cancelled.
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
