//! `--progress`: a line on the terminal that says how far the run is.
//!
//! Output that goes to the same terminal passes through here: the line is erased
//! before it and drawn again behind a complete line, in one write.

mod items;
mod rate_limit;
mod usage;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use procwright::{Moment, StdStream};
use procwright_os::sync::Mutex;

use crate::human::HumanBytes;
use crate::message::{self, StatusLine};
use crate::stdio::{self, StandardStreams};
use crate::{poll, tty};
use items::{ProgressItem, brief, fitting, outlook};
use rate_limit::RateLimit;
use usage::TreeUsage;

/// How often a second the line is drawn again behind output: without a limit it
/// would be most of what a flooded terminal gets.
const REDRAWS_PER_SECOND: u32 = 10;

/// The line, for one run or for several in turn.
#[derive(Debug)]
pub(super) struct RunProgress {
    streams: StandardStreams,
    expected: Option<Duration>,
    /// Whether all processes below this one are the program's.
    knows_orphans: bool,
    /// Lines of each stream. The counts order nothing else.
    lines: [AtomicU64; 2],
    state: Mutex<ProgressState>,
}

#[derive(Debug)]
struct ProgressState {
    started: Instant,
    /// Text of the line; empty before the first update, and after the end.
    items: Vec<ProgressItem>,
    is_drawn: bool,
    /// True if the output on this terminal has ended its line.
    at_line_start: bool,
    /// The program, from the first update on.
    pid: Option<i32>,
    redraws: RateLimit,
    /// Processor time at the latest update.
    cpu: Option<(Instant, Duration)>,
}

impl RunProgress {
    /// Returns whether the terminal can show a line.
    pub(super) fn is_possible() -> bool {
        tty::can_redraw()
    }

    /// A line on the terminal, if that [is possible](RunProgress::is_possible).
    pub(super) fn on_terminal(
        streams: StandardStreams,
        expected: Option<Duration>,
        knows_orphans: bool,
    ) -> Option<Arc<RunProgress>> {
        if !RunProgress::is_possible() {
            return None;
        }
        let now = Instant::now();
        let progress = Arc::new(RunProgress {
            streams,
            expected,
            knows_orphans,
            lines: Default::default(),
            state: Mutex::new(ProgressState {
                started: now,
                items: Vec::new(),
                is_drawn: false,
                at_line_start: true,
                pid: None,
                redraws: RateLimit::new(REDRAWS_PER_SECOND, now),
                cpu: None,
            }),
        });
        message::set_status_line(&progress);
        Some(progress)
    }

    /// Begins a run.
    pub(super) fn begin(&self) {
        let mut state = self.state.lock();
        state.started = Instant::now();
        state.cpu = None;
        self.lines
            .iter()
            .for_each(|lines| lines.store(0, Ordering::Relaxed));
    }

    /// Ends a run: erases the line.
    pub(super) fn end(&self) {
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

    /// Counts the lines of a piece of a stream.
    pub(super) fn count_lines(&self, stream: StdStream, bytes: &[u8]) {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.lines[stdio::index(stream)].fetch_add(lines as u64, Ordering::Relaxed);
    }

    /// Writes output to a stream of this command.
    ///
    /// # Errors
    /// Those of the write.
    pub(super) fn write_output(&self, stream: StdStream, bytes: &[u8]) -> io::Result<()> {
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

    /// Draws the line with new figures. Never blocks, as the run's deadlines would
    /// wait as well.
    pub(super) fn update(&self, moment: Moment<'_>) {
        let now = Instant::now();
        let usage = TreeUsage::read(moment.pid, self.knows_orphans);
        let Some(mut state) = self.state.try_lock() else {
            return;
        };
        state.pid = Some(moment.pid);
        state.items = self.items(&mut state, moment, usage, now);
        if state.at_line_start && poll::is_writable(io::stderr()) && !tty::in_background(state.pid)
        {
            state.draw();
        }
    }

    /// Items of the line, the most important first.
    fn items(
        &self,
        state: &mut ProgressState,
        moment: Moment<'_>,
        usage: Option<TreeUsage>,
        now: Instant,
    ) -> Vec<ProgressItem> {
        let elapsed = now.saturating_duration_since(state.started);
        let mut items = vec![ProgressItem::new(brief(elapsed))];
        if moment.stopping {
            items.push(ProgressItem::new("stopping"));
        }
        if let Some(expected) = self.expected {
            items.push(ProgressItem::new(outlook(elapsed, expected)));
        }
        let mut blocked = Duration::ZERO;
        let flows = [moment.stdout, moment.stderr];
        for ((stream, flow), lines) in StdStream::BOTH.into_iter().zip(flows).zip(&self.lines) {
            let Some(flow) = flow else { continue };
            blocked = blocked.max(flow.blocked.unwrap_or_default());
            if flow.bytes > 0 || stream == StdStream::Stdout {
                let lines = lines.load(Ordering::Relaxed);
                let s = if lines == 1 { "" } else { "s" };
                items.push(ProgressItem::with_more(
                    format!("{} {}", stdio::short_name(stream), HumanBytes(flow.bytes)),
                    format!(" {lines} line{s}"),
                ));
            }
        }
        if let Some(usage) = usage {
            let memory = HumanBytes(usage.memory);
            items.push(ProgressItem::new(format!("mem {memory}")));
            if let Some((then, cpu)) = state.cpu.replace((now, usage.cpu)) {
                let used = usage.cpu.saturating_sub(cpu).as_secs_f64();
                let passed = now.saturating_duration_since(then).as_secs_f64();
                let part = used / passed.max(0.001) * 100.0;
                items.push(ProgressItem::new(format!("CPU {part:.0} %")));
            }
        }
        if blocked >= Duration::from_millis(100) {
            items.push(ProgressItem::new(format!("blocked {}", brief(blocked))));
        }
        items
    }
}

impl StatusLine for RunProgress {
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

impl ProgressState {
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
            && !tty::in_background(self.pid);
        is_due.then(|| self.line())
    }

    fn line(&self) -> String {
        tty::drawn(&fitting(&self.items, tty::columns()))
    }
}
