//! The relay from the caller's terminal into the program's.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::terminal_input::TerminalInput;
use procwright_os::job_control;
use procwright_os::poll::Flags;
use procwright_os::time::Deadline;

/// The largest read. No person types more at once, and what is pasted comes in pieces of
/// this size.
const READ: usize = 4096;

/// The time between two looks, in the background, whether this process is in the
/// foreground again: no event tells.
const LOOK: Duration = Duration::from_millis(250);

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyboardStep {
    /// Bytes were moved.
    Moved,
    /// No key was typed.
    Nothing,
    /// The program's terminal takes no more now.
    Full,
    /// No more will come.
    Done,
}

/// Copies what is typed. The relay keeps no descriptor of the program's terminal, which
/// is closed as soon as its reader closes it.
///
/// Copying happens on the thread of the run, and only when a step is asked for: a thread
/// that sleeps in a read would take the next program's first key.
#[derive(Debug)]
pub(crate) struct KeyboardRelay {
    /// The caller's terminal, with an open file description of its own that never
    /// blocks.
    keyboard: Option<OwnedFd>,
    input: TerminalInput,
    /// The next look, while what is typed belongs to another process group.
    look_again_at: Option<Instant>,
}

impl KeyboardRelay {
    pub(crate) fn new(keyboard: OwnedFd) -> KeyboardRelay {
        KeyboardRelay {
            keyboard: Some(keyboard),
            input: TerminalInput::default(),
            look_again_at: None,
        }
    }

    /// The descriptor that has to be ready before the next step; none if the step waits
    /// for the [clock](KeyboardRelay::next_look).
    pub(super) fn awaits<'a>(
        &'a self,
        terminal: BorrowedFd<'a>,
    ) -> Option<(BorrowedFd<'a>, Flags)> {
        match &self.keyboard {
            Some(_) if self.look_again_at.is_some() => None,
            Some(keyboard) if self.input.is_empty() => Some((keyboard.as_fd(), Flags::IN)),
            _ => Some((terminal, Flags::OUT)),
        }
    }

    /// The time of the next step, whatever is ready.
    pub(super) fn next_look(&self) -> Deadline {
        self.look_again_at.map_or(Deadline::NEVER, Deadline::at)
    }

    pub(super) fn is_due(&self) -> bool {
        self.look_again_at.is_some_and(|at| at <= Instant::now())
    }

    /// Reads or writes once.
    ///
    /// # Errors
    /// Those of `write(2)` for a broken descriptor.
    pub(super) fn step(&mut self, terminal: BorrowedFd<'_>) -> io::Result<KeyboardStep> {
        if self.input.is_empty() {
            let Some(keyboard) = &self.keyboard else {
                return Ok(KeyboardStep::Done);
            };
            self.look_again_at = None;
            let mut piece = [0; READ];
            match rustix::io::read(keyboard, &mut piece) {
                Ok(n) if n > 0 => self.input.press(&piece[..n]),
                Err(Errno::AGAIN) => return Ok(KeyboardStep::Nothing),
                Err(Errno::INTR) => return Ok(KeyboardStep::Moved),
                // EIO is what the background is told where SIGTTIN is blocked or ignored.
                // The keys are not lost, and no end was typed.
                Err(Errno::IO) if is_in_background(keyboard.as_fd()) => {
                    self.look_again_at = Some(Instant::now() + LOOK);
                    return Ok(KeyboardStep::Nothing);
                }
                // The end was typed there, or the terminal itself is gone: the program,
                // too, shall find an end.
                Ok(_) | Err(_) => {
                    self.keyboard = None;
                    self.input.end(terminal)?;
                }
            }
        }
        match self.input.write(terminal) {
            Ok(()) => Ok(KeyboardStep::Moved),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(KeyboardStep::Full),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(KeyboardStep::Moved),
            // No process has the program's terminal any more.
            Err(e) if procwright_os::pty::is_end(&e) => Ok(KeyboardStep::Done),
            Err(e) => Err(e),
        }
    }
}

/// True if another process group has the terminal. Not so if the terminal is gone: then
/// none has.
fn is_in_background(keyboard: BorrowedFd<'_>) -> bool {
    job_control::foreground_group(keyboard).is_some_and(|group| group != job_control::own_group())
}
