//! Platforms without a vfork-style clone that we know how to use yet.

use super::{Failed, Plan, Spawned};

pub(crate) fn spawn(_plan: &Plan) -> Result<Spawned, Failed> {
    Err(Failed::Clone(crate::sys::unsupported("starting a program")))
}

pub(crate) fn resource_number(_name: &str) -> Option<u32> {
    None
}

pub(crate) fn system_niceness() -> i32 {
    0
}
