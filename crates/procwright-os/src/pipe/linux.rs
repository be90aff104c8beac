//! Linux: `F_SETPIPE_SZ`, and fullness through an epoll registration.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::pipe::PipeFlags;

use super::PipeEnds;
use super::closes::{CloseWatch, End};

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

/// A probe of a pipe between two others, that keeps neither end open.
///
/// Both ends are registered with one epoll instance while they are still ours, as with
/// [`FullProbe`]; the kernel drops a registration when its end is closed everywhere. So what is
/// left of the two tells who is left at the pipe, though a descriptor of ours would change
/// just that: with a write end of ours no reader would see the end, with a read end of ours no
/// writer SIGPIPE.
///
/// Of two ends that are closed, the registrations do not tell which one was closed first. The
/// closes of the pipe are watched for that.
#[doc(alias = "epoll")]
#[doc(alias = "inotify")]
#[derive(Debug)]
pub struct EndsProbe {
    epoll: OwnedFd,
    /// None where it was refused: a user has few instances of inotify, 128 by default.
    closes: Option<CloseWatch>,
}

/// The registrations of an [`EndsProbe`], by the data of their events.
const READ_END: u64 = 1;
const WRITE_END: u64 = 2;

impl EndsProbe {
    /// Registers both ends, which the caller then closes.
    ///
    /// # Errors
    /// Those of `epoll_create1(2)` and `epoll_ctl(2)`.
    pub fn new(read_end: BorrowedFd<'_>, write_end: BorrowedFd<'_>) -> io::Result<EndsProbe> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64;
        epoll::add(&epoll, read_end, data(READ_END), epoll::EventFlags::IN)?;
        epoll::add(&epoll, write_end, data(WRITE_END), epoll::EventFlags::OUT)?;
        Ok(EndsProbe {
            epoll,
            closes: CloseWatch::new(read_end).ok(),
        })
    }

    /// False where it cannot be known which end is closed last.
    pub fn knows_order(&self) -> bool {
        self.closes.is_some()
    }

    /// Looks at the pipe.
    ///
    /// # Errors
    /// Where `/proc` does not tell of the registrations; those of `epoll_wait(2)`.
    pub fn look(&self) -> io::Result<PipeEnds> {
        let mut events = [MaybeUninit::uninit(); 2];
        let zero = rustix::event::Timespec::default();
        let (ready, _) = epoll::wait(&self.epoll, &mut events, Some(&zero))?;
        let is_ready = |end, flag| {
            let mut of_end = ready.iter().filter(|event| { event.data }.u64() == end);
            // The struct is packed: its fields are copied.
            of_end.any(|event| { event.flags }.contains(flag))
        };
        let has_bytes = is_ready(READ_END, epoll::EventFlags::IN);
        let has_room = is_ready(WRITE_END, epoll::EventFlags::OUT);
        // Second: an end that is closed in between is told as closed, and as nothing else.
        let info = format!("/proc/self/fdinfo/{}", self.epoll.as_raw_fd());
        let info = std::fs::read_to_string(info)?;
        let is_open = |end| info.lines().any(|line| registration(line) == Some(end));
        let (has_reader, has_writer) = (is_open(READ_END), is_open(WRITE_END));
        // Third: the event of a close comes before the end of the registration.
        let last_closed = || self.closes.as_ref()?.last_closed();
        let reader_left_first = match (has_reader, has_writer) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => last_closed().map(|end| end == End::Write),
        };
        Ok(PipeEnds {
            has_reader,
            has_writer,
            is_empty: has_reader && has_writer && !has_bytes,
            is_full: has_reader && has_writer && !has_room,
            reader_left_first,
        })
    }
}

/// The data of the registration that a line of `fdinfo` is about:
/// `tfd: 7 events: 1b data: 2 pos:0 ino:1f sdev:e`, in hexadecimal.
fn registration(line: &str) -> Option<u64> {
    let (_, data) = line.strip_prefix("tfd:")?.split_once("data:")?;
    u64::from_str_radix(data.split_whitespace().next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_of_both_ends_keeps_neither() {
        let (read, write) = pipe().unwrap();
        let probe = EndsProbe::new(read.as_fd(), write.as_fd()).unwrap();
        let ends = |has_reader, has_writer, is_empty, is_full| PipeEnds {
            has_reader,
            has_writer,
            is_empty,
            is_full,
            // The write end is the last one that is closed here.
            reader_left_first: Some(!has_reader),
        };
        assert_eq!(probe.look().unwrap(), ends(true, true, true, false));
        rustix::io::write(&write, b"x").unwrap();
        assert_eq!(probe.look().unwrap(), ends(true, true, false, false));
        super::super::set_nonblocking(&write).unwrap();
        while rustix::io::write(&write, &[0; 4096]).is_ok() {}
        assert_eq!(probe.look().unwrap(), ends(true, true, false, true));
        // Another descriptor of an end keeps it: a child has one.
        let other = read.try_clone().unwrap();
        drop(read);
        assert!(probe.look().unwrap().has_reader);
        drop(other);
        assert_eq!(probe.look().unwrap(), ends(false, true, false, false));
        drop(write);
        assert_eq!(probe.look().unwrap(), ends(false, false, false, false));
    }

    #[test]
    fn what_is_unread_is_no_end() {
        let (read, write) = pipe().unwrap();
        let probe = EndsProbe::new(read.as_fd(), write.as_fd()).unwrap();
        rustix::io::write(&write, b"x").unwrap();
        drop(write);
        let left = probe.look().unwrap();
        assert!(left.has_reader && !left.has_writer && !left.is_empty && !left.is_full);
    }

    #[test]
    fn the_end_that_was_closed_last_is_known() {
        for reader_first in [true, false] {
            let (read, write) = pipe().unwrap();
            let probe = EndsProbe::new(read.as_fd(), write.as_fd()).unwrap();
            // What is opened anew, and closed before, is not the end.
            let again = |end: &OwnedFd, options: &mut std::fs::OpenOptions| {
                let path = format!("/proc/self/fd/{}", end.as_raw_fd());
                drop(options.open(path).unwrap());
            };
            for _ in 0..3 {
                again(&write, std::fs::OpenOptions::new().write(true));
                again(&read, std::fs::OpenOptions::new().read(true));
            }
            match reader_first {
                true => (drop(read), drop(write)),
                false => (drop(write), drop(read)),
            };
            for _ in 0..2 {
                let left_first = probe.look().unwrap().reader_left_first;
                assert_eq!(left_first, Some(reader_first));
            }
        }
    }

    #[test]
    fn without_a_watch_the_order_is_unknown() {
        let (read, write) = pipe().unwrap();
        let mut probe = EndsProbe::new(read.as_fd(), write.as_fd()).unwrap();
        assert!(probe.knows_order());
        probe.closes = None;
        assert!(!probe.knows_order());
        assert_eq!(probe.look().unwrap().reader_left_first, Some(false));
        drop((write, read));
        assert_eq!(probe.look().unwrap().reader_left_first, None);
    }
}
