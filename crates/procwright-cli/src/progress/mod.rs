//! A line on the terminal that says how far something is.
//!
//! Output that goes to the same terminal passes through here: the line is erased
//! before it and drawn again behind a complete line, in one write.

mod items;
mod rate_limit;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use procwright::StdStream;
use procwright_os::sync::Mutex;

use crate::message::{self, StatusLine};
use crate::stdio::{self, StandardStreams};
use crate::{poll, tty};
use items::fitting;
use rate_limit::RateLimit;

pub(crate) use items::{ProgressItem, brief, outlook};

/// Time from one drawing of the line to the next.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);

/// How often a second the line is drawn again behind output: without a limit it
/// would be most of what a flooded terminal gets.
const REDRAWS_PER_SECOND: u32 = 10;

/// The line at the bottom of the terminal that stderr is.
#[derive(Debug)]
pub(crate) struct ProgressLine {
    streams: StandardStreams,
    state: Mutex<LineState>,
}

#[derive(Debug)]
struct LineState {
    /// Text of the line; empty before the first update, and after the end.
    items: Vec<ProgressItem>,
    is_drawn: bool,
    /// True if the output on this terminal has ended its line.
    at_line_start: bool,
    /// A process that leads a group of its own, which may have the terminal.
    ally: Option<i32>,
    redraws: RateLimit,
}

impl ProgressLine {
    /// Returns whether the terminal can show a line.
    pub(crate) fn is_possible() -> bool {
        tty::can_redraw()
    }

    /// A line on the terminal, if that [is possible](ProgressLine::is_possible).
    pub(crate) fn on_terminal(streams: StandardStreams) -> Option<Arc<ProgressLine>> {
        if !ProgressLine::is_possible() {
            return None;
        }
        let line = Arc::new(ProgressLine {
            streams,
            state: Mutex::new(LineState {
                items: Vec::new(),
                is_drawn: false,
                at_line_start: true,
                ally: None,
                redraws: RateLimit::new(REDRAWS_PER_SECOND, Instant::now()),
            }),
        });
        message::set_status_line(&line);
        Some(line)
    }

    /// Shows these items, the most important first, from now on, and draws them. Never blocks,
    /// as the deadlines of whoever calls this would wait as well.
    pub(crate) fn update(&self, items: Vec<ProgressItem>, ally: Option<i32>) {
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        state.ally = ally;
        state.items = items;
        if state.at_line_start && poll::is_writable(io::stderr()) && !tty::in_background(ally) {
            state.draw();
        }
    }

    /// Erases the line until the next update.
    pub(crate) fn end(&self) {
        // A thread that has locked the state is in a write to a terminal that takes
        // nothing. The line then stays.
        if let Some(mut state) = self.state.try_lock() {
            state.items.clear();
            if state.is_drawn && poll::is_writable(io::stderr()) {
                let _ = stdio::write_all(StdStream::Stderr, tty::ERASE_LINE.as_bytes());
                state.is_drawn = false;
            }
        }
    }

    /// Writes output to a stream of this command.
    ///
    /// # Errors
    /// Those of the write.
    pub(crate) fn write_output(&self, stream: StdStream, bytes: &[u8]) -> io::Result<()> {
        // The lock is for output on the terminal of the line. Other output must not
        // wait for a thread that writes there.
        if stream == StdStream::Stdout && !self.streams.is_shared() {
            return stdio::write_all(stream, bytes);
        }
        let Some(last) = bytes.last() else {
            return Ok(());
        };
        let mut state = self.state.lock();
        let mut text = Vec::with_capacity(bytes.len() + 256);
        if state.is_drawn {
            text.extend_from_slice(tty::ERASE_LINE.as_bytes());
        }
        text.extend_from_slice(bytes);
        state.is_drawn = false;
        state.at_line_start = *last == b'\n';
        if let Some(line) = state.line_if_due() {
            text.extend_from_slice(line.as_bytes());
            state.is_drawn = true;
        }
        stdio::write_all(stream, &text)
    }
}

impl StatusLine for ProgressLine {
    fn with_line_erased(&self, write: &mut dyn FnMut()) {
        self.state.lock().with_line_erased(write);
    }

    fn try_with_line_erased(&self, write: &mut dyn FnMut()) -> bool {
        let state = self.state.try_lock();
        state
            .map(|mut state| state.with_line_erased(write))
            .is_some()
    }
}

impl LineState {
    fn with_line_erased(&mut self, write: &mut dyn FnMut()) {
        if self.is_drawn {
            let _ = stdio::write_all(StdStream::Stderr, tty::ERASE_LINE.as_bytes());
            self.is_drawn = false;
        }
        write();
        // Every message ends its line.
        self.at_line_start = true;
        if let Some(line) = self.line_if_due() {
            self.is_drawn = stdio::write_all(StdStream::Stderr, line.as_bytes()).is_ok();
        }
    }

    fn draw(&mut self) {
        let line = self.line();
        self.is_drawn = stdio::write_all(StdStream::Stderr, line.as_bytes()).is_ok();
    }

    /// Text that draws the line again behind output, if it may be drawn now.
    fn line_if_due(&mut self) -> Option<String> {
        let is_due = self.at_line_start
            && !self.items.is_empty()
            && self.redraws.permits(Instant::now())
            && !tty::in_background(self.ally);
        is_due.then(|| self.line())
    }

    fn line(&self) -> String {
        tty::drawn(&fitting(&self.items, tty::columns()))
    }
}
