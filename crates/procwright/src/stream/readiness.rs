//! Streams in event loops.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use crate::handle::Ready;
use crate::spool::elastic;
use crate::wait::{Awaits, Waitable};

/// A descriptor that is readable once a [`Reader`](super::Reader) has something to
/// read, or a [`Writer`](super::Writer) room to write, at the end of the stream,
/// and for ever once it is closed, whoever closes it. For event loops and
/// [`WaitSet`](crate::WaitSet)s.
///
/// It is not the stream: nothing is read from it or written to it. It keeps the
/// stream neither open nor alive, and all that are asked for are one. Another
/// thread may be faster, so what follows should not have all the time in the
/// world: [`read_for`](super::Reader::read_for) with a timeout of zero.
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
pub struct Readiness(Of);

#[derive(Clone, Debug)]
enum Of {
    Handle(Arc<Ready>),
    Queue(elastic::Readiness),
}

impl Readiness {
    pub(super) fn of_handle(ready: Arc<Ready>) -> Readiness {
        Readiness(Of::Handle(ready))
    }

    pub(super) fn of_queue(readiness: elastic::Readiness) -> Readiness {
        Readiness(Of::Queue(readiness))
    }
}

impl AsFd for Readiness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Of::Handle(ready) => ready.as_fd(),
            Of::Queue(readiness) => readiness.as_fd(),
        }
    }
}

/// For event loops that ask for this and not for [`AsFd`], as tokio's does.
impl AsRawFd for Readiness {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// Until there is something, or the stream is closed.
impl Waitable for Readiness {
    fn awaits(&self) -> Awaits<'_> {
        Awaits::readable(self.as_fd())
    }
}
