//! A line on the terminal that says what is still waited for.
//!
//! It is drawn when somebody has ended and never by the clock: a wait must not
//! wake up. That is why there is no spinner in it and no time, and why it is
//! not made with `indicatif`: without its ticker thread that leaves out what is
//! drawn too soon after the last time, and nothing comes later to make up for
//! it.

use std::io::{self, IsTerminal, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use procwright::process::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::LocalModes;
use signal_hook::{flag, low_level::pipe};

use crate::colour::is_dumb;

/// Those that end this command by default, and may come from a keyboard or from
/// whoever shuts down.
const ENDING: [Signal; 4] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];

/// The last line of the terminal that is our stderr.
///
/// A signal that comes while it is drawn has to find it erased before we end.
/// At any other time, also when we are blocked in a write, signals do what they
/// do by default.
#[derive(Debug)]
pub(crate) struct Progress {
    /// False while the line is drawn.
    by_default: Arc<AtomicBool>,
    /// The signal that came meanwhile, 0 for none.
    signal: Arc<AtomicUsize>,
    /// Readable once one has come.
    wake: UnixStream,
}

impl Progress {
    /// If stderr is a terminal that can erase a line.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn on_terminal() -> io::Result<Option<Progress>> {
        if is_dumb() || !io::stderr().is_terminal() {
            return Ok(None);
        }
        let by_default = Arc::new(AtomicBool::new(true));
        let signal = Arc::new(AtomicUsize::new(0));
        let (wake, write) = UnixStream::pair()?;
        // What nohup ignores, or a shell for a job in the background, stays so.
        for ending in ENDING.into_iter().filter(|signal| !signal.is_ignored()) {
            let number = ending.number();
            // They are called in this order: when the pipe wakes us, the number
            // is there.
            flag::register_conditional_default(number, Arc::clone(&by_default))?;
            let value = usize::try_from(number).unwrap_or(0);
            flag::register_usize(number, Arc::clone(&signal), value)?;
            pipe::register(number, write.try_clone()?)?;
        }
        Ok(Some(Progress {
            by_default,
            signal,
            wake,
        }))
    }

    /// What a wait has to be cancelled on.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub(crate) fn wake(&self) -> io::Result<UnixStream> {
        self.wake.try_clone()
    }

    /// Draws the line: `head`, and of `items` as many as there is room for.
    pub(crate) fn draw(&self, head: &str, items: impl Iterator<Item = String>) {
        if in_the_background(None) {
            return;
        }
        let line = fit(head, items, columns());
        // Before it can be seen: who sees it may press Ctrl-C.
        self.by_default.store(false, Ordering::SeqCst);
        self.put(&format!("\r{line}\x1b[K"));
    }

    /// Erases it, and returns the signal to end by if one has come.
    pub(crate) fn erase(&self) -> Option<i32> {
        if !self.by_default.load(Ordering::SeqCst) {
            self.put("\r\x1b[K");
            self.by_default.store(true, Ordering::SeqCst);
        }
        // Later ones end us at once; this is one that did not.
        let signal = self.signal.load(Ordering::SeqCst);
        i32::try_from(signal).ok().filter(|signal| *signal > 0)
    }

    /// Writes, unless the terminal is stopped (Ctrl-S) and a signal comes: a
    /// write that has begun would not let us end by it.
    fn put(&self, text: &str) {
        let stderr = io::stderr();
        let mut fds = [
            PollFd::new(&stderr, PollFlags::OUT),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        while poll(&mut fds, None) == Err(Errno::INTR) {}
        if fds[0].revents().contains(PollFlags::OUT) {
            // In one write, so that nobody else's comes in between.
            let _ = stderr.lock().write_all(text.as_bytes());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.erase();
    }
}

/// Whether the terminal is used by somebody else at present: what we draw would
/// come in between what is typed there. A program that leads the process group
/// `ally` is nobody else, unless the terminal stops whoever writes meanwhile.
pub(crate) fn in_the_background(ally: Option<i32>) -> bool {
    let foreground = || {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // Behind the name: state, parent, group, session, terminal, the group
        // that has the terminal.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().take(6).collect();
        let [_, _, group, _, terminal, owner] = fields[..] else {
            return None;
        };
        let is_allied = || ally.is_some_and(|ally| owner.parse() == Ok(ally)) && !stops_writers();
        Some(terminal == "0" || group == owner || is_allied())
    };
    foreground() == Some(false)
}

fn stops_writers() -> bool {
    rustix::termios::tcgetattr(io::stderr())
        .is_ok_and(|modes| modes.local_modes.contains(LocalModes::TOSTOP))
}

/// The width of the terminal that stderr is.
pub(crate) fn columns() -> usize {
    match rustix::termios::tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => 80,
    }
}

/// The items behind the head, cut to the width of the terminal. One column stays
/// free: a cursor behind the last one is in the next line to some terminals.
fn fit(head: &str, items: impl Iterator<Item = String>, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let mut line = String::new();
    let mut used = 0;
    // Where the line has to be cut to make room for the ellipsis.
    let mut cut = 0;
    let items = items
        .enumerate()
        .map(|(i, item)| if i == 0 { item } else { format!(", {item}") });
    for piece in std::iter::once(head.to_owned()).chain(items) {
        for c in piece.chars() {
            used += width(c);
            if used > room {
                line.truncate(cut);
                if room >= width('…') {
                    line.push('…');
                }
                return line;
            }
            line.push(c);
            if used + width('…') <= room {
                cut = line.len();
            }
        }
    }
    line
}

/// How many columns a character takes, at most: a line that is cut too early
/// does no harm, one that wraps cannot be erased.
fn width(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let items = || ["1 a", "2 日本", "3 c"].into_iter().map(str::to_owned);
        let whole = "waiting for 3 of 3: 1 a, 2 日本, 3 c";
        assert_eq!(fit("waiting for 3 of 3: ", items(), 80), whole);
        for columns in 0..80 {
            let line = fit("waiting for 3 of 3: ", items(), columns);
            let wide: usize = line.chars().map(width).sum();
            assert!(wide < columns.max(1), "{columns}: {line:?}");
            let kept = line.strip_suffix('…').unwrap_or(&line);
            assert!(whole.starts_with(kept), "{columns}: {line:?}");
            assert_eq!(kept.len() < whole.len(), kept != whole);
        }
        assert_eq!(fit("waiting: ", items(), 13), "waiting: 1…");
    }

    #[test]
    fn no_more_items_are_asked_for_than_fit() {
        let endless = std::iter::repeat_with(|| "1 a".to_owned());
        assert!(fit("", endless, 40).starts_with("1 a, 1 a"));
    }
}
