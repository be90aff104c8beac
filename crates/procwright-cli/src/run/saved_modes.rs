//! The modes of the terminal as they were before the program.

use procwright::process::job::Terminal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Modes of the terminal from a time at which this command was in the foreground.
/// At other times they may be those of a shell that edits its line.
#[derive(Debug)]
pub(super) struct SavedModes(Option<Termios>);

impl SavedModes {
    /// Saves nothing if there is no terminal, or it is in another group's hands.
    #[doc(alias = "tcgetattr")]
    pub(super) fn save(terminal: Option<&Terminal>) -> SavedModes {
        let terminal = terminal.filter(|terminal| terminal.is_ours());
        SavedModes(terminal.and_then(|terminal| tcgetattr(terminal).ok()))
    }

    /// Restores the modes that were saved, if any.
    #[doc(alias = "tcsetattr")]
    pub(super) fn restore(&self, terminal: &Terminal) {
        if let Some(modes) = &self.0 {
            // `Now` does not wait until the terminal has taken all output, which is
            // never if a person has pressed Ctrl-S.
            let _ = tcsetattr(terminal, OptionalActions::Now, modes);
        }
    }
}
