//! Streams over descriptors that are not a child's.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::{Reader, Spool};
use crate::drain::{Drain, Pump, Store};
use crate::spool::Overflow;
use crate::spool::elastic::{self, Event};

impl Reader {
    /// Reads from a descriptor of the caller's: the reading end of a pipe, a named
    /// pipe, a socket, a terminal. What [`Reader`] promises of closing holds for
    /// it as for a child's.
    ///
    /// It is put into non-blocking mode, and with it every duplicate of it, in
    /// this process and in others: not for a descriptor that was inherited and is
    /// others' as well.
    ///
    /// ```
    /// use procwright::stream::{Closed, Reader};
    /// use std::io::{Read, Write};
    ///
    /// let (theirs, mut write) = std::io::pipe()?;
    /// let mut reader = Reader::from_fd(theirs.into())?;
    /// write.write_all(b"hello")?;
    /// let mut buffer = [0; 16];
    /// assert_eq!(reader.read(&mut buffer)?, 5);
    ///
    /// let blocked = { let mut reader = reader.clone(); std::thread::spawn(move || reader.read(&mut [0])) };
    /// reader.close();
    /// assert!(Closed::is(&blocked.join().unwrap().unwrap_err()));
    /// assert_eq!(write.write(b"more").unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// When it cannot be put into that mode: it is no stream.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Reader> {
        Reader::of_pipe(fd, None, Arc::default())
    }

    /// The same, and `overflow` says what becomes of what is not read as fast as
    /// it comes: the pump takes it from the descriptor, as for a child that was
    /// spawned.
    ///
    /// # Errors
    /// As [`from_fd`](Reader::from_fd), and when no memory, thread or descriptor
    /// can be had. A descriptor that cannot be watched (a regular file) makes the
    /// first read fail.
    pub fn from_fd_with(fd: OwnedFd, overflow: Overflow) -> io::Result<Reader> {
        // Not by F_SETFL, which would take the other flags of a stranger's descriptor.
        rustix::io::ioctl_fionbio(&fd, true)?;
        let pump = Pump::get()?;
        let hook = Box::new(|_: &Event| {});
        let (producer, consumer, monitor) = elastic::elastic(overflow, pump.wake(), hook)
            .map_err(|invalid| io::Error::new(io::ErrorKind::InvalidInput, invalid))?;
        let store = Store::Elastic(Some(producer));
        // No probe: whether the pipe is full could be asked from a writing end only.
        let drain = Drain::new(fd, None, store, Instant::now());
        let gauge = drain.gauge();
        let spool = Spool::new(consumer, monitor, vec![(pump.take(drain), gauge)]);
        Ok(Reader::of_spool(spool))
    }
}
