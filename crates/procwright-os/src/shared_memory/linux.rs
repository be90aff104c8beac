//! Linux: sealed files in memory (3.17), locks of open file descriptions (3.15),
//! `futex_waitv(2)` (5.16).
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use rustix::net::{RecvFlags, SendFlags};
use rustix::process::{Resource, getrlimit};
use rustix::thread::futex::{self, Flags, WaitvFlags};
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::RegionWord;
use crate::fork::ForkId;
use crate::futex::{monotonic, waiter};
use crate::memfd::{self, SealedFile, invalid_data};
use crate::time::Deadline;
use crate::unsupported;

/// `HUGETLBFS_MAGIC`, which not every C library's headers have.
const HUGE_PAGES: u32 = 0x9584_58f6;

/// `TMPFS_MAGIC`.
const FILES_IN_MEMORY: u32 = 0x0102_1994;

pub fn create(size: u64) -> io::Result<OwnedFd> {
    // RLIMIT_FSIZE: the kernel would send SIGXFSZ, which ends a host that does not
    // expect it.
    if getrlimit(Resource::Fsize)
        .current
        .is_some_and(|most| most < size)
    {
        return Err(Errno::FBIG.into());
    }
    let file = memfd::create("procwright-queue", size)?;
    rustix::fs::fcntl_add_seals(&file, memfd::SIZE_SEALS)?;
    Ok(file)
}

pub fn sealed_size(file: BorrowedFd<'_>) -> io::Result<u64> {
    let sealed = SealedFile::check(file)?;
    if sealed.is_read_only {
        return Err(invalid_data("it cannot be written to"));
    }
    // A file of huge pages is mapped without having any: a SIGBUS for the reader when the
    // system has none left. And it can be unmapped in whole ones only.
    if rustix::fs::fstatfs(file)?.f_type as u32 == HUGE_PAGES {
        return Err(invalid_data("it has huge pages"));
    }
    Ok(sealed.size)
}

pub fn reopen(file: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
        Ok(own) => Ok(own),
        Err(Errno::NOENT) => Err(unsupported("opening a file anew, which needs /proc,")),
        Err(other) => Err(other.into()),
    }
}

pub fn open_of_process(pid: u32, number: u32) -> io::Result<Option<OwnedFd>> {
    use rustix::fs::{FileType, Mode, fstat, fstatfs, open};
    // O_PATH, which only looks up: to open another's device can set something going.
    let path = format!("/proc/{pid}/fd/{number}");
    // The link comes first: the number may be another process's by now, and to ask about
    // its file waits for whatever server that one is on.
    match rustix::fs::readlink(&path, Vec::new()) {
        Err(Errno::NOENT | Errno::SRCH) => return Ok(None),
        called => {
            if !called?.to_bytes().starts_with(b"/memfd:") {
                return Ok(None);
            }
        }
    }
    let found = match open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT | Errno::SRCH) => return Ok(None),
        found => found?,
    };
    let is_file = FileType::from_raw_mode(fstat(&found)?.st_mode) == FileType::RegularFile;
    if !is_file || fstatfs(&found)?.f_type as u32 != FILES_IN_MEMORY {
        return Ok(None);
    }
    reopen(found.as_fd()).map(Some)
}

