//! From the caller's terminal into the program's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::keys::Keys;
use crate::sys::poll::Flags;

/// The largest piece. Nobody types more at once, and what is pasted comes in
/// pieces of this size.
const READ: usize = 4096;

/// What a step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// Bytes were moved.
    Moved,
    /// Nobody has typed anything.
    Nothing,
    /// The program's terminal takes no more now.
    Full,
    /// There will be no more.
    Done,
}

/// Copies what is typed. It has nothing of the program's terminal: so that is
/// closed as soon as whoever reads it closes it.
///
/// On the thread of the run, and only when it is asked: a thread that sleeps in a
/// read would take the next program's first key.
#[derive(Debug)]
pub(crate) struct Typist {
    /// In a mode of its own that never blocks.
    keyboard: Option<OwnedFd>,
    keys: Keys,
}

impl Typist {
    pub(crate) fn new(keyboard: OwnedFd) -> Typist {
        Typist {
            keyboard: Some(keyboard),
            keys: Keys::default(),
        }
    }

    /// What has to be ready before the next step.
    pub(super) fn awaits<'a>(&'a self, terminal: BorrowedFd<'a>) -> (BorrowedFd<'a>, Flags) {
        match &self.keyboard {
            Some(keyboard) if self.keys.is_empty() => (keyboard.as_fd(), Flags::IN),
            _ => (terminal, Flags::OUT),
        }
    }

    /// Reads or writes once.
    ///
    /// # Errors
    /// What `write(2)` says of a broken descriptor.
    pub(super) fn step(&mut self, terminal: BorrowedFd<'_>) -> io::Result<Typed> {
        if self.keys.is_empty() {
            let Some(keyboard) = &self.keyboard else {
                return Ok(Typed::Done);
            };
            let mut piece = [0; READ];
            match rustix::io::read(keyboard, &mut piece) {
                Ok(n) if n > 0 => self.keys.press(&piece[..n]),
                Err(Errno::AGAIN) => return Ok(Typed::Nothing),
                Err(Errno::INTR) => return Ok(Typed::Moved),
                // The end that somebody typed there, or of the terminal itself:
                // the program, too, shall find one.
                Ok(_) | Err(_) => {
                    self.keyboard = None;
                    self.keys.end(terminal)?;
                }
            }
        }
        match self.keys.write(terminal) {
            Ok(()) => Ok(Typed::Moved),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Typed::Full),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(Typed::Moved),
            // Nobody has it any more.
            Err(e) if crate::sys::pty::is_end(&e) => Ok(Typed::Done),
            Err(e) => Err(e),
        }
    }
}
