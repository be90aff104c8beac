//! Reading files and folders of `/proc` without the heap.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, RawDir};
use rustix::io::Errno;

pub(super) fn open_dir(path: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(reaped_is_not_found)
}

fn open_file(path: &CStr) -> io::Result<OwnedFd> {
    rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(reaped_is_not_found)
}

pub(super) fn read_file<'b>(path: &CStr, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let fd = open_file(path)?;
    loop {
        // One read: the kernel makes these files whole at the first.
        match rustix::io::read(&fd, &mut *buffer) {
            Ok(len) => return Ok(&buffer[..len]),
            Err(Errno::INTR) => {}
            Err(e) => return Err(reaped_is_not_found(e)),
        }
    }
}

/// Turns "no such process" (ESRCH), of one that was reaped between the open and the
/// read, into "no such file", of one that was reaped before.
pub(super) fn reaped_is_not_found(error: Errno) -> io::Error {
    match error {
        Errno::SRCH => Errno::NOENT.into(),
        e => e.into(),
    }
}

/// Calls `each` for every entry whose name is a number until it returns false.
pub(super) fn each_number(
    dir: BorrowedFd<'_>,
    each: &mut dyn FnMut(i32, &CStr) -> io::Result<bool>,
) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(reaped_is_not_found)?;
        let name = entry.file_name();
        let Some(n) = number(name.to_bytes()) else {
            continue;
        };
        if !each(n, name)? {
            break;
        }
    }
    Ok(())
}

pub(super) fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A path on the stack.
pub(super) struct ProcPath {
    bytes: [u8; 64],
    len: usize,
}

impl ProcPath {
    pub(super) fn new(path: std::fmt::Arguments<'_>) -> ProcPath {
        let mut buffer = ProcPath {
            bytes: [0; 64],
            len: 0,
        };
        // Cannot fail: the longest, with two pids of ten digits, has 41 bytes.
        let written = buffer.write_fmt(path);
        debug_assert!(written.is_ok());
        buffer
    }

    pub(super) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl std::fmt::Write for ProcPath {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        let end = self.len + s.len();
        // The last byte stays 0.
        if end >= self.bytes.len() {
            return Err(std::fmt::Error);
        }
        self.bytes[self.len..end].copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}
