//! A line on the terminal that says what is still waited for.
//!
//! The line is drawn when a process has ended and never by the clock: a wait must
//! not wake up. Therefore it has no spinner and no time, and is not made with
//! `indicatif`: without its ticker thread that leaves out a drawing that follows the
//! last one too soon, and nothing makes up for it later.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use procwright::process::Signal;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::{flag, low_level::pipe};

use crate::exit::TERMINATION_SIGNALS;
use crate::tty;

/// The last line of the terminal that is stderr.
///
/// A signal that comes while the line is drawn wakes the wait, which erases the line
/// and dies by the signal. At all other times, also in a blocked write, signals act
/// by default.
///
/// The flags are shared with signal handlers, which run on any thread. `SeqCst` puts
/// a store to `by_default` in one order with the loads of the handlers and with the
/// number that they store; a line is drawn too rarely for that to cost anything.
#[derive(Debug)]
pub(super) struct WaitProgress {
    /// True if signals act by default: at all times but while the line is drawn.
    by_default: Arc<AtomicBool>,
    /// Signal that came meanwhile, 0 for none.
    signal: Arc<AtomicUsize>,
    /// Readable once a signal has come.
    wake: UnixStream,
}

impl WaitProgress {
    /// A line, if stderr is a terminal that can erase one.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn on_terminal() -> io::Result<Option<WaitProgress>> {
        if !tty::can_redraw() {
            return Ok(None);
        }
        let by_default = Arc::new(AtomicBool::new(true));
        let signal = Arc::new(AtomicUsize::new(0));
        let (wake, write) = UnixStream::pair()?;
        // Signals that nohup ignores, or a shell for a job in the background, stay
        // ignored.
        let caught = TERMINATION_SIGNALS
            .into_iter()
            .filter(|signal| !signal.is_ignored());
        for number in caught.map(Signal::number) {
            // The handlers run in the order of their registration: the number is
            // stored before the pipe wakes the wait.
            flag::register_conditional_default(number, Arc::clone(&by_default))?;
            let value = usize::try_from(number).unwrap_or(0);
            flag::register_usize(number, Arc::clone(&signal), value)?;
            pipe::register(number, write.try_clone()?)?;
        }
        Ok(Some(WaitProgress {
            by_default,
            signal,
            wake,
        }))
    }

    /// Descriptor that cancels the wait once it is readable.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn wake_fd(&self) -> io::Result<UnixStream> {
        self.wake.try_clone()
    }

    /// Draws the line: `head`, and as many `items` as there is room for.
    pub(super) fn draw(&self, head: &str, items: impl Iterator<Item = String>) {
        if tty::in_background(None) {
            return;
        }
        let line = fit(head, items, tty::columns());
        // The flag changes before the line can be seen: the person who sees the line
        // may press Ctrl-C.
        self.by_default.store(false, Ordering::SeqCst);
        self.put(&tty::drawn(&line));
    }

    /// Erases the line. Returns the signal to die by, if one has come.
    pub(super) fn erase(&self) -> Option<i32> {
        if !self.by_default.load(Ordering::SeqCst) {
            self.put(tty::ERASE_LINE);
            self.by_default.store(true, Ordering::SeqCst);
        }
        // A signal that came before `by_default` was true again. Later ones end this
        // process at once.
        let signal = self.signal.load(Ordering::SeqCst);
        i32::try_from(signal).ok().filter(|signal| *signal > 0)
    }

    /// Writes `text`, unless the terminal is stopped (Ctrl-S) and a signal comes: in a
    /// write that has begun this process could not die by it.
    fn put(&self, text: &str) {
        let stderr = io::stderr();
        let mut fds = [
            PollFd::new(&stderr, PollFlags::OUT),
            PollFd::new(&self.wake, PollFlags::IN),
        ];
        while poll(&mut fds, None) == Err(Errno::INTR) {}
        if fds[0].revents().contains(PollFlags::OUT) {
            // One write, so that no other output comes in between.
            let _ = stderr.lock().write_all(text.as_bytes());
        }
    }
}

impl Drop for WaitProgress {
    fn drop(&mut self) {
        self.erase();
    }
}

/// The items behind the head, cut to the width of the terminal. One column stays
/// free: on some terminals a cursor behind the last column is in the next line.
fn fit(head: &str, items: impl Iterator<Item = String>, columns: usize) -> String {
    let room = columns.saturating_sub(1);
    let mut line = String::new();
    let mut used = 0;
    // Length at which the line has to be cut to make room for the ellipsis.
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

/// Columns that a character takes at most: a line that is cut too early does no
/// harm, a line that wraps cannot be erased.
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
