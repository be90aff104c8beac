//! Statics and descriptors that a fork must not share with its parent.

mod close_on_fork;
mod fork_hold;
#[cfg(target_os = "linux")]
mod once_bool;
mod once_box;
mod per_process;
mod process_owned;

pub use close_on_fork::{CloseOnFork, ForkId, generation, hold, used_in_fork};
pub use fork_hold::ForkHold;
#[cfg(target_os = "linux")]
pub(crate) use once_bool::OnceBool;
pub use once_box::OnceBox;
pub use per_process::PerProcess;
pub use process_owned::ProcessOwned;
