//! Consumers of output while it comes: our own streams, files, and descriptors, behind which Ruby
//! may stand.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;

use magnus::{Error, RArray, RString, TryConvert};
use procwright::{BoxError, Command, Piece, StdStream, Tap};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::gvl::ruby;
use crate::options::{Options, fd, path};

/// What could not be duplicated, in errors.
pub(crate) const OWN_OUTPUT: &str = "our own output, for tee";

/// The taps that `lib/procwright/output_tap.rb` asks for.
pub(crate) struct OutputTaps {
    /// The streams that are shown on our own.
    shown: Vec<StdStream>,
    /// Files that get a copy, and the stream of each, none for both.
    files: Vec<(Option<StdStream>, PathBuf)>,
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
                thread_tells: false,
            };
            taps.push((stream(number)?, copy));
        }
        let mut files = Vec::new();
        for one in options
            .get::<Option<RArray>>("tee_files")?
            .into_iter()
            .flatten()
        {
            let (number, to): (RawFd, RString) = TryConvert::try_convert(one)?;
            files.push((stream(number)?, path(to)));
        }
        let shown = options
            .get::<Option<Vec<RawFd>>>("tee")?
            .unwrap_or_default();
        let shown = shown
            .into_iter()
            .map(stream)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(OutputTaps {
            shown: shown.into_iter().flatten().collect(),
            files,
            taps,
        })
    }

    /// Those of a child, which learns from their threads that one has failed.
    pub(crate) fn of_a_child(mut self) -> OutputTaps {
        for (_, tap) in &mut self.taps {
            tap.thread_tells = tap.acknowledged.is_some();
        }
        self
    }

    /// The streams that are shown on our own.
    pub(crate) fn shown(&self) -> &[StdStream] {
        &self.shown
    }

    pub(crate) fn add_to<'a>(&self, mut command: Command<'a>) -> io::Result<Command<'a>> {
        for (stream, copy) in &self.taps {
            let copy = Box::new(copy.clone());
            command = match stream {
                None => command.tap_both(copy),
                Some(stream) => command.tap_stream(*stream, copy),
            };
        }
        for (stream, path) in &self.files {
            command = command.tee_to_file(*stream, path);
        }
        let shown = self.shown.iter();
        shown.copied().try_fold(command, Command::tee_stream)
    }
}

/// The stream of a number, none for 0, which is both.
fn stream(number: RawFd) -> Result<Option<StdStream>, Error> {
    match (number, StdStream::from_fd(number)) {
        (0, _) => Ok(None),
        (_, Some(stream)) => Ok(Some(stream)),
        (_, None) => {
            let words = format!("{number} is no output stream");
            Err(Error::new(ruby().exception_arg_error(), words))
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
    /// The thread tells by itself that it has failed.
    thread_tells: bool,
}

impl TapWriter {
    fn unless_told(&self, done: Result<(), BoxError>) -> Result<(), BoxError> {
        match self.thread_tells {
            true => Ok(()),
            false => done,
        }
    }

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
        self.unless_told(self.put(Some(piece.stream), piece.bytes))
    }

    fn end(&mut self) -> Result<(), BoxError> {
        match self.acknowledged {
            Some(_) => self.unless_told(self.put(None, &[])),
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
