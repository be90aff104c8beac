//! The second thread: from the queue to the output.

use std::os::fd::{AsFd, OwnedFd};

use std::io;

use rustix::io::Errno;

use super::error::Error;
use super::pipe_growth::PipeGrowth;
use crate::spool::elastic::{Broken, ElasticConsumer, Peek};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;

/// Why not all was written.
#[derive(Debug)]
pub(super) enum OutputFailure {
    /// The output has no reader any more.
    ReaderGone,
    Write(io::Error),
    Lost(Error),
}

/// Writes until the end.
pub(super) fn write_output(
    mut consumer: ElasticConsumer,
    output: &OwnedFd,
) -> Result<(), OutputFailure> {
    let mut growth = PipeGrowth::default();
    loop {
        let written = match consumer.peek() {
            Ok(Peek::Bytes(bytes)) => rustix::io::write(output, bytes),
            // A stream of bytes cannot carry a gap: the gap is counted, and was told.
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
                return Err(OutputFailure::Lost(Error::Lost {
                    offset,
                    length,
                    source,
                }));
            }
            // The thread that reads the input knows it as well, and tells.
            Err(Broken::Overflowed { .. } | Broken::Producer(_)) => return Ok(()),
        };
        match written {
            Ok(n) => {
                consumer.consume(n);
                growth.moved(output.as_fd(), n);
            }
            Err(Errno::PIPE) => return Err(OutputFailure::ReaderGone),
            Err(Errno::INTR) => {}
            // Another process that has the output has made it non-blocking.
            Err(Errno::AGAIN) => {
                let writable = Fd::new(output, Flags::OUT);
                poll::wait_one(writable, Deadline::NEVER).map_err(OutputFailure::Write)?;
            }
            Err(e) => return Err(OutputFailure::Write(e.into())),
        }
    }
}
