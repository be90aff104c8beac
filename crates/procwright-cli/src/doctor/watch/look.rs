//! One look, and what it has cost; and a thread for looks, so that keys have an answer meanwhile.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use procwright_explain::Diagnosis;
use procwright_os::thread::spawn_quiet;
use rustix::time::{ClockId, clock_gettime};

/// What a look has come to.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) examined: io::Result<Diagnosis>,
    /// Processor time that it took, on all threads.
    pub(super) cost: Duration,
}

/// Examines these processes, or all of this user.
///
/// # Blocking
/// For `between`, and while all processes are looked at.
pub(super) fn look(pids: &[i32], between: Duration) -> Look {
    let before = processor_time();
    let examined = procwright_explain::examine_as_bystander(pids, between);
    Look {
        examined,
        cost: processor_time().saturating_sub(before),
    }
}

#[doc(alias = "CLOCK_PROCESS_CPUTIME_ID")]
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// A thread that looks when it is asked to.
#[derive(Debug)]
pub(super) struct Looker {
    requests: Sender<Vec<i32>>,
    looks: Receiver<Look>,
    /// Readable once a look is over, or the thread has ended.
    woken: UnixStream,
}

impl Looker {
    /// # Errors
    /// No thread or no descriptor can be had.
    pub(super) fn start(between: Duration) -> io::Result<Looker> {
        let (requests, asked_for) = channel::<Vec<i32>>();
        let (done, looks) = channel();
        let (woken, mut waker) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        spawn_quiet("procwright-looks", move || {
            for pids in asked_for {
                // Without a receiver the watch is over.
                if done.send(look(&pids, between)).is_err() {
                    return;
                }
                let _ = waker.write_all(b".");
            }
        })?;
        Ok(Looker {
            requests,
            looks,
            woken,
        })
    }

    /// Begins a look. One at a time.
    pub(super) fn begin(&self, pids: Vec<i32>) {
        // The end of the thread is told of by `take`.
        let _ = self.requests.send(pids);
    }

    /// Readable once there is something to [`take`](Looker::take).
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    /// The look that is over, if one is.
    ///
    /// # Errors
    /// The thread has panicked, and said so.
    pub(super) fn take(&mut self) -> io::Result<Option<Look>> {
        use std::sync::mpsc::TryRecvError;
        let _ = self.woken.read(&mut [0; 64]);
        match self.looks.try_recv() {
            Ok(look) => Ok(Some(look)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                Err(io::Error::other("the thread that looks has ended"))
            }
        }
    }
}
