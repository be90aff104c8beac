//! `--progress`: a line on the terminal that says how far the run is.
//!
//! Output that goes to the same terminal passes through here: the line is erased
//! before it and put back behind a complete line, in one write.

mod usage;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use procwright::Moment;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::output::own::{self, Own};
use crate::colour::is_dumb;
use crate::figures::Size;
use crate::message::{self, Line};
use crate::progress::{columns, in_the_background};
use usage::Usage;

/// How often the line is put back behind output, in a second at most: to a
/// terminal that is flooded it would be most of what it gets.
const PUT_BACK: u32 = 10;

const ERASE: &str = "\r\x1b[K";

#[derive(Debug)]
pub(crate) struct Live {
    own: Own,
    expect: Option<Duration>,
    /// The lines of each stream.
    lines: [AtomicU64; 2],
    screen: Mutex<Screen>,
}

#[derive(Debug)]
struct Screen {
    started: Instant,
    /// What the line says; nothing before the first look, and after the end.
    items: Vec<Item>,
    is_drawn: bool,
    /// Whether the output on this terminal has ended its line.
    at_line_start: bool,
    /// The program, once we have looked at it.
    pid: Option<i32>,
    /// When the line may be put back again.
    pace: Pace,
    /// The latest look at the processor time.
    cpu: Option<(Instant, Duration)>,
}

impl Live {
    /// Whether stderr is a terminal that can erase a line.
    pub(crate) fn is_possible() -> bool {
        Own::look().is_terminal(1) && !is_dumb()
    }

    /// A line there, if that [is possible](Live::is_possible).
    pub(crate) fn on_terminal(own: Own, expect: Option<Duration>) -> Option<Arc<Live>> {
        if !Live::is_possible() {
            return None;
        }
        let now = Instant::now();
        let live = Arc::new(Live {
            own,
            expect,
            lines: Default::default(),
            screen: Mutex::new(Screen {
                started: now,
                items: Vec::new(),
                is_drawn: false,
                at_line_start: true,
                pid: None,
                pace: Pace::new(now),
                cpu: None,
            }),
        });
        message::make_way_for(&live);
        Some(live)
    }

    /// A run begins.
    pub(crate) fn begin(&self) {
        let mut screen = self.screen();
        screen.started = Instant::now();
        screen.cpu = None;
        self.lines
            .iter()
            .for_each(|lines| lines.store(0, Ordering::Relaxed));
    }

    /// The run is over: erases the line.
    pub(crate) fn end(&self) {
        // Whoever has it is in a write to a terminal that takes nothing.
        if let Some(mut screen) = self.try_screen() {
            screen.items.clear();
            if screen.is_drawn && takes_a_line() {
                let _ = own::write_all(1, ERASE.as_bytes());
                screen.is_drawn = false;
            }
        }
    }

    /// Counts the lines of a piece of a stream, 0 or 1.
    pub(crate) fn count(&self, index: usize, bytes: &[u8]) {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.lines[index].fetch_add(lines as u64, Ordering::Relaxed);
    }

    /// Passes output on.
    ///
    /// # Errors
    /// Those of the write.
    pub(crate) fn pass(&self, index: usize, bytes: &[u8]) -> io::Result<()> {
        // What goes elsewhere must not wait with the line in hand.
        if index == 0 && !self.own.is_shared() {
            return own::write_all(index, bytes);
        }
        let Some(last) = bytes.last() else {
            return Ok(());
        };
        let mut screen = self.screen();
        let mut text = Vec::with_capacity(bytes.len() + 256);
        if screen.is_drawn {
            text.extend_from_slice(ERASE.as_bytes());
        }
        text.extend_from_slice(bytes);
        screen.is_drawn = false;
        screen.at_line_start = *last == b'\n';
        if let Some(line) = screen.line_if_due() {
            text.extend_from_slice(line.as_bytes());
            screen.is_drawn = true;
        }
        own::write_all(index, &text)
    }

