//! Taps, which get copies of the output, and those of our own.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::SystemTime;

use crate::error::BoxError;
use crate::std_stream::StdStream;
use procwright_os::poll::{self, Flags};
use procwright_os::time::Deadline;

/// A piece of output, as it was read in one go.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// The stream that was read.
    pub stream: StdStream,
    /// Time right after the read, however late the piece is looked at.
    pub read_at: SystemTime,
    /// The bytes, at least one.
    pub bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    pub(super) fn new(stream: StdStream, read_at: SystemTime, bytes: &'a [u8]) -> Piece<'a> {
        Piece {
            stream,
            read_at,
            bytes,
        }
    }
}

/// Gets a copy of a stream or of both, piece by piece, on a thread of its own.
///
/// The pieces of both streams come in the order of reading. It is exact within a
/// stream; between the two it is that of writing as long as the program writes no
/// faster than it is read.
#[doc(alias = "tee")]
pub trait Tap: Send {
    /// The next bytes.
    ///
    /// # Errors
    /// Any error ends this consumer. A required one stops the run with it.
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError>;

    /// Nothing more comes, of no stream.
    ///
    /// # Errors
    /// As [`Tap::piece`].
    fn end(&mut self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Copies a stream to a descriptor, such as the caller's own stdout.
pub(crate) struct TeeTap(File);

impl TeeTap {
    pub(crate) fn new(fd: OwnedFd) -> TeeTap {
        TeeTap(File::from(fd))
    }
}

impl Tap for TeeTap {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let mut bytes = piece.bytes;
        while !bytes.is_empty() {
            match self.0.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // Another process that has the terminal has made it non-blocking.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [poll::Fd::from_borrowed_fd(self.0.as_fd(), Flags::OUT)];
                    let _ = poll::poll(&mut fds, Deadline::NEVER);
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

/// Copies a stream to a writer of the caller's.
pub(crate) struct WriterTap<W>(pub(crate) W);

impl<W: Write + Send> Tap for WriterTap<W> {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        self.0.write_all(piece.bytes)?;
        Ok(self.0.flush()?)
    }
}
