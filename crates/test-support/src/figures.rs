//! Sizes of a run (`STRESS=1`), what a test prints, and tests that are left out.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::sys;

/// Whether the full numbers are asked for, by `STRESS=1`.
pub fn stress() -> bool {
    std::env::var_os("STRESS").is_some_and(|value| value == "1")
}

/// One number for a usual run, another for `STRESS=1`.
pub fn scaled(usual: u64, full: u64) -> u64 {
    if stress() { full } else { usual }
}

/// Prints a line that libtest does not capture.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Leaves a test out in plain sight; under `REQUIRE_ALL=1` it fails instead.
pub fn skip(test: &str, why: &str) {
    assert!(
        std::env::var_os("REQUIRE_ALL").is_none_or(|value| value != "1"),
        "{test} must not be skipped: {why}"
    );
    say(&format!("SKIPPED {test}: {why}"));
}

/// Whether this is root; otherwise the test is left out in plain sight.
pub fn root_or_skip(test: &str) -> bool {
    let root = sys::effective_uid() == 0;
    if !root {
        skip(test, "needs root");
    }
    root
}

/// Prints a measurement for the reader of the test's output.
pub fn figure(text: &str) {
    say(&format!("FIGURE {text}"));
}

/// Runs `work`, and measures a lower bound of its duration.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let result = work();
    (result, begun.elapsed())
}
