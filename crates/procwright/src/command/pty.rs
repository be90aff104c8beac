//! A terminal for the program.

use super::builder::Command;
use crate::terminal::{Modes, Size};

impl Command<'_> {
    /// Runs the program on a terminal of its own, a pseudo-terminal of this size,
    /// so that it shows colours, edits lines and buffers its output by the line.
    ///
    /// Stdout and stderr, as far as they are captured or relayed, are that
    /// terminal, and both arrive as stdout, in the order in which they were
    /// written. It is a terminal: line ends come as `\r\n`, and what is typed is
    /// echoed. The program leads a session of its own, which the terminal
    /// controls. When it exits, those that it leaves in its foreground get
    /// `SIGHUP`, and so does everybody there when the terminal is closed.
    ///
    /// Stdin is the terminal only where somebody types: for
    /// [`Stdin::Pipe`](crate::Stdin::Pipe), where the caller of
    /// [`spawn`](Command::spawn) does, and in a [`run`](Command::run) for
    /// [`Stdin::Inherit`](crate::Stdin::Inherit) if the caller's own stdin is a
    /// terminal, from which it is passed on, key by key if that is
    /// [raw](Modes::raw). Bytes, files and nothing are given as they are: a
    /// terminal would cut lines of more than 4,095 bytes, and take some bytes for
    /// commands.
    ///
    /// How long the program had to wait for its reader cannot be told of a
    /// terminal. Linux only; elsewhere the start fails.
    ///
    /// ```
    /// use procwright::Command;
    /// use procwright::terminal::Size;
    ///
    /// let size = Size { rows: 30, columns: 100 };
    /// let output = Command::new("sh").args(["-c", "test -t 1 && stty size <&1"]).pty(size).run()?;
    /// assert_eq!(output.stdout, b"30 100\r\n");
    /// # Ok::<(), procwright::Error>(())
    /// ```
    #[must_use]
    pub fn pty(mut self, size: Size) -> Self {
        self.spec.pty = Some(size);
        self
    }

    /// Gives the terminal of [`pty`](Command::pty) these modes at first. Without
    /// this it has those of a new terminal.
    #[must_use]
    pub fn pty_modes(mut self, modes: Modes) -> Self {
        self.spec.pty_modes = Some(modes);
        self
    }
}
