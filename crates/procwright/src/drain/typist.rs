//! From the caller's terminal into the program's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::keys::Keys;
use crate::sys::job;
use crate::sys::poll::Flags;
use crate::time::Deadline;

/// The largest piece. Nobody types more at once, and what is pasted comes in
/// pieces of this size.
const READ: usize = 4096;

/// How often we look, in the background, whether we are in front again: nothing
/// tells of that.
const LOOK: Duration = Duration::from_millis(250);

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
    /// What is typed is somebody else's now, and this is the next look.
    away: Option<Instant>,
}

impl Typist {
    pub(crate) fn new(keyboard: OwnedFd) -> Typist {
        Typist {
            keyboard: Some(keyboard),
            keys: Keys::default(),
            away: None,
        }
    }

    /// What has to be ready before the next step; none if it waits for the
    /// [clock](Typist::next_look).
    pub(super) fn awaits<'a>(
        &'a self,
        terminal: BorrowedFd<'a>,
    ) -> Option<(BorrowedFd<'a>, Flags)> {
        match &self.keyboard {
            Some(_) if self.away.is_some() => None,
            Some(keyboard) if self.keys.is_empty() => Some((keyboard.as_fd(), Flags::IN)),
            _ => Some((terminal, Flags::OUT)),
        }
    }

    /// When the next step is due, whatever is ready.
    pub(super) fn next_look(&self) -> Deadline {
        self.away.map_or(Deadline::NEVER, Deadline::at)
    }

    pub(super) fn is_due(&self) -> bool {
        self.away.is_some_and(|at| at <= Instant::now())
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
            self.away = None;
            let mut piece = [0; READ];
            match rustix::io::read(keyboard, &mut piece) {
                Ok(n) if n > 0 => self.keys.press(&piece[..n]),
                Err(Errno::AGAIN) => return Ok(Typed::Nothing),
                Err(Errno::INTR) => return Ok(Typed::Moved),
                // Where SIGTTIN is blocked or ignored, this is what the background
                // is told. The keys are not lost, and nobody has typed an end.
                Err(Errno::IO) if is_in_background(keyboard.as_fd()) => {
                    self.away = Some(Instant::now() + LOOK);
                    return Ok(Typed::Nothing);
                }
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

/// Whether somebody else has the terminal. Not so if it is gone: then nobody has.
fn is_in_background(keyboard: BorrowedFd<'_>) -> bool {
    job::foreground(keyboard).is_some_and(|group| group != job::own_group())
}
