//! Signals that macOS and the BSDs have in common.

use std::ops::RangeInclusive;

/// Names beside the portable ones.
pub(crate) const EXTRA: &[(&str, i32)] = &[("SIGEMT", libc::SIGEMT), ("SIGINFO", libc::SIGINFO)];

/// None: macOS has no real-time signals, and no one uses those of the BSDs.
pub(crate) fn realtime() -> Option<RangeInclusive<i32>> {
    None
}
