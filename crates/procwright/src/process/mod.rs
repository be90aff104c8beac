//! Processes: how they ended, how they are stopped, who reaps them.

mod exit;
pub(crate) mod reaper;
mod signal;
mod stop;
mod tree;

pub use exit::{Exit, Unknown};
pub use signal::Signal;
pub(crate) use stop::Stopping;
pub use stop::{Scope, Stop, Survivor};
pub(crate) use tree::{Target, Tree};
