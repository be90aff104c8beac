//! The terminal's foreground, lent to the program's group and taken back.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::spec::Spec;
use procwright_os::job_control;
use procwright_os::spawn::Action;

/// Our terminal, lent to a program. Dropped, it is ours again if the program's group has
/// it, and not if a shell has put us into the background meanwhile.
#[derive(Debug)]
pub(super) struct ForegroundTerminal {
    terminal: OwnedFd,
    own: i32,
    /// Whether we were in its foreground at first. If not, the program may be put there
    /// later, when a shell brings us to the front.
    was_ours: bool,
    /// The group that it was lent to; not known before the program has started.
    group: Option<i32>,
}

impl ForegroundTerminal {
    /// Our terminal, if `spec` asks for it and there is one.
    pub(super) fn for_spec(spec: &Spec) -> Option<ForegroundTerminal> {
        if !spec.foreground {
            return None;
        }
        let terminal = job_control::open_terminal()?;
        let own = job_control::own_group();
        let was_ours = job_control::foreground_group(&terminal) == Some(own);
        Some(ForegroundTerminal {
            terminal,
            own,
            was_ours,
            group: None,
        })
    }

    pub(super) fn action(&self) -> Action {
        Action::Foreground {
            terminal: self.terminal.as_raw_fd(),
            from: self.own,
        }
    }

    pub(super) fn lent_to(mut self, group: i32) -> ForegroundTerminal {
        self.group = Some(group);
        self
    }
}

impl Drop for ForegroundTerminal {
    fn drop(&mut self) {
        let is_theirs = match self.group {
            Some(group) => job_control::foreground_group(&self.terminal) == Some(group),
            // A program that did not start leaves no number. No other group has had a
            // reason to take the terminal in that moment.
            None => self.was_ours,
        };
        if is_theirs {
            // An error means that the terminal is gone.
            let _ = job_control::set_foreground(&self.terminal, self.own);
        }
    }
}
