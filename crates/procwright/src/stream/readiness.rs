//! Streams in event loops.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use crate::spool::elastic;
use procwright_os::handle::ReadinessFd;
use procwright_process::wait::{Awaits, Waitable};

/// A descriptor that is readable once a [`Reader`](super::Reader) has something to
/// read, or a [`Writer`](super::Writer) room to write, at the end of the stream,
/// and for ever once it is closed, by any thread. For event loops and
/// [`WaitSet`](crate::WaitSet)s.
///
/// A readiness is not the stream: nothing is read from it or written to it, and it
/// keeps the stream neither open nor alive. All that are asked for are one. Another
/// thread may be faster, so the read that follows should not wait for ever: [`read_for`](super::Reader::read_for) with a timeout of zero.
///
/// ```
/// use procwright::wait::{Event, Want};
/// use procwright::{Command, WaitSet};
///
/// let mut child = Command::new("sleep").arg("1000").spawn()?;
/// let stdout = child.stdout.take().unwrap();
/// let mut set = WaitSet::new()?;
/// set.add(stdout.readiness()?, Event::Exited)?;
/// let elsewhere = stdout.clone();
/// std::thread::spawn(move || elsewhere.close());
/// assert_eq!(set.wait(Want::Any, None)?.ended.len(), 1);
/// child.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Readiness(ReadinessSource);

#[derive(Clone, Debug)]
enum ReadinessSource {
    Handle(Arc<ReadinessFd>),
    Queue(elastic::ReadinessFd),
}

impl Readiness {
    pub(super) fn of_handle(ready: Arc<ReadinessFd>) -> Readiness {
        Readiness(ReadinessSource::Handle(ready))
    }

    pub(super) fn of_queue(readiness: elastic::ReadinessFd) -> Readiness {
        Readiness(ReadinessSource::Queue(readiness))
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            ReadinessSource::Handle(ready) => ready.as_fd(),
            ReadinessSource::Queue(readiness) => readiness.as_fd(),
        }
    }
}

/// Event loops may ask for this and not for [`AsFd`], as tokio's does.
impl AsRawFd for Readiness {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Waits until there is something, or the stream is closed.
impl Waitable for Readiness {
    fn awaits(&self) -> Awaits<'_> {
        Awaits::readable(self.as_fd())
    }
}
