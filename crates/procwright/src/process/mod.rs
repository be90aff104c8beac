//! Processes: which one is meant, how they ended, how they are stopped, who
//! reaps them.

mod any;
mod exit;
mod id;
pub mod job;
mod named;
mod orphans;
mod policy;
pub(crate) mod reaper;
mod signal;
mod stop;
#[cfg(all(test, target_os = "linux"))]
mod stop_tests;
mod tree;

pub(crate) use any::Beside;
pub use any::{Process, ProcessError};
pub use exit::{Exit, Unknown};
pub use id::Id;
pub use named::named;
pub use orphans::{adopt_orphans, orphans, reap_orphans};
pub use policy::{Scope, Stop, Survivor};
pub use signal::Signal;
pub(crate) use stop::Stopping;
pub(crate) use tree::{Target, Tree};