pub fn append(file: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    use rustix::io::{ReadWriteFlags, pwritev2};
    loop {
        let what = [io::IoSlice::new(bytes)];
        match pwritev2(file, &what, 0, ReadWriteFlags::APPEND) {
            Ok(count) if count == bytes.len() => return Ok(()),
            Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
            Err(Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

pub fn lock(file: BorrowedFd<'_>, byte: u64) -> io::Result<bool> {
    match set_lock(file, byte, libc::F_WRLCK) {
        Ok(()) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Ok(false),
            _ => Err(error),
        },
    }
}

pub fn unlock(file: BorrowedFd<'_>, byte: u64) {
    // A byte that is locked can be unlocked.
    let _ = set_lock(file, byte, libc::F_UNLCK);
}

pub fn is_locked(file: BorrowedFd<'_>, byte: u64) -> io::Result<bool> {
    let mut lock = lock_of(byte, libc::F_WRLCK);
    // SAFETY: the struct is whole, and outlives the call, which writes to it.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    match done {
        0 => Ok(lock.l_type != libc::F_UNLCK as libc::c_short),
        _ => Err(io::Error::last_os_error()),
    }
}

pub fn allocated_bytes(file: BorrowedFd<'_>) -> io::Result<u64> {
    let blocks = rustix::fs::fstat(file)?.st_blocks;
    Ok(512 * blocks.cast_unsigned())
}

pub fn read_u64(file: BorrowedFd<'_>, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    loop {
        match rustix::io::pread(file, &mut bytes, at) {
            Ok(8) => return Ok(u64::from_le_bytes(bytes)),
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

fn set_lock(file: BorrowedFd<'_>, byte: u64, how: libc::c_int) -> io::Result<()> {
    let lock = lock_of(byte, how);
    // SAFETY: the struct is whole, and only read.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if done == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

/// A lock of an open file description. rustix has locks of processes, which any close
/// of the file would drop.
fn lock_of(byte: u64, how: libc::c_int) -> libc::flock {
    // SAFETY: zero bytes are a valid value of this plain struct.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = how as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte.cast_signed() as libc::off_t;
    lock.l_len = 1;
    lock
}

pub fn allocate(file: BorrowedFd<'_>, at: u64, length: u64) -> io::Result<()> {
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, at, length) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

pub fn punch_hole(file: BorrowedFd<'_>, at: u64, length: u64) {
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    // A failure leaves the memory allocated.
    while rustix::fs::fallocate(file, hole, at, length) == Err(Errno::INTR) {}
}

/// A part of a file that processes share, mapped. A fork does not inherit it.
#[doc(alias = "mmap")]
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    length: usize,
    process: ForkId,
}

// SAFETY: a mapping that is ours, for as long as this is there.
unsafe impl Send for Region {}
// SAFETY: its words are read and written as atomics; its bytes by who has the
// right to, says the contract of the calls that do it.
unsafe impl Sync for Region {}

impl Region {
    /// Maps a part of `file`, whose size is sealed and which has that part.
    ///
    /// # Errors
    /// Those of `mmap(2)` and `madvise(2)`.
    pub fn map(file: BorrowedFd<'_>, at: u64, length: u64, writable: bool) -> io::Result<Region> {
        let length = usize::try_from(length).map_err(|_| Errno::OVERFLOW)?;
        let access = match writable {
            true => ProtFlags::READ | ProtFlags::WRITE,
            false => ProtFlags::READ,
        };
        // SAFETY: a fresh mapping at a place of the kernel's choice; it is ours.
        let start = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                length,
                access,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file,
                at,
            )?
        };
        let region = Region {
            start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            length,
            process: ForkId::current(),
        };
        // The region unmaps after a failure.
        //
        // SAFETY: all of that mapping, and nothing else.
        unsafe { rustix::mm::madvise(start, length, Advice::LinuxDontFork)? };
        Ok(region)
    }

    /// The address of a place of so many bytes.
    ///
    /// # Panics
    /// If it is not within the region.
    #[inline]
    fn at(&self, at: u64, length: u64) -> NonNull<u8> {
        let end = at.checked_add(length);
        assert!(
            end.is_some_and(|end| end <= self.length as u64),
            "beyond the region"
        );
        // SAFETY: within the mapping, as was just seen.
        unsafe { self.start.add(at as usize) }
    }

    /// A word that is kept at hand, with its region.
    ///
    /// # Panics
    /// If it is not within the region, or not aligned.
    pub fn word<T: Plain>(self: &Arc<Region>, at: u64) -> RegionWord<T> {
        RegionWord {
            at: NonNull::from(self.atomic(at)),
            _region: Arc::clone(self),
        }
    }

    /// A word.
    ///
    /// # Panics
    /// If it is not within the region, or not aligned.
    #[inline]
    pub fn atomic<T: Plain>(&self, at: u64) -> &T {
        let length = size_of::<T>() as u64;
        assert!(at.is_multiple_of(length), "not aligned");
        // SAFETY: within the mapping, which lives as long as `self`, aligned, and
        // an atomic, for which all bytes are valid.
        unsafe { self.at(at, length).cast().as_ref() }
    }

    /// Words that follow each other.
    ///
    /// # Panics
    /// If they are not within the region, or not aligned.
    #[inline]
    pub fn words(&self, at: u64, count: usize) -> &[AtomicU64] {
        assert!(at.is_multiple_of(8), "not aligned");
        let start = self.at(at, 8 * count as u64).cast();
        // SAFETY: within the mapping, which lives as long as `self`, aligned, and
        // atomics, for which all bytes are valid.
        unsafe { NonNull::slice_from_raw_parts(start, count).as_ref() }
    }

    /// Writes bytes. Other readers of this memory may see a part of them meanwhile.
    ///
    /// # Panics
    /// If they are not within the region.
    #[inline]
    pub fn copy_in(&self, at: u64, bytes: &[u8]) {
        let to = self.at(at, bytes.len() as u64);
        // SAFETY: within the mapping; no reference is into it but those that
        // `bytes` below is asked for, whose caller sees to that.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
    }

    /// Bytes of the region.
    ///
    /// # Panics
    /// If they are not within the region.
    ///
    /// # Safety
    /// No thread of any process writes to these bytes while the reference is there.
    #[inline]
    pub unsafe fn bytes(&self, at: u64, length: u64) -> &[u8] {
        // SAFETY: within the mapping, which lives as long as `self`; unchanged,
        // says the caller.
        unsafe { NonNull::slice_from_raw_parts(self.at(at, length), length as usize).as_ref() }
    }

    /// Bytes of the region, to be written.
    ///
    /// # Panics
    /// If they are not within the region.
    ///
    /// # Safety
    /// No other thread of any process reads these bytes or writes to them while the
    /// reference is there; the region is mapped for writing.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "the caller says that it is the only one"
    )]
    pub unsafe fn bytes_mut(&self, at: u64, length: u64) -> &mut [u8] {
        // SAFETY: within the mapping, which lives as long as `self`; ours alone,
        // says the caller.
        unsafe { NonNull::slice_from_raw_parts(self.at(at, length), length as usize).as_mut() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // A fork does not have the mapping, and something else may be there.
        if self.process.is_current() {
            // SAFETY: the mapping is ours, and no reference into it outlives us.
            let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
        }
    }
}

/// A type that may lie in memory that others write to.
///
/// # Safety
/// The type is an atomic, so that all bytes are valid and may change at any time.
pub unsafe trait Plain {}
// SAFETY: as it says.
unsafe impl Plain for AtomicU32 {}
// SAFETY: as it says.
unsafe impl Plain for AtomicU64 {}
// SAFETY: atomics, one after another.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

// The sleep of `crate::robust` takes two more calls to care for others that sleep on
// the word: on these words there is one sleeper.
pub fn sleep(word: &AtomicU32, value: u32, deadline: Deadline) {
    let until = monotonic(deadline);
    // Woken, another value, a signal, the time: for the caller's loop.
    let _ = futex::wait_bitset(word, Flags::empty(), value, until.as_ref(), NonZeroU32::MAX);
}

pub fn sleep_on_two(words: [(&AtomicU32, u32); 2], deadline: Deadline) -> io::Result<()> {
    let waiters = words.map(|(word, value)| waiter(word, value));
    let until = monotonic(deadline);
    let flags = WaitvFlags::empty();
    match futex::waitv(&waiters, flags, until.as_ref(), ClockId::Monotonic) {
        Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
            Err(unsupported("sleeping on two words"))
        }
        // Woken, another value, a signal, the time: for the caller's loop.
        _ => Ok(()),
    }
}

pub fn coarse_now() -> Duration {
    let tick = clock_gettime(ClockId::MonotonicCoarse);
    Duration::try_from(tick).unwrap_or_default()
}

pub fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?)
}

pub fn ring(link: BorrowedFd<'_>) -> bool {
    let quietly = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match rustix::net::send(link, b"!", quietly) {
            Err(Errno::INTR) => {}
            // A full buffer is readable, which is all that a ring is for.
            told => return matches!(told, Ok(_) | Err(Errno::AGAIN)),
        }
    }
}

pub fn silence(link: BorrowedFd<'_>) -> bool {
    let mut rings = [0; 256];
    loop {
        match rustix::net::recv(link, &mut rings, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => return false,
            Ok((_, count)) if count == rings.len() => {}
            Err(Errno::INTR) => {}
            Ok(_) | Err(Errno::AGAIN) => return true,
            Err(_) => return false,
        }
    }
}

pub fn is_hung_up(link: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(link, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let told = rustix::event::poll(&mut fds, Some(&now));
    told.is_ok() && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
