//! Whatever lies in a lane: no panic, no SIGBUS, an end, and other lanes unharmed.
//!
//! `cargo +nightly fuzz run queue fuzz/corpus/queue fuzz/seeds`
#![no_main]

#[path = "../driver.rs"]
mod driver;

libfuzzer_sys::fuzz_target!(|program: &[u8]| driver::run(program));
