//! Signals that only Linux has.

use std::ops::RangeInclusive;

/// Names of signals beside the portable ones.
pub const EXTRA: &[(&str, i32)] = &[
    ("SIGPWR", libc::SIGPWR),
    #[cfg(not(any(
        target_arch = "mips",
        target_arch = "mips64",
        target_arch = "sparc",
        target_arch = "sparc64"
    )))]
    ("SIGSTKFLT", libc::SIGSTKFLT),
];

/// The real-time signals that programs may use. The C library keeps the first few of
/// the kernel's for itself, so this is not a constant.
#[doc(alias = "SIGRTMIN")]
pub fn realtime() -> Option<RangeInclusive<i32>> {
    Some(libc::SIGRTMIN()..=libc::SIGRTMAX())
}
