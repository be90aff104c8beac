//! What a fork must not share with the process that it is of.

mod kept;
mod per_process;

pub(crate) use kept::{Kept, generation, not_ours};
pub(crate) use per_process::PerProcess;
