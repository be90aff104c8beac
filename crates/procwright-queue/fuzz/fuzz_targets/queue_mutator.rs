//! Any bytes that another thread writes to a lane meanwhile lead to no panic and no SIGBUS,
//! have an end, and harm no other lane.
//!
//! `cargo +nightly fuzz run queue_mutator fuzz/corpus/queue_mutator fuzz/seeds`
#![no_main]

#[path = "../driver.rs"]
mod driver;

libfuzzer_sys::fuzz_target!(|program: &[u8]| driver::run_with_mutator(program));
