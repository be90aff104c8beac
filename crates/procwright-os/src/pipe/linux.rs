//! Linux: `F_SETPIPE_SZ`, and fullness through an epoll registration.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::pipe::PipeFlags;

pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}

pub fn grow(fd: impl AsFd, bytes: usize) -> io::Result<usize> {
    Ok(rustix::pipe::fcntl_setpipe_size(fd, bytes)?)
}

pub fn capacity(fd: impl AsFd) -> io::Result<usize> {
    Ok(rustix::pipe::fcntl_getpipe_size(fd)?)
}

/// A probe from a pipe's reading side that tells whether the pipe is full.
///
/// The number of unread bytes does not tell: writes of 2,049 bytes fill a
/// 64 KiB pipe at 32,784. Only a poll of a *write* end knows, and holding one
/// would keep the end of the stream from ever arriving. So the write end is
/// registered with an epoll instance while it is still ours. The child inherits
/// the open file description, which keeps the registration alive when we close our
/// descriptor, and a registration does not count as a writer.
///
/// Each pipe has an epoll instance: with a shared one an answer would have to
/// be taken apart, and the kernel's ready list would hold the other pipe too.
#[doc(alias = "epoll")]
#[derive(Debug)]
pub struct FullProbe(OwnedFd);

impl FullProbe {
    /// Registers `write_end`, which the caller then closes.
    ///
    /// # Errors
    /// Those of `epoll_create1(2)` and `epoll_ctl(2)`.
    pub fn new(write_end: BorrowedFd<'_>) -> io::Result<FullProbe> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(0);
        epoll::add(&epoll, write_end, data, epoll::EventFlags::OUT)?;
        Ok(FullProbe(epoll))
    }

    /// True if the pipe has no room now. It says "full" as well once the registered write
    /// end is closed everywhere, since the registration ends with it.
    pub fn is_full(&self) -> bool {
        let mut event = [MaybeUninit::uninit(); 1];
        let zero = rustix::event::Timespec::default();
        match epoll::wait(&self.0, &mut event, Some(&zero)) {
            Ok((ready, _)) => ready.is_empty(),
            // Interrupted or refused: claim nothing.
            Err(_) => false,
        }
    }

    /// True if the registered write end is still open in a process, by what `/proc` says
    /// of the instance. True where `/proc` says nothing.
    pub fn is_registered(&self) -> bool {
        let info = format!("/proc/self/fdinfo/{}", self.0.as_raw_fd());
        std::fs::read_to_string(info).map_or(true, |info| info.contains("tfd:"))
    }
}
