//! The terminal that stderr is, if it is one: whether a line can be drawn there.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd;

use procwright::process::{Signal, job};
use rustix::process::kill_current_process_group;
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp};

use crate::procfs;

/// More stops than a person says `bg`.
pub(crate) const MOST_STOPS: usize = 20;

/// Text that erases the line with the cursor.
pub(crate) const ERASE_LINE: &str = "\r\x1b[K";

/// `line` as the text that draws it over the line with the cursor.
pub(crate) fn drawn(line: &str) -> String {
    format!("\r{line}\x1b[K")
}

/// Returns whether the terminal knows nothing but text, as far as the environment says.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term == "dumb")
}

/// Returns whether stderr is a terminal that can erase a line.
pub(crate) fn can_redraw() -> bool {
    io::stderr().is_terminal() && !is_dumb()
}

/// Width of the terminal.
pub(crate) fn columns() -> usize {
    columns_of(io::stderr())
}

/// Width of this terminal, if it is one.
#[doc(alias = "TIOCGWINSZ")]
pub(crate) fn columns_of(terminal: impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => 80,
    }
}

/// Returns whether another process group has the terminal: a line drawn now would mix
/// with what a person types there. `ally`, a process that leads a group of its own,
/// counts as ours, unless the terminal stops the writers of background groups.
#[doc(alias = "tcgetpgrp")]
pub(crate) fn in_background(ally: Option<i32>) -> bool {
    let in_foreground = || {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // State, parent, group, session, terminal, the terminal's foreground group.
        let fields: Vec<&str> = procfs::fields_after_name(&stat)?.take(6).collect();
        let [_, _, group, _, terminal, foreground] = fields[..] else {
            return None;
        };
        let is_allied = || {
            ally.is_some_and(|ally| foreground.parse() == Ok(ally)) && !stops_background_writers()
        };
        Some(terminal == "0" || group == foreground || is_allied())
    };
    in_foreground() == Some(false)
}

/// Returns whether another process group has `terminal`; false for a terminal that is not the
/// controlling one, for which tcgetpgrp(3) fails.
///
/// Its modes are those that the shell has set for itself then: who saves them takes them for the
/// person's, and who sets others is stopped.
pub(crate) fn is_of_another_group(terminal: impl AsFd) -> bool {
    let foreground = tcgetpgrp(terminal).map(|group| group.as_raw_nonzero().get());
    foreground
        .is_ok_and(|foreground| job::group_of(0).is_some_and(|own| own > 0 && own != foreground))
}

/// Stops this process group, as the system stops one that sets the modes of a terminal which
/// another group has. False if that stops nobody, since the signal is ignored. One whose shell is
/// gone (an orphaned group) goes on as well, and is told true.
///
/// # Blocking
/// Until SIGCONT.
pub(crate) fn stop_in_background() -> bool {
    if Signal::TTOU.is_ignored() {
        return false;
    }
    let _ = kill_current_process_group(rustix::process::Signal::TTOU);
    true
}

fn stops_background_writers() -> bool {
    has_tostop(io::stderr())
}

/// Returns whether the system stops who writes to the terminal while another group has it.
#[doc(alias = "TOSTOP")]
pub(crate) fn has_tostop(terminal: impl AsFd) -> bool {
    tcgetattr(terminal).is_ok_and(|modes| modes.local_modes.contains(LocalModes::TOSTOP))
}
