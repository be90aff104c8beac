//! A terminal that is handed to the program's group, and taken back.

use std::os::fd::{AsRawFd, OwnedFd};

use crate::spec::Spec;
use crate::sys::job;
use crate::sys::spawn::Action;

/// Our terminal. Dropped, it is ours again if the program's group has it, and
/// not if a shell has put us into the background meanwhile.
#[derive(Debug)]
pub(super) struct Front {
    terminal: OwnedFd,
    own: i32,
    /// Whether we were in its foreground at first. If not, the program may be
    /// put there later, when somebody brings us to the front.
    was_ours: bool,
    /// Whom it was handed to; not known before the program has started.
    group: Option<i32>,
}

impl Front {
    /// None if it is not asked for, or there is no terminal.
    pub(super) fn of(spec: &Spec) -> Option<Front> {
        if !spec.foreground {
            return None;
        }
        let terminal = job::open_terminal()?;
        let own = job::own_group();
        let was_ours = job::foreground(&terminal) == Some(own);
        Some(Front {
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

    pub(super) fn lent_to(mut self, group: i32) -> Front {
        self.group = Some(group);
        self
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let is_theirs = match self.group {
            Some(group) => job::foreground(&self.terminal) == Some(group),
            // A program that did not start leaves no number. Nobody else has
            // had a reason to take the terminal in that moment.
            None => self.was_ours,
        };
        if is_theirs {
            // A terminal that is gone is nobody's.
            let _ = job::put_in_front(&self.terminal, self.own);
        }
    }
}
