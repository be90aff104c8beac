//! From the queue to the output.

use std::os::fd::{AsFd, OwnedFd};

use std::io;

use rustix::io::Errno;

use super::Error;
use super::volume::Volume;
use crate::spool::elastic::{Broken, Consumer, Peek};
use crate::sys::poll::{self, Fd, Flags};
use crate::time::Deadline;

/// Why not all was written.
#[derive(Debug)]
pub(super) enum Failed {
    /// Nobody reads it any more.
    ReaderGone,
    Write(io::Error),
    Lost(Error),
}

/// Writes until the end.
pub(super) fn run(mut consumer: Consumer, output: &OwnedFd) -> Result<(), Failed> {
    let mut volume = Volume::default();
    loop {
        let written = match consumer.peek() {
            Ok(Peek::Bytes(bytes)) => rustix::io::write(output, bytes),
            // A stream of bytes cannot carry it: it is counted, and was told.
            Ok(Peek::Gap(_)) => continue,
            Ok(Peek::Empty) => {
                consumer.wait(Deadline::NEVER);
                continue;
            }
            Ok(Peek::End) => return Ok(()),
            Err(Broken::Lost {
                offset,
                length,
                source,
            }) => {
                return Err(Failed::Lost(Error::Lost {
                    offset,
                    length,
                    source,
                }));
            }
            // Who put bytes in knows it as well, and tells.
            Err(Broken::Overflowed { .. } | Broken::Producer(_)) => return Ok(()),
        };
        match written {
            Ok(n) => {
                consumer.consume(n);
                volume.moved(output.as_fd(), n);
            }
            Err(Errno::PIPE) => return Err(Failed::ReaderGone),
            Err(Errno::INTR) => {}
            // Somebody has made it non-blocking.
            Err(Errno::AGAIN) => {
                let writable = Fd::new(output, Flags::OUT);
                poll::one(writable, Deadline::NEVER).map_err(Failed::Write)?;
            }
            Err(e) => return Err(Failed::Write(e.into())),
        }
    }
}
