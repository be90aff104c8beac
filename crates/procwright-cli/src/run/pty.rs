//! `--pty`: a terminal for the program, and the person's own around it.
//!
//! While somebody types, the terminal in front of him is raw: the inner one does
//! all that a terminal does, so that Control-C, Control-Z and the rest are keys
//! that are typed into it. Where nobody types (a pipe on stdin, `--stdin`, cron)
//! it is left as it is, and only the program's output is a terminal's.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

use procwright::process::Signal;
use procwright::process::job::group_of;
use procwright::terminal::{self, Modes, Raw, Size};
use procwright::{BoxError, Command, Demand, Moment, Spec, Stdin, Watch};
use rustix::process::kill_current_process_group;
use rustix::termios::tcgetpgrp;

use crate::message;
use crate::signals::Signals;

/// What is done to the person's terminal for as long as this lives.
#[derive(Debug)]
pub(super) struct Pty {
    /// None where nobody types.
    raw: Option<Raw>,
    size: Cell<Size>,
}

impl Pty {
    /// # Errors
    /// What the terminal says, in words for a person.
    pub(super) fn enter(spec: &Spec) -> Result<Pty, String> {
        let stdin = io::stdin();
        let types = matches!(spec.stdin, Stdin::Inherit);
        let raw = match types && stdin.is_terminal() {
            true => Some(enter(stdin.as_fd())?),
            false => None,
        };
        let pty = Pty {
            raw,
            size: Cell::default(),
        };
        message::mark_raw(pty.raw.is_some());
        Ok(pty)
    }

    /// Gives the program a terminal like the person's, as large as that is now: a
    /// later size is told of by a signal. Without one, as large as the spec says.
    pub(super) fn apply<'a>(&self, command: Command<'a>) -> Command<'a> {
        let said = command.spec().pty.unwrap_or_default();
        self.size.set(self.outer_size().unwrap_or(said));
        let command = command.pty(self.size.get());
        match &self.raw {
            Some(raw) => command.pty_modes(raw.before().clone()),
            None => command,
        }
    }

    /// The modes that the person's terminal is to have while we are stopped; none
    /// where it is left as it is.
    pub(super) fn before(&self) -> Option<Modes> {
        self.raw.as_ref().map(|raw| raw.before().clone())
    }

    /// The size of the terminal that the person looks at, if there is one.
    fn outer_size(&self) -> Option<Size> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let all: [BorrowedFd<'_>; 3] = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
        let mut sizes = all.into_iter().filter_map(|fd| terminal::size(fd).ok());
        sizes.next()
    }

    /// Says how large the terminal is, if that has changed.
    fn follow(&self, moment: Moment<'_>) {
        let (Some(inner), Some(size)) = (moment.pty, self.outer_size()) else {
            return;
        };
        if self.size.replace(size) != size {
            // One that is gone needs no size.
            let _ = terminal::set_size(inner, size);
        }
    }

    /// Does something between two runs, during which nobody is there to type for:
    /// Control-C is for us.
    pub(super) fn rest<T>(&self, work: impl FnOnce() -> T) -> T {
        if let Some(raw) = &self.raw
            && !is_in_background(raw.as_fd())
        {
            let _ = raw.before().apply(raw);
        }
        message::mark_raw(false);
        let done = work();
        self.resume();
        message::mark_raw(self.raw.is_some());
        done
    }

    /// We had been stopped. A shell puts the terminal right for itself, whoever
    /// stopped us.
    fn resume(&self) {
        if let Some(raw) = &self.raw
            && !is_in_background(raw.as_fd())
        {
            let _ = raw.again();
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.raw = None;
        message::mark_raw(false);
    }
}

fn enter(terminal: BorrowedFd<'_>) -> Result<Raw, String> {
    wait_for_foreground(terminal)?;
    let raw = terminal.try_clone_to_owned().and_then(Raw::enter);
    raw.map_err(|error| format!("cannot make the terminal raw: {error}"))
}

/// In the background the terminal is the shell's, with modes for itself that are
/// not to be taken for the person's. So we stop, as the system would stop whoever
/// changes them, until the shell says `fg`.
fn wait_for_foreground(terminal: BorrowedFd<'_>) -> Result<(), String> {
    // More than anybody says `bg`. Where nobody can say `fg`, in a group whose
    // shell is gone, nothing stops us; nor where it is ignored.
    for _ in 0..STOPS {
        if !is_in_background(terminal) {
            return Ok(());
        }
        if Signal::TTOU.is_ignored() {
            break;
        }
        let _ = kill_current_process_group(rustix::process::Signal::TTOU);
    }
    Err("in the background nobody can type on the terminal\n  \
         hint: give it something else to read, as by --stdin null"
        .to_owned())
}

const STOPS: usize = 20;

fn is_in_background(terminal: BorrowedFd<'_>) -> bool {
    // One that is not ours says so: nobody is in its foreground as far as we go.
    let front = tcgetpgrp(terminal).map(|group| group.as_raw_nonzero().get());
    front.is_ok_and(|front| group_of(0).is_some_and(|own| own > 0 && own != front))
}

/// The signals of a run on a pty, some of which are about the terminal.
#[derive(Debug)]
pub(super) struct Watched<'a> {
    pub(super) signals: &'a mut Signals,
    pub(super) pty: Option<&'a Pty>,
}

impl Watch for Watched<'_> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.signals.fd()
    }

    fn ready(&mut self, moment: Moment<'_>) -> Result<Demand, BoxError> {
        let demand = self.signals.ready(moment)?;
        if let Some(pty) = self.pty {
            if self.signals.take_resumed() {
                pty.resume();
            }
            pty.follow(moment);
        }
        Ok(demand)
    }
}
