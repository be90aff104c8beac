//! `RWF_NOWAIT`, which pipes know since Linux 6.4.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, ReadWriteFlags};

pub(super) fn without_wait(fd: BorrowedFd<'_>, bytes: &[u8]) -> Option<io::Result<usize>> {
    // The file's own position, as with write(2).
    let here = u64::MAX;
    match rustix::io::pwritev2(fd, &[IoSlice::new(bytes)], here, ReadWriteFlags::NOWAIT) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => None,
        written => Some(written.map_err(io::Error::from)),
    }
}