    /// Looks how far it is, and draws that. Never waits: deadlines would.
    pub(crate) fn tick(&self, moment: Moment<'_>) {
        let now = Instant::now();
        let usage = Usage::below(moment.pid);
        let Some(mut screen) = self.try_screen() else {
            return;
        };
        screen.pid = Some(moment.pid);
        screen.items = self.items(&mut screen, moment, usage, now);
        if screen.at_line_start && takes_a_line() && !in_the_background(screen.pid) {
            let line = screen.line();
            screen.is_drawn = own::write_all(1, line.as_bytes()).is_ok();
        }
    }

    /// What the line says, the most important first.
    fn items(
        &self,
        screen: &mut Screen,
        moment: Moment<'_>,
        usage: Option<Usage>,
        now: Instant,
    ) -> Vec<Item> {
        let elapsed = now.saturating_duration_since(screen.started);
        let mut items = vec![Item::new(brief(elapsed))];
        if moment.stopping {
            items.push(Item::new("stopping"));
        }
        if let Some(expect) = self.expect {
            items.push(Item::new(outlook(elapsed, expect)));
        }
        let mut blocked = Duration::ZERO;
        let flows = [("out", moment.stdout), ("err", moment.stderr)];
        for ((name, flow), lines) in flows.into_iter().zip(&self.lines) {
            let Some(flow) = flow else { continue };
            blocked = blocked.max(flow.blocked.unwrap_or_default());
            if flow.bytes > 0 || name == "out" {
                let lines = lines.load(Ordering::Relaxed);
                let mut item = Item::new(format!("{name} {}", Size(flow.bytes)));
                let s = if lines == 1 { "" } else { "s" };
                item.more = format!(" {lines} line{s}");
                items.push(item);
            }
        }
        if let Some(usage) = usage {
            items.push(Item::new(format!("mem {}", Size(usage.memory))));
            if let Some((then, cpu)) = screen.cpu.replace((now, usage.cpu)) {
                let used = usage.cpu.saturating_sub(cpu).as_secs_f64();
                let passed = now.saturating_duration_since(then).as_secs_f64();
                let part = used / passed.max(0.001) * 100.0;
                items.push(Item::new(format!("CPU {part:.0} %")));
            }
        }
        if blocked >= Duration::from_millis(100) {
            items.push(Item::new(format!("blocked {}", brief(blocked))));
        }
        items
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_screen(&self) -> Option<MutexGuard<'_, Screen>> {
        match self.screen.try_lock() {
            Ok(screen) => Some(screen),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Line for Live {
    fn without(&self, write: &mut dyn FnMut()) {
        self.screen().without(write);
    }

    fn try_without(&self, write: &mut dyn FnMut()) -> bool {
        let screen = self.try_screen();
        screen.map(|mut screen| screen.without(write)).is_some()
    }
}

impl Screen {
    /// Writes while the line is away.
    fn without(&mut self, write: &mut dyn FnMut()) {
        if self.is_drawn {
            let _ = own::write_all(1, ERASE.as_bytes());
            self.is_drawn = false;
        }
        write();
        // What is said ends its line.
        self.at_line_start = true;
        if let Some(line) = self.line_if_due() {
            self.is_drawn = own::write_all(1, line.as_bytes()).is_ok();
        }
    }

    fn line_if_due(&mut self) -> Option<String> {
        let is_due = self.at_line_start
            && !self.items.is_empty()
            && self.pace.may(Instant::now())
            && !in_the_background(self.pid);
        is_due.then(|| self.line())
    }

    fn line(&self) -> String {
        format!("\r{}\x1b[K", fitting(&self.items, columns()))
    }
}

/// A part of the line.
#[derive(Debug)]
struct Item {
    text: String,
    /// Left out of all of them unless the whole line has room.
    more: String,
}

impl Item {
    fn new(text: impl Into<String>) -> Item {
        let (text, more) = (text.into(), String::new());
        Item { text, more }
    }
}

/// As many items as there is room for. One column stays free: a cursor behind the
/// last one is in the next line to some terminals.
fn fitting(items: &[Item], columns: usize) -> String {
    let whole: Vec<String> = items
        .iter()
        .map(|item| format!("{}{}", item.text, item.more))
        .collect();
    let whole = whole.join(", ");
    // All of it is ASCII.
    if whole.len() < columns {
        return whole;
    }
    let mut line = String::new();
    for Item { text, .. } in items {
        let gap = if line.is_empty() { "" } else { ", " };
        if line.len() + gap.len() + text.len() >= columns {
            break;
        }
        line.extend([gap, text]);
    }
    line
}

/// How far it is, if it takes as long as is expected.
fn outlook(elapsed: Duration, expect: Duration) -> String {
    match expect.checked_sub(elapsed) {
        Some(left) if !left.is_zero() => {
            let part = elapsed.as_secs_f64() / expect.as_secs_f64() * 100.0;
            // Never all of it before it is over.
            // Rounded up, so that both times make what was expected.
            let left = Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0));
            format!("{:.0} %, {} left", part.min(99.0).floor(), brief(left))
        }
        _ => format!("over by {}", brief(elapsed.saturating_sub(expect))),
    }
}

/// A time in two units at most, written as the options take it.
fn brief(time: Duration) -> String {
    let secs = time.as_secs();
    match secs {
        0..60 => format!("{secs}s"),
        60..3600 => format!("{}m {}s", secs / 60, secs % 60),
        3600..86400 => format!("{}h {}m", secs / 3600, secs / 60 % 60),
        _ => format!("{}d {}h", secs / 86400, secs / 3600 % 24),
    }
}

/// Whether the terminal would take a line at once. A stopped one (Ctrl-S) would
/// not.
fn takes_a_line() -> bool {
    let stderr = io::stderr();
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
        && fds[0].revents().contains(PollFlags::OUT)
}

/// Lets something happen so often a second, and a few times at once.
#[derive(Debug)]
struct Pace {
    left: u32,
    since: Instant,
}

impl Pace {
    fn new(now: Instant) -> Pace {
        Pace {
            left: PUT_BACK,
            since: now,
        }
    }

