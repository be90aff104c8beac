//! Platforms without a vfork-style clone that we know how to use yet.
#![allow(missing_docs, reason = "documented where it is exported")]

use super::{FailedStep, Plan, Spawned};

pub fn spawn(_plan: &Plan) -> Result<Spawned, FailedStep> {
    Err(FailedStep::Clone(crate::unsupported("starting a program")))
}

pub fn resource_number(_name: &str) -> Option<u32> {
    None
}

pub fn system_niceness() -> i32 {
    0
}
