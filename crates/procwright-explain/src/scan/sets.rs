//! Sets of descriptors and paths in the memory of a thread that sleeps, and the sets of
//! epoll. Memory is read by `/proc/PID/mem`, to which the rules of `syscall` apply.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};

use super::files;

/// Descriptors that are looked at of one set.
const MOST: u64 = 16_384;

/// Descriptors that may be read from, and descriptors that may be written to.
type Set = (Vec<i32>, Vec<i32>);

/// So many bytes at this address.
pub(super) fn memory<const N: usize>(dir: BorrowedFd<'_>, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    open_memory(dir)?.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

fn open_memory(dir: BorrowedFd<'_>) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let memory = rustix::fs::openat(dir, "mem", flags, Mode::empty()).ok()?;
    Some(memory.into())
}

/// The set of `poll`, an array of `struct pollfd`.
pub(super) fn poll(dir: BorrowedFd<'_>, at: u64, count: u64) -> Option<Set> {
    if count > MOST {
        return None;
    }
    let mut bytes = vec![0; count as usize * 8];
    if count > 0 {
        open_memory(dir)?.read_exact_at(&mut bytes, at).ok()?;
    }
    let (mut read, mut write) = (Vec::new(), Vec::new());
    for one in bytes.chunks_exact(8) {
        let fd = i32::from_ne_bytes(one[..4].try_into().ok()?);
        let events = i16::from_ne_bytes(one[4..6].try_into().ok()?);
        if fd < 0 {
            continue;
        }
        // Errors and the other side's end are told of unasked.
        if events & libc::POLLOUT != 0 {
            write.push(fd);
        }
        if events & libc::POLLOUT == 0 || events & libc::POLLIN != 0 {
            read.push(fd);
        }
    }
    Some((read, write))
}

/// The sets of `select`: bits, 64 in a word.
pub(super) fn select(dir: BorrowedFd<'_>, count: i32, pointers: [u64; 3]) -> Option<Set> {
    let bytes = usize::try_from(count).ok()?.div_ceil(64) * 8;
    if bytes as u64 > MOST {
        return None;
    }
    let memory = open_memory(dir)?;
    let members = |at: u64| -> Option<Vec<i32>> {
        if at == 0 {
            return Some(Vec::new());
        }
        let mut bits = vec![0u8; bytes];
        memory.read_exact_at(&mut bits, at).ok()?;
        let is_member = |fd: &i32| {
            let (word, bit) = (*fd as usize / 64, *fd as usize % 64);
            let word = u64::from_ne_bytes(bits[word * 8..][..8].try_into().unwrap_or_default());
            word & (1 << bit) != 0
        };
        Some((0..count).filter(is_member).collect())
    };
    let mut read = members(pointers[0])?;
    // Exceptional conditions come from whoever writes.
    read.extend(members(pointers[2])?);
    Some((read, members(pointers[1])?))
}

/// The set of an epoll descriptor, which `fdinfo` lists.
///
/// It names a member by the number that it had when it was added. `None` if another thing
/// has that number by now, or nothing: the member may live on under another.
pub(super) fn epoll(dir: BorrowedFd<'_>, fd: i32) -> Option<Set> {
    let mut buffer = vec![0; 64 * 1024];
    let text = files::read(dir, &format!("fdinfo/{fd}"), &mut buffer).ok()?;
    if text.len() == 64 * 1024 {
        return None;
    }
    let (mut read, mut write) = (Vec::new(), Vec::new());
    for line in String::from_utf8_lossy(text).lines() {
        let Some(rest) = line.strip_prefix("tfd:") else {
            continue;
        };
        let mut words = rest.split_whitespace();
        let fd: i32 = words.next()?.parse().ok()?;
        let mut events = words.clone().skip_while(|word| *word != "events:");
        let events = files::hex(events.nth(1)?.as_bytes())? as i16;
        let mut at =
            |name: &str| words.find_map(|word| files::hex(word.strip_prefix(name)?.as_bytes()));
        let then = (at("ino:")?, at("sdev:")?);
        if identity(dir, fd)? != then {
            return None;
        }
        if events & libc::POLLOUT != 0 {
            write.push(fd);
        }
        if events & libc::POLLOUT == 0 || events & libc::POLLIN != 0 {
            read.push(fd);
        }
    }
    Some((read, write))
}

/// Inode and device of what a descriptor refers to, the device as the kernel has it within.
fn identity(dir: BorrowedFd<'_>, fd: i32) -> Option<(u64, u64)> {
    let path = format!("fd/{fd}");
    let wanted = StatxFlags::INO;
    let stat = rustix::fs::statx(dir, path.as_str(), AtFlags::STATX_DONT_SYNC, wanted).ok()?;
    let device = u64::from(stat.stx_dev_major) << 20 | u64::from(stat.stx_dev_minor);
    Some((stat.stx_ino, device))
}

/// A `struct timespec` in the memory of a thread.
pub(super) fn timespec(dir: BorrowedFd<'_>, at: u64) -> Option<Duration> {
    let bytes = memory::<{ size_of::<libc::timespec>() }>(dir, at)?;
    let (seconds, nanoseconds) = bytes.split_at(size_of::<libc::time_t>());
    let seconds = libc::time_t::from_ne_bytes(seconds.try_into().ok()?);
    let nanoseconds = libc::c_long::from_ne_bytes(nanoseconds.try_into().ok()?);
    let nanoseconds = u32::try_from(nanoseconds).ok()?;
    let is_one = nanoseconds < 1_000_000_000;
    is_one.then_some(Duration::new(u64::try_from(seconds).ok()?, nanoseconds))
}

/// A path in the memory of a thread.
pub(super) fn path(dir: BorrowedFd<'_>, at: u64) -> Option<String> {
    // A page may end behind a short path.
    let bytes = memory::<256>(dir, at)
        .map(Vec::from)
        .or_else(|| memory::<64>(dir, at).map(Vec::from))
        .or_else(|| memory::<16>(dir, at).map(Vec::from))?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}
