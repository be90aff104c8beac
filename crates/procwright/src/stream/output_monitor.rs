//! Figures of an output of a child, which need no reader.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::drain::{Excess, Gauge, LastWords, Tally};
use crate::spool::Overflow;
use crate::spool::elastic::{Figures, Monitor};
use procwright_os::pipe::FullProbe;
use procwright_os::wake::Wake;

/// The way of an output from the child to its reader.
#[derive(Debug)]
pub(crate) enum OutputPath {
    /// A queue that the pump fills.
    Queue(Monitor),
    /// A queue, together with the other output.
    Merged(Monitor, Arc<Tally>),
    /// The pipe alone.
    Pipe(Arc<PipeCounters>),
}

/// Counters that the reader of a bare pipe keeps. They are not in the reader, whose
/// pipe would stay open for as long as a monitor had it.
///
/// Relaxed accesses suffice: each counter is a fact by itself, for reports and for the
/// clock of a stall, and no other memory is read by it.
#[derive(Debug)]
pub(crate) struct PipeCounters {
    made: Instant,
    bytes: AtomicU64,
    /// The time at which a read last began, in nanoseconds since `made`.
    read_began: AtomicU64,
    /// 1 once the end was read.
    ended: AtomicU64,
}

impl Default for PipeCounters {
    fn default() -> PipeCounters {
        PipeCounters {
            made: Instant::now(),
            bytes: AtomicU64::new(0),
            read_began: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }
}

impl PipeCounters {
    /// Notes that a read begins, or comes back with bytes.
    pub(crate) fn touch(&self) {
        let since = u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.read_began.store(since, Ordering::Relaxed);
    }

    /// Notes that a read gave so many bytes, none at the end.
    pub(crate) fn add_read(&self, n: usize) {
        self.touch();
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        if n == 0 {
            self.ended.store(1, Ordering::Relaxed);
        }
    }
}

/// Figures and state of an output of a child.
#[derive(Debug)]
pub(crate) struct OutputMonitor {
    path: OutputPath,
    /// The probe of whichever reads the pipe, for as long as that goes on.
    probe: Weak<FullProbe>,
    is_terminal: bool,
    /// For how long the program could not write, where others than its queue hold it up too.
    gauge: Option<Gauge>,
    last_words: Option<Arc<LastWords>>,
    /// What came beyond the limit, and went nowhere.
    excess: Option<Excess>,
}

/// The bytes that went through an output so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputTotals {
    /// Bytes that were read from the pipe.
    pub(crate) bytes: u64,
    /// Bytes among them that will never be delivered.
    pub(crate) dropped: u64,
    /// Bytes among these that came beyond the limit.
    pub(crate) excess: u64,
    /// The time for which the reader left the pipe full, because its queue, or who gets copies,
    /// had no room;
    /// none for a terminal, which may be full at other times as well.
    pub(crate) refused: Option<Duration>,
    /// Whether its end was seen.
    pub(crate) complete: bool,
}

impl OutputPath {
    fn monitor(&self) -> Option<&Monitor> {
        match self {
            OutputPath::Queue(monitor) | OutputPath::Merged(monitor, _) => Some(monitor),
            OutputPath::Pipe(_) => None,
        }
    }
}

impl OutputMonitor {
    pub(crate) fn new(path: OutputPath, probe: Option<&Arc<FullProbe>>) -> OutputMonitor {
        OutputMonitor {
            path,
            probe: probe.map(Arc::downgrade).unwrap_or_default(),
            is_terminal: false,
            gauge: None,
            last_words: None,
            excess: None,
        }
    }

    /// Has this for what came last.
    pub(crate) fn with_last_words(self, words: Arc<LastWords>) -> OutputMonitor {
        OutputMonitor {
            last_words: Some(words),
            ..self
        }
    }

    /// Has this count what came beyond the limit.
    pub(crate) fn with_excess(self, excess: Excess) -> OutputMonitor {
        OutputMonitor {
            excess: Some(excess),
            ..self
        }
    }

