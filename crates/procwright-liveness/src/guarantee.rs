//! What is known of a peer, and what a monitor can promise.

/// What is known of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The peer lives, or did a moment ago.
    Alive,
    /// The peer has given its token back. Its process may live on.
    Released,
    /// The process has ended, or runs another program than the one that held the
    /// token; for a [`ThreadToken`](super::ThreadToken), or the thread has ended.
    Died,
}

/// What a [`Monitor`](super::Monitor) can promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Guarantee {
    /// The thing whose end the monitor tells of.
    pub names: Names,
    /// The way in which the monitor learns of it.
    pub mechanism: Mechanism,
}

/// The thing whose end a [`Monitor`](super::Monitor) tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Names {
    /// The program that made the token: an exec ends it.
    Image,
    /// The process, whatever programs it runs.
    Process,
    /// The thread that made the token, which is the main one of its process: its
    /// end, an exec by any thread and the end of the process end it.
    Thread,
}

/// The way in which a [`Monitor`](super::Monitor) learns of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// The kernel marks a word of the peer when the peer ends, before the end can be
    /// seen in any other way.
    RobustWord,
    /// A thread of this process is told of the end and marks a word: some
    /// microseconds later than the kernel knows.
    Watcher,
}
