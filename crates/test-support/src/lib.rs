#![doc = include_str!("../README.md")]

mod alone;
mod background;
mod census;
mod conformance;
pub mod family;
mod figures;
pub mod forked;
mod inherited;
mod proc;
mod random;
pub mod schema;
#[cfg(target_arch = "x86_64")]
pub mod steps;
pub mod sys;
mod watchdog;

pub use alone::*;
pub use background::*;
pub use census::*;
pub use conformance::*;
pub use figures::*;
pub use proc::*;
pub use random::*;
pub use watchdog::*;

use std::ffi::OsString;
use std::sync::{Arc, Mutex};

/// A value that callbacks fill and the test reads.
pub type Shared<T> = Arc<Mutex<T>>;

/// Makes a [`Shared`] value.
pub fn shared<T>(value: T) -> Shared<T> {
    Arc::new(Mutex::new(value))
}

/// An `OsString` of this text.
pub fn os(text: &str) -> OsString {
    text.into()
}
