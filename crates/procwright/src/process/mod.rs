//! Processes: how they ended, how they are stopped, who reaps them.

mod signal;
mod stop;
#[cfg(all(test, target_os = "linux"))]
mod stop_tests;
mod tree;

pub use signal::Signal;
pub use stop::{Scope, Stop, Survivor};
