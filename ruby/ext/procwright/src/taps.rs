//! Who gets the output of a run while it comes: descriptors, behind which Ruby may stand.

use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;

use magnus::{Error, RArray, TryConvert};
use procwright::{BoxError, Command, Piece, Tap};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::options::{Options, fd};

/// What `lib/procwright/taps.rb` asks for.
pub(crate) struct Taps {
    shown: bool,
    taps: Vec<(u8, Copy)>,
}

impl Taps {
    pub(crate) fn of(options: Options<'_>) -> Result<Taps, Error> {
        let mut taps = Vec::new();
        for one in options.get::<Option<RArray>>("taps")?.into_iter().flatten() {
            let (stream, to, taken): (u8, RawFd, Option<RawFd>) = TryConvert::try_convert(one)?;
            let copy = Copy {
                to: fd("tee", to)?,
                taken: taken.map(|taken| fd("tee", taken)).transpose()?,
            };
            taps.push((stream, copy));
        }
        Ok(Taps {
            shown: options.get::<Option<bool>>("tee")? == Some(true),
            taps,
        })
    }

    /// On our own stdout and stderr.
    pub(crate) fn are_shown(&self) -> bool {
        self.shown
    }

    pub(crate) fn put_to<'a>(&self, mut command: Command<'a>) -> io::Result<Command<'a>> {
        for (stream, copy) in &self.taps {
            let copy = Box::new(copy.clone());
            command = match stream {
                0 => command.tap_both(copy),
                stream => command.tap_stream(*stream, copy),
            };
        }
        match self.shown {
            true => command.tee(),
            false => Ok(command),
        }
    }
}

/// Writes all to a descriptor. To a person's as it is; to a thread of Ruby's with a word
/// before each piece, and not before that has taken it: so a run knows what was not.
#[derive(Clone)]
struct Copy {
    to: Arc<OwnedFd>,
    taken: Option<Arc<OwnedFd>>,
}

impl Copy {
    fn put(&self, stream: u8, bytes: &[u8]) -> Result<(), BoxError> {
        let Some(taken) = &self.taken else {
            return Ok(write(&self.to, bytes)?);
        };
        let length = u32::try_from(bytes.len())?.to_ne_bytes();
        write(&self.to, &[&[stream][..], &length].concat())?;
        write(&self.to, bytes)?;
        match retry(taken, PollFlags::IN, || {
            rustix::io::read(taken, &mut [0; 1])
        })? {
            0 => Err("it has ended".into()),
            _ => Ok(()),
        }
    }
}

impl Tap for Copy {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        self.put(piece.stream, piece.bytes)
    }

    fn end(&mut self) -> Result<(), BoxError> {
        match self.taken {
            Some(_) => self.put(0, &[]),
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

/// Ruby's pipes do not block.
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
