//! What a fork must not share with the process that it is of.

mod kept;
mod once;
mod per_process;

pub(crate) use kept::{Kept, Ourselves, generation, not_ours};
pub(crate) use once::Once;
pub(crate) use per_process::PerProcess;
