//! Counters of the mechanisms by which waits ended.

use std::sync::atomic::{AtomicU64, Ordering};

/// The way in which a wait learns that something has come about.
///
/// From the best to the last resort; a [`WaitSet`](super::WaitSet) takes the
/// first that can be had, for each member anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mechanism {
    /// A pidfd of the process, in the caller's own poll or epoll.
    Pidfd,
    /// A descriptor of another kind, in the caller's own epoll.
    Descriptor,
    /// kqueue, by number. (macOS, BSD)
    Kqueue,
    /// A pidfd in the descriptor table of a thread that does not share it: where this
    /// process has no descriptor left.
    OwnTable,
    /// A thread that sleeps in `waitid(2)`: for own children where there are no pidfds
    /// (an old kernel, a seccomp filter).
    ChildThread,
    /// A look now and then, by one thread for all: the last resort, for other processes
    /// where there are no pidfds, and for a reap where the system does not tell of it
    /// (Linux before 6.9). The only mechanism that polls.
    Polling,
}

const ALL: [Mechanism; 6] = [
    Mechanism::Pidfd,
    Mechanism::Descriptor,
    Mechanism::Kqueue,
    Mechanism::OwnTable,
    Mechanism::ChildThread,
    Mechanism::Polling,
];

/// Waits ended by each mechanism. Counters guard no other memory, so all accesses are
/// relaxed.
static SERVED: [AtomicU64; ALL.len()] = [const { AtomicU64::new(0) }; ALL.len()];
/// Looks at processes of whose end nothing tells.
static LOOKS: AtomicU64 = AtomicU64::new(0);

impl Mechanism {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::Pidfd => "pidfd",
            Mechanism::Descriptor => "descriptor",
            Mechanism::Kqueue => "kqueue",
            Mechanism::OwnTable => "own_table",
            Mechanism::ChildThread => "child_thread",
            Mechanism::Polling => "polling",
        }
    }

    /// Counts a wait that this mechanism has ended.
    pub(crate) fn served(self) {
        SERVED[self as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts looks of the poller.
pub(super) fn count_looks(n: u64) {
    LOOKS.fetch_add(n, Ordering::Relaxed);
}

/// The mechanisms that this process has waited by so far.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The number of waits that each mechanism has ended.
    pub served: Vec<(Mechanism, u64)>,
    /// The number of looks at processes of whose end nothing tells: 0 unless
    /// [`Mechanism::Polling`] was needed.
    pub looks: u64,
}

impl Stats {
    /// The number of waits that this mechanism has ended.
    pub fn served_by(&self, mechanism: Mechanism) -> u64 {
        let mut all = self.served.iter();
        all.find(|(one, _)| *one == mechanism)
            .map_or(0, |(_, n)| *n)
    }
}

/// The mechanisms that this process has waited by since it was started, all threads together.
pub fn stats() -> Stats {
    let served = ALL.map(|one| (one, SERVED[one as usize].load(Ordering::Relaxed)));
    Stats {
        served: served.to_vec(),
        looks: LOOKS.load(Ordering::Relaxed),
    }
}