    fn may(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= Duration::from_secs(1) {
            *self = Pace::new(now);
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut items = ["12s", "40 %, 18s left", "out 5 bytes"].map(Item::new);
        items[2].more = " 2 lines".into();
        assert_eq!(
            fitting(&items, 80),
            "12s, 40 %, 18s left, out 5 bytes 2 lines"
        );
        for columns in 0..80 {
            let line = fitting(&items, columns);
            assert!(line.len() < columns.max(1), "{columns}: {line:?}");
        }
        assert_eq!(fitting(&items, 33), "12s, 40 %, 18s left, out 5 bytes");
        assert_eq!(fitting(&items, 20), "12s, 40 %, 18s left");
        assert_eq!(fitting(&items, 19), "12s");
    }

    #[test]
    fn the_outlook_is_never_done_before_the_end() {
        let secs = Duration::from_secs;
        assert_eq!(outlook(secs(0), secs(10)), "0 %, 10s left");
        assert_eq!(outlook(secs(4), secs(10)), "40 %, 6s left");
        assert_eq!(
            outlook(Duration::from_millis(9999), secs(10)),
            "99 %, 1s left"
        );
        assert_eq!(outlook(secs(10), secs(10)), "over by 0s");
        assert_eq!(outlook(secs(95), secs(10)), "over by 1m 25s");
        assert_eq!(outlook(secs(95), secs(0)), "over by 1m 35s");
        assert_eq!(brief(secs(3661)), "1h 1m");
        assert_eq!(brief(secs(90000)), "1d 1h");
    }

    #[test]
    fn it_is_put_back_so_often_a_second() {
        let now = Instant::now();
        let mut pace = Pace::new(now);
        assert_eq!((0..50).filter(|_| pace.may(now)).count(), 10);
        assert!(pace.may(now + Duration::from_secs(1)));
    }
}
