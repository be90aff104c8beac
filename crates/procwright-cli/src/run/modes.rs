//! The terminal's modes, as they were before the program.

use procwright::process::job::Terminal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The modes of our terminal from a time at which we were in front; at any
/// other they may be those of a shell that edits its line.
#[derive(Debug)]
pub(crate) struct Modes(Option<Termios>);

impl Modes {
    pub(crate) fn new(terminal: Option<&Terminal>) -> Modes {
        let terminal = terminal.filter(|terminal| terminal.is_ours());
        Modes(terminal.and_then(|terminal| tcgetattr(terminal).ok()))
    }

    /// Puts them back, if there were any.
    pub(crate) fn restore(&self, terminal: &Terminal) {
        if let Some(modes) = &self.0 {
            // Now, and not when the output has been taken: somebody may have
            // pressed Ctrl-S.
            let _ = tcsetattr(terminal, OptionalActions::Now, modes);
        }
    }
}
