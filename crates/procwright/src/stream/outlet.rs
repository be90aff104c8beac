//! What is known of an output of a child, whoever reads it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::drain::Tally;
use crate::spool::Overflow;
use crate::spool::elastic::{Figures, Monitor};
use crate::sys::pipe::FullProbe;
use crate::sys::wake::Wake;

/// Where the bytes are between the child and its reader.
#[derive(Debug)]
pub(crate) enum Origin {
    /// In a queue that the pump fills.
    Queue(Monitor),
    /// In a queue, together with the other output.
    Merged(Monitor, Arc<Tally>),
    /// In the pipe alone.
    Pipe(Arc<Account>),
}

/// What the reader of a bare pipe notes for others. Not the reader itself, which
/// would stay open for as long as somebody has it.
#[derive(Debug)]
pub(crate) struct Account {
    made: Instant,
    bytes: AtomicU64,
    /// When a read last began, in nanoseconds since then.
    read: AtomicU64,
    ended: AtomicU64,
}

impl Default for Account {
    fn default() -> Account {
        Account {
            made: Instant::now(),
            bytes: AtomicU64::new(0),
            read: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }
}

impl Account {
    /// A read begins, or comes back with bytes.
    pub(crate) fn touch(&self) {
        let since = u64::try_from(self.made.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.read.store(since, Ordering::Relaxed);
    }

    /// It gave so many bytes, none at the end.
    pub(crate) fn read(&self, n: usize) {
        self.touch();
        self.bytes.fetch_add(n as u64, Ordering::Relaxed);
        if n == 0 {
            self.ended.store(1, Ordering::Relaxed);
        }
    }
}

/// An output of a child.
#[derive(Debug)]
pub(crate) struct Outlet {
    origin: Origin,
    /// Kept by who reads the pipe, for as long as that goes on.
    probe: Weak<FullProbe>,
    is_terminal: bool,
}

/// What went through it so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Passed {
    /// Bytes that were read from the pipe.
    pub(crate) bytes: u64,
    /// Those of them that will never be delivered.
    pub(crate) dropped: u64,
    /// For how long the pipe was left alone; none of a terminal, which may have
    /// been full without that.
    pub(crate) refused: Option<Duration>,
    /// Whether its end was seen.
    pub(crate) complete: bool,
}

impl Origin {
    fn monitor(&self) -> Option<&Monitor> {
        match self {
            Origin::Queue(monitor) | Origin::Merged(monitor, _) => Some(monitor),
            Origin::Pipe(_) => None,
        }
    }
}

impl Outlet {
    pub(crate) fn new(origin: Origin, probe: Option<&Arc<FullProbe>>) -> Outlet {
        Outlet {
            origin,
            probe: probe.map(Arc::downgrade).unwrap_or_default(),
            is_terminal: false,
        }
    }

    /// That of a terminal.
    pub(crate) fn of_terminal(origin: Origin) -> Outlet {
        Outlet {
            is_terminal: true,
            ..Outlet::new(origin, None)
        }
    }

    /// Has `wake` rung when the queue takes no more, if there is one.
    pub(super) fn ring_when_full(&self, wake: &Arc<Wake>) {
        if let Some(monitor) = self.origin.monitor() {
            monitor.ring_when_full(wake);
        }
    }

    /// Since when nothing more is taken out of the pipe; none if that goes on,
    /// or could go on at any time.
    pub(super) fn held_since(&self) -> Option<Instant> {
        self.origin.monitor()?.refused_since()
    }

    pub(super) fn is_bare(&self) -> bool {
        matches!(self.origin, Origin::Pipe(_))
    }

    /// When somebody last began to read, if that is known.
    pub(super) fn last_read(&self) -> Option<Instant> {
        match &self.origin {
            Origin::Queue(monitor) | Origin::Merged(monitor, _) => monitor.last_taken(),
            Origin::Pipe(account) => {
                let since = account.read.load(Ordering::Relaxed);
                account.made.checked_add(Duration::from_nanos(since))
            }
        }
    }

    /// Whether a writer would have to wait. No where that cannot be known.
    pub(super) fn pipe_is_full(&self) -> bool {
        // Asked in this order: without a writer the probe says "full" too.
        self.probe
            .upgrade()
            .is_some_and(|probe| probe.is_full() && probe.has_writer())
    }

    /// Whether there is a way to know; not once nobody reads it any more.
    pub(super) fn can_tell(&self) -> bool {
        self.probe.strong_count() > 0
    }

    pub(super) fn overflow(&self) -> Option<Overflow> {
        self.origin.monitor().map(Monitor::policy)
    }

    pub(super) fn figures(&self) -> Option<Figures> {
        self.origin.monitor().map(Monitor::figures)
    }

    pub(crate) fn passed(&self) -> Passed {
        let known = |refused| (!self.is_terminal).then_some(refused);
        match &self.origin {
            Origin::Queue(monitor) => {
                let figures = monitor.figures();
                Passed {
                    bytes: figures.bytes_in,
                    dropped: figures.dropped_bytes + figures.lost_bytes,
                    refused: known(figures.refused),
                    complete: monitor.is_whole(),
                }
            }
            Origin::Merged(monitor, tally) => {
                let figures = monitor.figures();
                Passed {
                    bytes: tally.bytes(),
                    dropped: tally.dropped(),
                    refused: known(figures.refused),
                    // Nobody knows whose the lost ones were.
                    complete: tally.has_ended() && figures.lost_bytes == 0,
                }
            }
            Origin::Pipe(account) => Passed {
                bytes: account.bytes.load(Ordering::Relaxed),
                complete: account.ended.load(Ordering::Relaxed) > 0,
                refused: Some(Duration::ZERO),
                ..Passed::default()
            },
        }
    }
}
