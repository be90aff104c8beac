//! Signals that macOS and the BSDs have in common.

use std::ops::RangeInclusive;

/// Names of signals beside the portable ones.
pub const EXTRA: &[(&str, i32)] = &[("SIGEMT", libc::SIGEMT), ("SIGINFO", libc::SIGINFO)];

/// Empty: macOS has no real-time signals, and those of the BSDs are not used.
pub fn realtime() -> Option<RangeInclusive<i32>> {
    None
}
