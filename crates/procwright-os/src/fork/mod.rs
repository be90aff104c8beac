//! Statics and descriptors that a fork must not share with its parent.

mod close_on_fork;
mod once_bool;
mod once_box;
mod per_process;

pub use close_on_fork::{CloseOnFork, ForkId, generation, used_in_fork};
pub(crate) use once_bool::OnceBool;
pub use once_box::OnceBox;
pub use per_process::PerProcess;
