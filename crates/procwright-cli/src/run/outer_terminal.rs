//! `--pty`: the person's terminal around the program's own.
//!
//! The outer terminal is raw where a person types: the inner one does all that a
//! terminal does, so that Ctrl-C, Ctrl-Z and the like are keys that are typed into
//! it. The outer terminal is left as it is where stdin is a pipe, a file or cron's;
//! only the program's output goes through the inner one then.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

use procwright::terminal::{self, Modes, Raw, Size};
use procwright::{Command, Moment, Spec, Stdin};

use crate::{message, tty};

/// The person's terminal, raw for as long as this lives.
#[derive(Debug)]
pub(super) struct OuterTerminal {
    /// Raw modes; None where no person types.
    raw: Option<Raw>,
    /// Size of the inner terminal.
    size: Cell<Size>,
}

impl OuterTerminal {
    /// Makes the terminal raw where a person types.
    ///
    /// # Errors
    /// The terminal cannot be made raw; in words for a person.
    ///
    /// # Blocking
    /// In the background this process stops until the shell's `fg`.
    pub(super) fn enter(spec: &Spec) -> Result<OuterTerminal, String> {
        let stdin = io::stdin();
        let is_typed = matches!(spec.stdin, Stdin::Inherit);
        let raw = match is_typed && stdin.is_terminal() {
            true => Some(make_raw(stdin.as_fd())?),
            false => None,
        };
        let outer = OuterTerminal {
            raw,
            size: Cell::default(),
        };
        message::set_raw_terminal(outer.raw.is_some());
        Ok(outer)
    }

    /// Gives the program a terminal with the modes and the present size of this one,
    /// or else with the size in the spec. [`OuterTerminal::update_size`] follows
    /// later changes.
    pub(super) fn apply<'a>(&self, command: Command<'a>) -> Command<'a> {
        let size_in_spec = command.spec().pty.unwrap_or_default();
        self.size.set(self.current_size().unwrap_or(size_in_spec));
        let command = command.pty(self.size.get());
        match &self.raw {
            Some(raw) => command.pty_modes(raw.before().clone()),
            None => command,
        }
    }

    /// Modes for the terminal while this command is stopped; None where it is not
    /// raw.
    pub(super) fn modes_before(&self) -> Option<Modes> {
        self.raw.as_ref().map(|raw| raw.before().clone())
    }

    /// Size of the first of stdin, stdout and stderr that is a terminal.
    #[doc(alias = "TIOCGWINSZ")]
    fn current_size(&self) -> Option<Size> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let all: [BorrowedFd<'_>; 3] = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let mut sizes = all.into_iter().filter_map(|fd| terminal::size(fd).ok());
        sizes.next()
    }

    /// Gives the inner terminal the size of this one, if that has changed.
    #[doc(alias = "SIGWINCH")]
    pub(super) fn update_size(&self, moment: Moment<'_>) {
        let (Some(inner), Some(size)) = (moment.pty, self.current_size()) else {
            return;
        };
        if self.size.replace(size) != size {
            // An inner terminal that is gone needs no size.
            let _ = terminal::set_size(inner, size);
        }
    }

    /// Calls `work`, between two runs, with the terminal's own modes: no program is
    /// there to type into, and Ctrl-C is for this command.
    pub(super) fn with_modes_before<T>(&self, work: impl FnOnce() -> T) -> T {
        if let Some(raw) = &self.raw
            && !tty::is_of_another_group(raw.as_fd())
        {
            let _ = raw.before().apply(raw);
        }
        message::set_raw_terminal(false);
        let done = work();
        self.make_raw_again();
        message::set_raw_terminal(self.raw.is_some());
        done
    }

    /// Makes the terminal raw after a stop: a shell has put its modes right for
    /// itself.
    pub(super) fn make_raw_again(&self) {
        if let Some(raw) = &self.raw
            && !tty::is_of_another_group(raw.as_fd())
        {
            let _ = raw.again();
        }
    }
}

impl Drop for OuterTerminal {
    fn drop(&mut self) {
        self.raw = None;
        message::set_raw_terminal(false);
    }
}

#[doc(alias = "cfmakeraw")]
fn make_raw(terminal: BorrowedFd<'_>) -> Result<Raw, String> {
    wait_for_foreground(terminal)?;
    let raw = terminal.try_clone_to_owned().and_then(Raw::enter);
    raw.map_err(|error| format!("cannot make the terminal raw: {error}"))
}

/// Stops this process group until the shell's `fg`, as the system stops a
/// background process that changes the terminal's modes. In the background the
/// modes are those that the shell has set for itself, and must not be saved as the
/// person's.
fn wait_for_foreground(terminal: BorrowedFd<'_>) -> Result<(), String> {
    // SIGTTOU does not stop an orphaned process group, whose shell is gone.
    for _ in 0..tty::MOST_STOPS {
        if !tty::is_of_another_group(terminal) {
            return Ok(());
        }
        if !tty::stop_in_background() {
            break;
        }
    }
    Err("in the background nobody can type on the terminal\n  \
         hint: give it something else to read, as by --stdin null"
        .to_owned())
}
