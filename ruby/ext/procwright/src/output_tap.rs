//! Consumers of a run's output while it comes: descriptors, behind which Ruby may stand.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;

use magnus::{Error, RArray, TryConvert};
use procwright::{BoxError, Command, Piece, StdStream, Tap};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::gvl::ruby;
use crate::options::{Options, fd};

/// The taps that `lib/procwright/output_tap.rb` asks for.
pub(crate) struct OutputTaps {
    /// True for a tee on our own stdout and stderr.
    shown: bool,
    /// The stream of each consumer, none for both.
    taps: Vec<(Option<StdStream>, TapWriter)>,
}

impl OutputTaps {
    pub(crate) fn from_options(options: Options<'_>) -> Result<OutputTaps, Error> {
        let mut taps = Vec::new();
        for one in options.get::<Option<RArray>>("taps")?.into_iter().flatten() {
            let (number, to, acknowledged): (RawFd, RawFd, Option<RawFd>) =
                TryConvert::try_convert(one)?;
            let copy = TapWriter {
                to: fd("tee", to)?,
                acknowledged: acknowledged
                    .map(|acknowledged| fd("tee", acknowledged))
                    .transpose()?,
            };
            let stream = match number {
                0 => None,
                number => Some(StdStream::from_fd(number).ok_or_else(|| {
                    let words = format!("{number} is no output stream");
                    Error::new(ruby().exception_arg_error(), words)
                })?),
            };
            taps.push((stream, copy));
        }
        Ok(OutputTaps {
            shown: options.get::<Option<bool>>("tee")? == Some(true),
            taps,
        })
    }

    /// True for a tee on our own stdout and stderr.
    pub(crate) fn are_shown(&self) -> bool {
        self.shown
    }

    pub(crate) fn add_to<'a>(&self, mut command: Command<'a>) -> io::Result<Command<'a>> {
        for (stream, copy) in &self.taps {
            let copy = Box::new(copy.clone());
            command = match stream {
                None => command.tap_both(copy),
                Some(stream) => command.tap_stream(*stream, copy),
            };
        }
        match self.shown {
            true => command.tee(),
            false => Ok(command),
        }
    }
}

/// Writes pieces to a descriptor: to the caller's as they are; to a thread of Ruby's with a
/// header before each, and the next only when the thread has taken one. So the run knows how
/// much was not taken.
#[derive(Clone)]
struct TapWriter {
    to: Arc<OwnedFd>,
    /// A descriptor that has a byte for each piece that was taken; none without a thread.
    acknowledged: Option<Arc<OwnedFd>>,
}

impl TapWriter {
    /// Writes the number of the stream (0 for the end), the length, and the bytes.
    fn put(&self, stream: Option<StdStream>, bytes: &[u8]) -> Result<(), BoxError> {
        let Some(acknowledged) = &self.acknowledged else {
            return Ok(write(&self.to, bytes)?);
        };
        let number = match stream {
            None => 0,
            Some(StdStream::Stdout) => 1,
            Some(StdStream::Stderr) => 2,
        };
        let length = u32::try_from(bytes.len())?.to_ne_bytes();
        write(&self.to, &[&[number][..], &length].concat())?;
        write(&self.to, bytes)?;
        match retry(acknowledged, PollFlags::IN, || {
            rustix::io::read(acknowledged, &mut [0; 1])
        })? {
            0 => Err("it has ended".into()),
            _ => Ok(()),
        }
    }
}

impl Tap for TapWriter {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        self.put(Some(piece.stream), piece.bytes)
    }

    fn end(&mut self) -> Result<(), BoxError> {
        match self.acknowledged {
            Some(_) => self.put(None, &[]),
            None => Ok(()),
        }
    }
}

fn write(to: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = retry(to, PollFlags::OUT, || rustix::io::write(to, bytes))?;
        bytes = &bytes[n..];
    }
    Ok(())
}

/// Repeats `call` until the descriptor is ready for it: Ruby's pipes do not block.
fn retry(
    fd: &OwnedFd,
    ready: PollFlags,
    mut call: impl FnMut() -> rustix::io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(fd, ready)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