    /// The limit that the stream has passed, if it has.
    pub(crate) fn passed_limit(&self) -> Option<u64> {
        self.excess.as_ref().and_then(Excess::passed)
    }

    /// The end of what came, read or not; none where that is not kept.
    pub(crate) fn last_words(&self) -> Option<Vec<u8>> {
        self.last_words.as_ref().map(|words| words.bytes())
    }

    /// Has this tell for how long the program could not write, in place of the queue.
    pub(crate) fn measured_by(self, gauge: Gauge) -> OutputMonitor {
        OutputMonitor {
            gauge: Some(gauge),
            ..self
        }
    }

    /// The monitor of a terminal.
    pub(crate) fn of_terminal(path: OutputPath) -> OutputMonitor {
        OutputMonitor {
            is_terminal: true,
            ..OutputMonitor::new(path, None)
        }
    }

    /// Has `wake` rung when the queue takes no more. A bare pipe never rings it.
    pub(super) fn ring_when_full(&self, wake: &Arc<Wake>) {
        if let Some(monitor) = self.path.monitor() {
            monitor.ring_when_full(wake);
        }
    }

    /// The time since which nothing is taken out of the pipe; none if reads go on, or
    /// could at any time.
    pub(super) fn held_since(&self) -> Option<Instant> {
        self.path.monitor()?.refused_since()
    }

    pub(super) fn is_bare(&self) -> bool {
        matches!(self.path, OutputPath::Pipe(_))
    }

    /// The time at which a read last began, if that is known.
    pub(super) fn last_read(&self) -> Option<Instant> {
        match &self.path {
            OutputPath::Queue(monitor) | OutputPath::Merged(monitor, _) => monitor.last_taken(),
            OutputPath::Pipe(counters) => {
                let since = counters.read_began.load(Ordering::Relaxed);
                counters.made.checked_add(Duration::from_nanos(since))
            }
        }
    }

    /// Whether a writer would have to wait. False where that cannot be known.
    pub(super) fn pipe_is_full(&self) -> bool {
        // `is_registered` is asked last: a pipe that has lost its writer looks full, too.
        self.probe
            .upgrade()
            .is_some_and(|probe| probe.is_full() && probe.is_registered())
    }

    /// Whether a full pipe could be told; not once its reader is gone.
    pub(super) fn can_tell(&self) -> bool {
        self.probe.strong_count() > 0
    }

    pub(super) fn overflow(&self) -> Option<Overflow> {
        self.path.monitor().map(Monitor::policy)
    }

    pub(super) fn figures(&self) -> Option<Figures> {
        self.path.monitor().map(Monitor::figures)
    }

    pub(crate) fn totals(&self) -> OutputTotals {
        let known = |refused| match &self.gauge {
            _ if self.is_terminal => None,
            Some(gauge) => gauge.blocked(),
            None => Some(refused),
        };
        // They have not come to the queue.
        let excess = self.excess.as_ref().map_or(0, Excess::bytes);
        match &self.path {
            OutputPath::Queue(monitor) => {
                let figures = monitor.figures();
                OutputTotals {
                    bytes: figures.bytes_in + excess,
                    dropped: figures.dropped_bytes + figures.lost_bytes + excess,
                    excess,
                    refused: known(figures.refused),
                    complete: monitor.is_whole(),
                }
            }
            OutputPath::Merged(monitor, tally) => {
                let figures = monitor.figures();
                OutputTotals {
                    bytes: tally.bytes() + excess,
                    dropped: tally.dropped() + excess,
                    excess,
                    refused: known(figures.refused),
                    // Lost bytes may have been of either output.
                    complete: tally.has_ended() && figures.lost_bytes == 0,
                }
            }
            OutputPath::Pipe(counters) => OutputTotals {
                bytes: counters.bytes.load(Ordering::Relaxed),
                complete: counters.ended.load(Ordering::Relaxed) > 0,
                // A bare pipe has no queue that could be full. How long the program was
                // blocked by its reader is told by `Reader::blocked`.
                refused: Some(Duration::ZERO),
                ..OutputTotals::default()
            },
        }
    }
}
