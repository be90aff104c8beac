//! Linux: `O_TMPFILE`, `fallocate`, and file systems by their magic numbers.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;
const PIPEFS: i64 = 0x5049_5045;

pub(super) fn unnamed(directory: &Path) -> io::Result<Option<OwnedFd>> {
    // O_EXCL: no name can be given to the file later (linkat).
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC;
    match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(Some(file)),
        // OPNOTSUPP: the file system has no such files. ISDIR and INVAL: the kernel or
        // the sandbox has none.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

pub fn reserve(file: impl AsFd, from: u64, length: u64) -> io::Result<()> {
    loop {
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), from, length) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

pub fn is_in_memory(directory: &Path) -> io::Result<bool> {
    let kind = rustix::fs::statfs(directory)?.f_type;
    #[allow(clippy::unnecessary_cast, reason = "its type is the platform's")]
    Ok([TMPFS, RAMFS].contains(&(kind as i64)))
}

pub fn is_anonymous_pipe(fd: impl AsFd) -> bool {
    #[allow(clippy::unnecessary_cast, reason = "its type is the platform's")]
    rustix::fs::fstatfs(fd).is_ok_and(|answer| answer.f_type as i64 == PIPEFS)
}
