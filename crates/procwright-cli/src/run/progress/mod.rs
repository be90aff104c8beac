//! `--progress`: a line on the terminal that says how far the run is.

mod usage;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use procwright::{Moment, StdStream};
use procwright_os::sync::Mutex;

use crate::human::HumanBytes;
use crate::progress::{ProgressItem, ProgressLine, brief, outlook};
use crate::stdio::{self, StandardStreams};
use usage::TreeUsage;

/// The line, for one run or for several in turn.
#[derive(Debug)]
pub(super) struct RunProgress {
    line: Arc<ProgressLine>,
    expected: Option<Duration>,
    /// Whether all processes below this one are the program's.
    knows_orphans: bool,
    /// Lines of each stream. The counts order nothing else.
    lines: [AtomicU64; 2],
    clock: Mutex<RunClock>,
}

#[derive(Debug)]
struct RunClock {
    started: Instant,
    /// Processor time at the latest update.
    cpu: Option<(Instant, Duration)>,
}

impl RunClock {
    fn new() -> RunClock {
        RunClock {
            started: Instant::now(),
            cpu: None,
        }
    }
}

impl RunProgress {
    /// A line on the terminal, if that [is possible](ProgressLine::is_possible).
    pub(super) fn on_terminal(
        streams: StandardStreams,
        expected: Option<Duration>,
        knows_orphans: bool,
    ) -> Option<Arc<RunProgress>> {
        let line = ProgressLine::on_terminal(streams)?;
        Some(Arc::new(RunProgress {
            line,
            expected,
            knows_orphans,
            lines: Default::default(),
            clock: Mutex::new(RunClock::new()),
        }))
    }

    /// Begins a run.
    pub(super) fn begin(&self) {
        *self.clock.lock() = RunClock::new();
        self.lines
            .iter()
            .for_each(|lines| lines.store(0, Ordering::Relaxed));
    }

    /// Ends a run: erases the line.
    pub(super) fn end(&self) {
        self.line.end();
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
        self.line.write_output(stream, bytes)
    }

    /// Draws the line with new figures. Never blocks, as the run's deadlines would
    /// wait as well.
    pub(super) fn update(&self, moment: Moment<'_>) {
        let usage = TreeUsage::read(moment.pid, self.knows_orphans);
        let items = self.items(moment, usage, Instant::now());
        self.line.update(items, Some(moment.pid));
    }

    /// Items of the line, the most important first.
    fn items(
        &self,
        moment: Moment<'_>,
        usage: Option<TreeUsage>,
        now: Instant,
    ) -> Vec<ProgressItem> {
        // Nobody else has it while the run goes on.
        let mut clock = self.clock.lock();
        let elapsed = now.saturating_duration_since(clock.started);
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
            if let Some((then, cpu)) = clock.cpu.replace((now, usage.cpu)) {
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
