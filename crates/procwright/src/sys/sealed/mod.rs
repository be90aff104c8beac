//! Files in memory whose size nobody can change: Linux, `memfd_create(2)` with seals
//! (3.17).
//!
//! A file that is cut short under a mapping is a SIGBUS for who looks.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};

/// Nobody can change its size, nor what is sealed.
pub(crate) const SIZE: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// A new one, sparse, close-on-exec. Nothing is sealed yet.
pub(crate) fn create(name: &str, size: u64) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Not to be executed, where the kernel knows that (6.3).
    let file = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(name, flags))?;
    rustix::fs::ftruncate(&file, size)?;
    Ok(file)
}

/// Somebody's, and its size, which stays what it is.
pub(crate) struct Sealed {
    pub(crate) size: u64,
    pub(crate) is_read_only: bool,
}

impl Sealed {
    /// # Errors
    /// `InvalidData` if anybody could change its size.
    pub(crate) fn check(file: BorrowedFd<'_>) -> io::Result<Sealed> {
        Sealed::check_as(
            file,
            "it is no file in memory that can be sealed",
            "its size is not sealed",
        )
    }

    /// The same, in these words.
    pub(crate) fn check_as(
        file: BorrowedFd<'_>,
        no_file: &'static str,
        no_seal: &'static str,
    ) -> io::Result<Sealed> {
        let seals = rustix::fs::fcntl_get_seals(file).map_err(|_| wrong(no_file))?;
        // Asked before the size: from then on it stays what it is.
        if !seals.contains(SIZE) {
            return Err(wrong(no_seal));
        }
        Ok(Sealed {
            size: rustix::fs::fstat(file)?.st_size.cast_unsigned(),
            is_read_only: seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE),
        })
    }
}

/// What was handed over is not what it should be.
pub(crate) fn wrong(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
