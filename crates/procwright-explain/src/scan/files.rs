//! Small files and folders of `/proc`.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;

/// True if an error means that the process or thread has ended.
pub(super) fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::SRCH].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|error| gone.contains(&error))
}

/// Opens a folder to name files in, or to list.
pub(super) fn open_dir(at: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
}

/// Opens a file to read.
pub(super) fn open_file(at: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
}

/// Reads a file into `buffer`, and returns what it holds, cut where the buffer ends.
pub(super) fn read<'b>(at: impl AsFd, name: &str, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let file = open_file(at, name)?;
    loop {
        // One read: the kernel makes these files whole at the first.
        match rustix::io::read(&file, &mut *buffer) {
            Ok(length) => return Ok(&buffer[..length]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Calls `each` for every entry whose name is a number.
pub(super) fn numbers(dir: impl AsFd, each: &mut dyn FnMut(i32)) -> io::Result<()> {
    rustix::fs::seek(&dir, rustix::fs::SeekFrom::Start(0))?;
    names(dir, &mut |name| {
        if let Some(number) = number(name.to_bytes()) {
            each(number);
        }
        Ok(())
    })
}

/// Calls `each` for the name of every entry of a folder that was just opened, until it fails.
///
/// An answer with room for more is no end of the list: where a signal is about to come the kernel
/// stops behind the first entry (`filldir64`). The end is the answer that has nothing.
pub(super) fn names(
    dir: impl AsFd,
    each: &mut dyn FnMut(&CStr) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 8192];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        each(entry?.file_name())?;
    }
    Ok(())
}

/// A decimal number.
pub(super) fn number<T: std::str::FromStr>(digits: &[u8]) -> Option<T> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A hexadecimal number, with or without `0x` before it.
pub(super) fn hex(digits: &[u8]) -> Option<u64> {
    let digits = digits.strip_prefix(b"0x").unwrap_or(digits);
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The value of the line that begins with `name`, trimmed.
pub(super) fn field<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name.as_bytes()))?;
    Some(value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use test_support::sys::{Pester, count_signal, counted};

    #[test]
    fn a_list_is_whole_however_many_signals_come() {
        const SIGUSR2: i32 = 12;
        let files: Vec<_> = (0..200).map(|_| open_dir(CWD, "/").unwrap()).collect();
        count_signal(SIGUSR2);
        let _pester = Pester::this_thread(SIGUSR2, 50);
        for _ in 0..500 {
            let mut count = 0;
            let listed = open_dir(CWD, "/proc/self/fd");
            numbers(listed.unwrap(), &mut |_| count += 1).unwrap();
            assert!(count >= files.len(), "{count}");
        }
        assert!(counted() > 0);
    }
}
