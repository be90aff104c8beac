//! Any bytes in a lane lead to no panic and no SIGBUS, have an end, and harm no other lane.
//!
//! `cargo +nightly fuzz run queue fuzz/corpus/queue fuzz/seeds`
#![no_main]

#[path = "../driver.rs"]
mod driver;

libfuzzer_sys::fuzz_target!(|program: &[u8]| driver::run(program));
