//! Linux: epoll, level-triggered.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::{BATCH, Interest};
use crate::poll::{self, Fd, Flags};
use crate::time::Deadline;
use crate::unsupported;

/// An epoll instance.
#[doc(alias = "epoll")]
#[doc(alias = "kqueue")]
#[derive(Debug)]
pub struct ReadySet(OwnedFd);

impl ReadySet {
    /// An empty set.
    ///
    /// # Errors
    /// Those of `epoll_create1(2)`.
    #[doc(alias = "epoll_create1")]
    pub fn new() -> io::Result<ReadySet> {
        Ok(ReadySet(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    /// Watches a descriptor, which the caller removes before it closes it.
    ///
    /// # Errors
    /// `AlreadyExists` if that very descriptor is in the set; others of `epoll_ctl(2)`.
    #[doc(alias = "epoll_ctl")]
    pub fn add(&self, fd: BorrowedFd<'_>, key: u64, on: Interest) -> io::Result<()> {
        let flags = match on {
            Interest::Read => epoll::EventFlags::IN,
            Interest::Write => epoll::EventFlags::OUT,
            // A hang-up is reported whether asked for or not.
            Interest::HangUp => epoll::EventFlags::empty(),
        };
        let data = epoll::EventData::new_u64(key);
        Ok(epoll::add(&self.0, fd, data, flags)?)
    }

    /// Watches a descriptor no more.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        // Fails only for a descriptor that was not added.
        let _ = epoll::delete(&self.0, fd);
    }

    /// Watches a process by its number, where there are no pidfds.
    ///
    /// # Errors
    /// `Unsupported` here.
    pub fn add_process(
        &self,
        _pid: i32,
        _birth: u64,
        _key: u64,
        _has_ended: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        Err(unsupported("watching a process by its number"))
    }

    /// Watches a process no more; its status, if the system told it.
    pub fn remove_process(&self, _pid: i32, _key: u64) -> Option<i32> {
        None
    }

    /// Sleeps until the set is ready or the deadline has come, and appends the keys of
    /// what is ready, [`BATCH`] at most.
    ///
    /// # Errors
    /// Those of `epoll_wait(2)` but `EINTR`.
    #[doc(alias = "epoll_wait")]
    pub fn wait(&self, keys: &mut Vec<u64>, deadline: Deadline) -> io::Result<()> {
        const NOW: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); BATCH];
        loop {
            // epoll_wait counts milliseconds, so only an endless wait and a mere check are
            // left to it; ppoll on the set itself sleeps until a deadline, to the
            // nanosecond. (epoll_pwait2 does both in one call, on 5.11; older sandboxes may
            // kill for a call they do not know.)
            let endless = deadline == Deadline::NEVER;
            if !endless && !deadline.reached(Instant::now()) {
                let mut set = [Fd::new(&self.0, Flags::IN)];
                match poll::poll(&mut set, deadline) {
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Err(e) => return Err(e),
                }
            }
            match epoll::wait(&self.0, &mut events, (!endless).then_some(&NOW)) {
                Ok((events, _)) => {
                    keys.extend(events.iter().map(|event| {
                        // Copied out, for the struct is packed.
                        let data = event.data;
                        data.u64()
                    }));
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

impl AsFd for ReadySet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
