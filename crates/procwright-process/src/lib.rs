//! Processes: which one is meant, how they ended, how they are stopped, who
//! reaps them.
#![deny(unsafe_code)]

mod cancel;
mod chase;
mod exit;
pub mod holders;
mod id;
pub mod job;
pub mod joined_groups;
#[cfg(feature = "serde")]
mod json;
pub mod leader;
mod named;
mod orphans;
pub mod proc_id;
mod process;
mod process_error;
pub mod process_handle;
pub mod reaper;
mod signal;
mod stop;
mod stop_policy;
mod tree;
pub mod wait;

pub use cancel::Cancel;
pub use exit::{Exit, Unknown};
pub use id::Id;
pub use named::named;
pub use orphans::{adopt_orphans, has_children, orphans, reap_orphans};
pub use process::Process;
pub use process::WatchedBeside;
pub use process_error::ProcessError;
pub use procwright_os::{Invalid, time};
pub use signal::Signal;
pub use stop::Stopping;
pub use stop_policy::{Scope, Stop, Survivor};
pub use tree::{Orphans, ProcessTree, StopTarget};

/// The example of the README, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
