//! Terminals: their size and their modes.
//!
//! A program gets one of its own by [`Command::pty`](crate::Command::pty).

mod raw;

use std::fmt;
use std::io;
use std::os::fd::AsFd;

pub use raw::Raw;

use rustix::termios::{self, OptionalActions, SpecialCodeIndex, Termios, Winsize};

/// The size of a terminal, in characters.
///
/// Zero means that it is not known: nobody has set the size of that terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Size {
    /// The number of rows.
    pub rows: u16,
    /// The number of columns.
    pub columns: u16,
}

/// 24 rows of 80 columns.
impl Default for Size {
    fn default() -> Size {
        Size {
            rows: 24,
            columns: 80,
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

/// The size of the terminal that `fd` is.
///
/// # Errors
/// `ENOTTY` if it is none.
#[doc(alias = "TIOCGWINSZ")]
#[doc(alias = "tcgetwinsize")]
pub fn size(fd: impl AsFd) -> io::Result<Size> {
    let size = termios::tcgetwinsize(fd)?;
    Ok(Size {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// Sets the size of the terminal that `fd` is, by either of its ends. If that is new,
/// the processes in its foreground get `SIGWINCH`.
///
/// # Errors
/// `ENOTTY` if it is none.
#[doc(alias = "TIOCSWINSZ")]
#[doc(alias = "tcsetwinsize")]
pub fn set_size(fd: impl AsFd, size: Size) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(termios::tcsetwinsize(fd, size)?)
}

/// The modes of a terminal: all that `stty -a` shows but its size.
#[doc(alias = "termios")]
#[derive(Clone)]
pub struct Modes(Termios);

impl Modes {
    /// The modes of the terminal that `fd` is.
    ///
    /// # Errors
    /// `ENOTTY` if it is none.
    #[doc(alias = "tcgetattr")]
    pub fn of(fd: impl AsFd) -> io::Result<Modes> {
        Ok(Modes(termios::tcgetattr(fd)?))
    }

    /// Gives the terminal that `fd` is these modes, at once. What was typed and
    /// not read yet stays.
    ///
    /// # Blocking
    /// A process in the background of that terminal is stopped by `SIGTTOU`,
    /// unless it ignores or blocks that.
    ///
    /// # Errors
    /// `ENOTTY` if it is none.
    #[doc(alias = "tcsetattr")]
    pub fn apply(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(termios::tcsetattr(fd, OptionalActions::Now, &self.0)?)
    }

    /// These modes, but raw: every byte goes through as it is, in both directions.
    #[doc(alias = "cfmakeraw")]
    #[must_use]
    pub fn raw(&self) -> Modes {
        let mut raw = self.clone();
        raw.0.make_raw();
        raw
    }

    /// These modes, with a line editor that knows UTF-8.
    pub(crate) fn utf8(self) -> Modes {
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        let this = {
            let mut this = self;
            this.0.input_modes |= termios::InputModes::IUTF8;
            this
        };
        #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
        let this = self;
        this
    }

    /// The byte that means the end of the input where lines are edited.
    pub(crate) fn end_of_input(&self) -> u8 {
        self.0.special_codes[SpecialCodeIndex::VEOF]
    }

    /// True if what is typed is handed on line by line.
    pub(crate) fn edits_lines(&self) -> bool {
        self.0.local_modes.contains(termios::LocalModes::ICANON)
    }

    /// True if bytes go through in the same way. The speed and the like are left out: a
    /// driver may have its own idea of them.
    fn is_like(&self, other: &Modes) -> bool {
        self.passage() == other.passage()
    }

    fn passage(
        &self,
    ) -> (
        termios::InputModes,
        termios::OutputModes,
        termios::LocalModes,
        [u8; 2],
    ) {
        let modes = &self.0;
        let codes = [SpecialCodeIndex::VMIN, SpecialCodeIndex::VTIME];
        (
            modes.input_modes,
            modes.output_modes,
            modes.local_modes,
            codes.map(|code| modes.special_codes[code]),
        )
    }
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Modes").field(&self.passage()).finish()
    }
}
