//! Processes: how they ended, how they are stopped, who reaps them.

mod signal;
mod stop;
mod tree;

pub use signal::Signal;
pub use stop::{Scope, Stop, Survivor};
