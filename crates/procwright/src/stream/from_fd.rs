//! Readers of descriptors that are not a child's.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use super::queue_reader::QueueReader;
use super::reader::Reader;
use crate::drain::{Drain, Pump, Store};
use crate::spool::Overflow;
use crate::spool::elastic::{self, Event};

impl Reader {
    /// Reads from a descriptor of the caller's: the reading end of a pipe, a named
    /// pipe, a socket, a terminal. What [`Reader`] promises of closing holds for
    /// it as for a child's.
    ///
    /// The descriptor is put into non-blocking mode, and with it every duplicate of it,
    /// in this process and in others: this is not for a descriptor that was inherited
    /// and is others' as well.
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

    /// Reads from a descriptor by way of a queue: `overflow` says what becomes of bytes
    /// that are not read as fast as they come. The pump takes them from the descriptor,
    /// as for a child that was spawned.
    ///
    /// # Errors
    /// As [`from_fd`](Reader::from_fd), and when no memory, thread or descriptor
    /// can be had. A descriptor that cannot be watched (a regular file) makes the
    /// first read fail.
    pub fn from_fd_with(fd: OwnedFd, overflow: Overflow) -> io::Result<Reader> {
        // FIONBIO and not F_SETFL, which would overwrite the other flags of a descriptor
        // that was made elsewhere.
        rustix::io::ioctl_fionbio(&fd, true)?;
        let pump = Pump::get().map_err(|error| error.source)?;
        let hook = Box::new(|_: &Event| {});
        let (producer, consumer, monitor) = elastic::elastic(overflow, pump.wake(), hook)
            .map_err(|invalid| io::Error::new(io::ErrorKind::InvalidInput, invalid))?;
        let store = Store::Elastic(Some(producer));
        // A probe of a full pipe needs the writing end, which is not here.
        let drain = Drain::new(fd, None, store, Instant::now());
        let gauge = drain.gauge();
        let queue = QueueReader::new(consumer, monitor, vec![(Some(pump.take(drain)), gauge)]);
        Ok(Reader::of_queue(queue))
    }
}
