//! What is known of a peer, and what a monitor can promise.

/// What is known of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It lives, or did a moment ago.
    Alive,
    /// It has given its token back. The process may live on.
    Released,
    /// The process has ended, or runs another program than the one that held the
    /// token; for a [`ThreadToken`](super::ThreadToken), or the thread has ended.
    Died,
}

/// What a [`Monitor`](super::Monitor) can promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantee {
    /// Whose end it tells of.
    pub names: Names,
    /// How it knows.
    pub mechanism: Mechanism,
}

/// Whose end a [`Monitor`](super::Monitor) tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Names {
    /// That of the program that made the token: an exec ends it.
    Image,
    /// That of the process, whatever programs it runs.
    Process,
    /// That of the thread that made the token, which is the main one of its
    /// process: that thread's end, an exec by any thread and the end of the
    /// process end it.
    Thread,
}

/// How a [`Monitor`](super::Monitor) knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// The kernel marks a word of the peer's when it ends, before the end can be
    /// seen in any other way.
    RobustWord,
    /// A thread of this process is told of the end and marks a word: some
    /// microseconds later than the kernel knows.
    Watcher,
}
