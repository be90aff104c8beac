//! Linux: epoll, level-triggered.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::{BATCH, On};
use crate::sys::poll::{self, Fd, Flags};
use crate::sys::unsupported;
use crate::time::Deadline;

/// An epoll instance.
#[derive(Debug)]
pub(crate) struct ReadySet(OwnedFd);

impl ReadySet {
    pub(crate) fn new() -> io::Result<ReadySet> {
        Ok(ReadySet(epoll::create(epoll::CreateFlags::CLOEXEC)?))
    }

    pub(crate) fn add(&self, fd: BorrowedFd<'_>, key: u64, on: On) -> io::Result<()> {
        let flags = match on {
            On::Read => epoll::EventFlags::IN,
            On::Write => epoll::EventFlags::OUT,
            // A hang-up is reported whether asked for or not.
            On::HangUp => epoll::EventFlags::empty(),
        };
        let data = epoll::EventData::new_u64(key);
        Ok(epoll::add(&self.0, fd, data, flags)?)
    }

    pub(crate) fn remove(&self, fd: BorrowedFd<'_>) {
        // It fails only for one that was not added.
        let _ = epoll::delete(&self.0, fd);
    }

    #[allow(dead_code)]
    pub(crate) fn add_process(
        &self,
        _pid: i32,
        _birth: u64,
        _key: u64,
        _has_ended: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        Err(unsupported("watching a process by its number"))
    }

    #[allow(dead_code)]
    pub(crate) fn remove_process(&self, _pid: i32, _key: u64) -> Option<i32> {
        None
    }

    pub(crate) fn wait(&self, keys: &mut Vec<u64>, deadline: Deadline) -> io::Result<()> {
        const NOW: Timespec = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); BATCH];
        loop {
            // epoll_wait counts milliseconds, so only an endless wait and a mere
            // look are left to it; ppoll on the set itself sleeps until a
            // deadline, to the nanosecond. (epoll_pwait2 does both in one call,
            // on 5.11; older sandboxes may kill for a call they do not know.)
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
