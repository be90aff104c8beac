//! The second thread: from the queue to the output.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use super::error::Error;
use super::pipe_growth::PipeGrowth;
use crate::spool::elastic::{Broken, ElasticConsumer, Peek, Woken};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// Why not all was written.
#[derive(Debug)]
pub(super) enum OutputFailure {
    /// The output has no reader any more.
    ReaderGone,
    Write(io::Error),
    Lost(Error),
}

/// Writes until the end, or until `cut` is rung.
pub(super) fn write_output(
    mut consumer: ElasticConsumer,
    output: BorrowedFd<'_>,
    cut: Option<&Wake>,
) -> Result<(), OutputFailure> {
    let mut growth = PipeGrowth::default();
    loop {
        let written = match consumer.peek() {
            Ok(Peek::Bytes(bytes)) => rustix::io::write(output, bytes),
            // A stream of bytes cannot carry a gap: the gap is counted, and was told.
            Ok(Peek::Gap(_)) => continue,
            Ok(Peek::Empty) => match wait(&mut consumer, cut) {
                Ok(true) => return Ok(()),
                Ok(false) => continue,
                Err(error) => return Err(OutputFailure::Write(error)),
            },
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
                growth.moved(output, n);
            }
            Err(Errno::PIPE) => return Err(OutputFailure::ReaderGone),
            Err(Errno::INTR) => {}
            // By us, for the sake of `cut`, or by another process that has the output.
            Err(Errno::AGAIN) => {
                if wait_for_room(output, cut).map_err(OutputFailure::Write)? {
                    return Ok(());
                }
            }
            Err(e) => return Err(OutputFailure::Write(e.into())),
        }
    }
}

/// Waits until something is in the queue; true once `cut` is rung.
fn wait(consumer: &mut ElasticConsumer, cut: Option<&Wake>) -> io::Result<bool> {
    match cut {
        None => {
            consumer.wait(Deadline::NEVER);
            Ok(false)
        }
        Some(cut) => {
            let woken = consumer.wait_or(cut.as_fd(), Deadline::NEVER)?;
            Ok(woken == Woken::Interrupted)
        }
    }
}

/// Waits until the output takes more, or has no reader; true once `cut` is rung.
pub(super) fn wait_for_room(output: BorrowedFd<'_>, cut: Option<&Wake>) -> io::Result<bool> {
    let mut fds = vec![Fd::from_borrowed_fd(output, Flags::OUT)];
    fds.extend(cut.map(|cut| Fd::new(cut, Flags::IN)));
    match poll::poll(&mut fds, Deadline::NEVER) {
        Ok(_) => Ok(fds.get(1).is_some_and(|cut| !cut.revents().is_empty())),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}
