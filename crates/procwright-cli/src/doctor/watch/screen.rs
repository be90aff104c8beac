//! The screen of a terminal, for as long as a watch has it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;

use procwright_os::sync::Mutex;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr,
    tcgetwinsize, tcsetattr, ttyname,
};

use crate::{poll, tty};

/// The second page of the terminal, without a cursor, and without wrapping: a line that is too
/// long is cut there.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// Rows and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// A terminal that can show a screen.
///
/// It is opened once more, for keys and screen both. Only so may it be non-blocking: that is a
/// mode of the open file, which stdout shares with the shell. A terminal that takes nothing, as
/// that of a connection that hangs, would else keep the watch from its signals.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: File,
    /// The modes of before; `None` while the terminal is as it was.
    before: Mutex<Option<Termios>>,
}

impl Screen {
    /// The terminal that stdout is. `None` if it is none, or one that knows text alone.
    pub(super) fn of_stdout() -> Option<Screen> {
        let stdout = io::stdout();
        if !isatty(&stdout) || tty::is_dumb() {
            return None;
        }
        let named = ttyname(&stdout, Vec::new()).ok();
        let named = named.and_then(|name| name.into_string().ok().map(PathBuf::from));
        // That of another user (after su) may not be opened by its name.
        let paths = named.into_iter().chain([PathBuf::from("/dev/tty")]);
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mut opened = paths.filter_map(|path| rustix::fs::open(path, flags, Mode::empty()).ok());
        opened.next().map(|terminal| Screen::of(terminal.into()))
    }

    pub(super) fn of(terminal: File) -> Screen {
        Screen {
            terminal,
            before: Mutex::new(None),
        }
    }

    /// Takes the screen, and keys one by one. Ctrl-C and Ctrl-Z stay signals. Once more, if it
    /// has it already: a shell may have set other modes while this process was stopped.
    ///
    /// False, and nothing is done, while another process group has the terminal. The system would
    /// stop this process there, and let it do nothing else when it goes on but stop again.
    ///
    /// # Errors
    /// Those of tcsetattr(3).
    pub(super) fn enter(&self) -> io::Result<bool> {
        let mut before = self.before.lock();
        let mut modes = match &*before {
            Some(modes) => modes.clone(),
            None => tcgetattr(&self.terminal)?,
        };
        // After they were read: until here they have been this group's, or those of a shell, which
        // would be taken for the person's.
        if tty::is_of_another_group(&self.terminal) {
            return Ok(false);
        }
        *before = Some(modes.clone());
        modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        // Ctrl-S would stop a screen that comes back by itself.
        modes.input_modes &= !InputModes::IXON;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&self.terminal, OptionalActions::Now, &modes)?;
        self.put_what_fits(ENTER);
        Ok(true)
    }

    /// Gives the screen back, and the modes. Nothing if it has been done.
    ///
    /// The modes stay as they are where a shell has set its own: that of a job that was stopped
    /// by SIGSTOP, and went on in the background.
    pub(super) fn leave(&self) {
        if let Some(before) = self.before.lock().take() {
            let is_of_another = tty::is_of_another_group(&self.terminal);
            if !is_of_another || !tty::has_tostop(&self.terminal) {
                self.put_what_fits(LEAVE);
            }
            if !is_of_another {
                // `Now` does not wait until the terminal has taken all output, which may be never.
                let _ = tcsetattr(&self.terminal, OptionalActions::Now, &before);
            }
        }
    }

    /// Returns whether the screen is ours at present.
    pub(super) fn is_entered(&self) -> bool {
        self.before.lock().is_some()
    }

    /// A few bytes. A terminal that takes nothing shows nothing either.
    fn put_what_fits(&self, text: &str) {
        let _ = (&self.terminal).write(text.as_bytes());
    }

    #[doc(alias = "TIOCGWINSZ")]
    pub(super) fn size(&self) -> Size {
        match tcgetwinsize(&self.terminal) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => Size {
                rows: size.ws_row.into(),
                columns: size.ws_col.into(),
            },
            _ => Size {
                rows: 24,
                columns: 80,
            },
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }

    /// The bytes that keys have sent; none if there are no more.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match (&self.terminal).read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            read => read,
        }
    }

    /// Writes `text`. False if a key or what `or` is for has come before the terminal had taken
    /// all of it.
    ///
    /// # Errors
    /// The terminal is gone.
    ///
    /// # Blocking
    /// Until the terminal has taken it.
    pub(super) fn put(&self, text: &str, or: BorrowedFd<'_>) -> io::Result<bool> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match (&self.terminal).write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let both = PollFlags::IN | PollFlags::OUT;
                    let mut fds = [
                        PollFd::new(&self.terminal, both),
                        PollFd::from_borrowed_fd(or, PollFlags::IN),
                    ];
                    poll::wait_ready(&mut fds, None)?;
                    if !fds[0].revents().contains(PollFlags::OUT) && fds.iter().any(is_ready) {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn is_ready(fd: &PollFd<'_>) -> bool {
    !fd.revents().is_empty()
}
