//! What the streams of a function between two programs have together.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use procwright_os::handle::Closed;
use rustix::io::Errno;

/// What is known of a function between two programs. The flags order no other memory: what they
/// tell of happens by system calls.
#[derive(Debug, Default)]
pub(crate) struct FunctionFlags {
    is_stopping: AtomicBool,
    has_no_reader: AtomicBool,
}

impl FunctionFlags {
    /// Notes that all programs are being stopped, before the first signal: an end of the input
    /// that comes of it is no end.
    pub(crate) fn note_stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Notes that a write has found nobody who reads.
    pub(crate) fn note_no_reader(&self) {
        self.has_no_reader.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_no_reader(&self) -> bool {
        self.has_no_reader.load(Ordering::Relaxed)
    }
}

/// The error of a call on a closed stream, which is a function's if it has flags: one that was cut
/// by a stop says so.
pub(super) fn closed_error(flags: Option<&FunctionFlags>) -> io::Error {
    match flags.is_some_and(FunctionFlags::is_stopping) {
        true => Errno::CANCELED.into(),
        false => io::Error::other(Closed),
    }
}
