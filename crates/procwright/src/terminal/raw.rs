//! A terminal in raw mode, and back.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::Modes;
use procwright_os::watchdog::{self, Watchdog};

/// A terminal in raw mode, which gets its modes back when this goes: dropped, in
/// a panic, and also when this process is killed. For that there is a second
/// process, a small copy of this one, which sleeps until then.
///
/// Modes that were changed meanwhile stay as they are: a shell, say, has put them
/// right itself.
pub struct Raw {
    terminal: OwnedFd,
    before: Modes,
    raw: Modes,
    guard: Option<Watchdog>,
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Raw").finish_non_exhaustive()
    }
}

impl Raw {
    /// Makes the terminal raw: what is typed comes byte by byte, Control-C too,
    /// and what is written goes out as it is.
    ///
    /// Meant for a process that exists to run one program on a terminal, such as the
    /// `procwright` command, as long as it has one thread.
    ///
    /// # Blocking
    /// A process in the background of that terminal is stopped by `SIGTTOU`, as
    /// by any change of its modes.
    ///
    /// # Errors
    /// `ENOTTY` if it is no terminal; `Unsupported` if this process has several
    /// threads; what `fork(2)` says.
    pub fn enter(terminal: OwnedFd) -> io::Result<Raw> {
        let before = Modes::of(&terminal)?;
        let raw = before.raw();
        // First the guard: killed right after the change, it is there.
        let restore = || put_back(&terminal, &before, &raw);
        let guard = watchdog::start(terminal.as_fd(), restore)?;
        let raw = Raw {
            terminal,
            before,
            raw,
            guard: Some(guard),
        };
        raw.again()?;
        Ok(raw)
    }

    /// Makes it raw once more: after a stop, in which the shell has taken the terminal
    /// and put it right for itself.
    ///
    /// # Errors
    /// As [`Modes::apply`].
    pub fn again(&self) -> io::Result<()> {
        self.raw.apply(&self.terminal)
    }

    /// The modes that it gets back.
    pub fn before(&self) -> &Modes {
        &self.before
    }
}

impl AsFd for Raw {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.terminal.as_fd()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        put_back(&self.terminal, &self.before, &self.raw);
        // Dismissed last, so that one of the two can restore them at any moment.
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
    }
}

/// Gives the terminal the modes `before` if it has those of `raw`.
fn put_back(terminal: &OwnedFd, before: &Modes, raw: &Modes) {
    let is_raw = Modes::of(terminal).is_ok_and(|modes| modes.is_like(raw));
    if is_raw {
        // A terminal that is gone needs nothing.
        let _ = before.apply(terminal);
    }
}
