//! Memory that processes share, and futex words in it.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::AtomicU32;

/// Numbers that this process and its forks share.
pub struct SharedNumbers(&'static [AtomicU32]);

impl SharedNumbers {
    /// Maps zeros. The memory is never given back: the process is a test's own.
    pub fn new(count: usize) -> SharedNumbers {
        unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                4 * count,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            SharedNumbers(std::slice::from_raw_parts(start.cast(), count))
        }
    }

    /// The number at this index.
    pub fn at(&self, index: usize) -> &AtomicU32 {
        &self.0[index]
    }
}

/// Whether the first thread of a process sleeps on a word of shared memory, and not on
/// a lock of its own.
pub fn sleeps_on_a_word(pid: i32) -> bool {
    let Ok(call) = std::fs::read_to_string(format!("/proc/{pid}/syscall")) else {
        return false;
    };
    let mut words = call.split(' ');
    let number = words.next().and_then(|number| number.parse().ok());
    let at = words
        .next()
        .and_then(|at| u64::from_str_radix(at.strip_prefix("0x")?, 16).ok());
    let (Some(libc::SYS_futex), Some(at)) = (number, at) else {
        return false;
    };
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().any(|line| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let [from, to] = match range {
            Some((from, to)) => [from, to].map(|end| u64::from_str_radix(end, 16).unwrap()),
            None => return false,
        };
        (from..to).contains(&at) && line.contains("/memfd:procwright-")
    })
}

/// Sleeps on a word of a memory file while it keeps its present value.
pub fn sleep_on_a_word(file: BorrowedFd<'_>, offset: usize) {
    unsafe {
        let memory = libc::mmap(
            std::ptr::null_mut(),
            offset + 4,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(memory, libc::MAP_FAILED);
        let word = memory.byte_add(offset).cast::<u32>();
        let null = std::ptr::null::<libc::timespec>();
        libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, *word, null);
    }
}
