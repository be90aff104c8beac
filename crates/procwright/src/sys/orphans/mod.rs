//! Becoming the parent of orphans, and reaping them.
//!
//! Contract: [`adopt`] makes this process the parent of every descendant whose
//! own parent ends. [`reap_ended`] takes the status of every child that has
//! ended, but of the one named, and never waits. [`children`] are all that there
//! are, zombies too, as far as the system tells.

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;

pub(crate) use imp::{adopt, children, reap_ended};
