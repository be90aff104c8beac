//! Files in memory whose size is sealed: `memfd_create(2)` with seals (Linux 3.17).
//!
//! A file that is cut short under a mapping is a SIGBUS for the reader.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};

/// The seals that fix the size, and the seals themselves.
pub(crate) const SIZE_SEALS: SealFlags = SealFlags::SHRINK
    .union(SealFlags::GROW)
    .union(SealFlags::SEAL);

/// Makes a sparse file in memory, close-on-exec, without seals.
pub(crate) fn create(name: &str, size: u64) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // MFD_NOEXEC_SEAL, where the kernel knows it (6.3): the file is never executed.
    let file = rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(name, flags))?;
    rustix::fs::ftruncate(&file, size)?;
    Ok(file)
}

/// A file of another process whose size is sealed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedFile {
    pub(crate) size: u64,
    pub(crate) is_read_only: bool,
}

impl SealedFile {
    /// Checks the seals of a file that another process has sent.
    ///
    /// # Errors
    /// `InvalidData` if any process could change its size.
    pub(crate) fn check(file: BorrowedFd<'_>) -> io::Result<SealedFile> {
        SealedFile::check_as(
            file,
            "it is no file in memory that can be sealed",
            "its size is not sealed",
        )
    }

    /// Checks as [`check`](SealedFile::check) does, with the texts of the two errors.
    pub(crate) fn check_as(
        file: BorrowedFd<'_>,
        no_file: &'static str,
        no_seal: &'static str,
    ) -> io::Result<SealedFile> {
        let seals = rustix::fs::fcntl_get_seals(file).map_err(|_| invalid_data(no_file))?;
        // The seals are read before the size, which stays what it is from then on.
        if !seals.contains(SIZE_SEALS) {
            return Err(invalid_data(no_seal));
        }
        Ok(SealedFile {
            size: rustix::fs::fstat(file)?.st_size.cast_unsigned(),
            is_read_only: seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE),
        })
    }
}

/// The error of a file that is not what it should be.
pub(crate) fn invalid_data(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
