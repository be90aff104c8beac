//! Runs programs, talks to them and knows when they end or die: without
//! deadlocks, polling or lost output. When something hangs, it says who and
//! why.
//!
//! ```
//! use std::time::Duration;
//! use procwright::Command;
//!
//! let output = Command::new("sh")
//!     .args(["-c", "echo out; echo err >&2"])
//!     .timeout(Duration::from_secs(60))
//!     .run()?;
//! assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
//! # Ok::<(), procwright::Error>(())
//! ```
#![deny(unsafe_code)]
// Where programs cannot be started yet, what reads and stops them is unused.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

pub mod buffer;
mod child;
mod command;
mod drain;
pub mod error;
#[cfg(procwright_fault)]
mod fault;
mod looks;
pub mod map;
pub mod pipeline;
mod quote;
mod run;
pub mod spec;
mod spool;
mod std_stream;
pub mod stream;
mod taps;
pub mod terminal;
mod trace;

/// Processes: which one is meant, how they ended, how they are stopped, who
/// reaps them. The crate `procwright-process` has it alone.
pub mod process {
    pub use procwright_process::{
        Exit, Id, Process, ProcessError, Scope, Signal, Stop, Survivor, Unknown, adopt_orphans,
        has_children, job, named, orphans, reap_orphans,
    };
}

/// Waiting for one, many, any or all, without polling. The crate
/// `procwright-process` has it alone.
pub mod wait {
    pub use procwright_process::wait::{
        Awaits, Event, Key, Mechanism, Outcome, Pending, Stats, WaitSet, Waitable, Waited, Want,
        stats,
    };
}

/// Is the peer alive? One relaxed atomic load, no system call. The crate
/// `procwright-liveness` has it alone, and says what it promises.
pub mod liveness {
    pub use procwright_liveness::{
        Claim, Cleaner, Error, Guarantee, Invitation, Mechanism, Monitor, Names, PortableToken,
        State, ThreadToken, Token, Withdrawal,
    };
}

/// A channel between processes, in memory that they share: many senders, one
/// receiver. The crate `procwright-queue` has it alone, and says what it promises.
pub mod queue {
    pub use procwright_queue::{
        Asleep, Batch, Channel, Error, Invitation, LaneStat, LaneState, Opening, Options, Overflow,
        Receiver, ReceiverStat, ReceiverState, Reservation, Sender, Stat, View, Waker, names, stat,
    };
}

/// Why programs hang: who waits for whom, a deadlock proven, or whether it waits for input. The
/// crate `procwright-explain` has it alone, and says what it promises.
pub mod explain {
    pub use procwright_explain::{
        BETWEEN, Counts, Diagnosis, Finding, Link, Pattern, ProcessView, Verdict, WORTH_A_LOOK,
        WaitKind, WaitView, WaitedFor, Waiting, examine, examine_as_onlooker, examine_own,
        waiting_for,
    };
}

/// Time: a [`Timeout`](time::Timeout) at the interface, a [`Deadline`](time::Deadline) inside.
pub mod time {
    pub use procwright_os::time::{Deadline, Timeout};
}

pub use child::{
    CapturedOutput, Child, ChildSleep, ChildWait, Communication, OutputCapture, WaitError,
    duplicate_fd,
};
pub use command::{Command, Ongoing};
pub use drain::{Flow, Segment};
pub use error::BoxError;
pub use pipeline::Pipeline;
pub use procwright_os::oom::OomKills;
pub use procwright_process::holders::{Holder, Holders};
pub use procwright_process::wait::WaitSet;
pub use procwright_process::{Cancel, Process};
#[cfg(feature = "serde")]
pub use run::text_to_json;
pub use run::{
    Collected, Demand, Error, Event, Failure, Foreign, Moment, Output, ReachedLimit, Reason,
    Report, StreamInfo, Watch,
};
pub use spec::{Beyond, Limit, Sink, Spec, Stdin, Until};
pub use spool::memory;
pub use spool::{Budget, Memory, Overflow};
pub use std_stream::StdStream;
pub use taps::{Piece, Tap};

/// The Rust examples of the documents, which run as tests like all others.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../README.md")]
    mod crate_readme {}
    #[doc = include_str!("../../../docs/guide.md")]
    mod guide {}
    #[doc = include_str!("../../../docs/concepts/queues.md")]
    mod queues {}
    #[doc = include_str!("../../../docs/recipes/pipelines.md")]
    mod pipelines {}
}
