//! Memory that processes share, in a file that none of them can cut short; locks and
//! futexes in it; and the pair of sockets that tells each side of the other's end.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

pub use imp::Region;
/// Allocates memory for a part of the file, as a promise.
///
/// # Errors
/// Those of `fallocate(2)`.
#[doc(alias = "fallocate")]
pub use imp::allocate;
/// The bytes of memory that the file takes.
///
/// # Errors
/// Those of `fstat(2)`.
#[doc(alias = "st_blocks")]
pub use imp::allocated_bytes;
/// Appends bytes, whichever processes append at the same time.
///
/// # Errors
/// Those of `pwritev2(2)`.
#[doc(alias = "RWF_APPEND")]
#[doc(alias = "pwritev2")]
pub use imp::append;
/// The monotonic time some milliseconds ago at most, without a system call.
#[doc(alias = "CLOCK_MONOTONIC_COARSE")]
pub use imp::coarse_now;
/// Makes a sparse file in memory, close-on-exec, whose size cannot be changed.
///
/// # Errors
/// Those of `memfd_create(2)`; `FileTooLarge` beyond `RLIMIT_FSIZE`.
#[doc(alias = "memfd_create")]
#[doc(alias = "shm_open")]
pub use imp::create;
/// True if the other end of a [`socket_pair`] is closed.
#[doc(alias = "POLLHUP")]
pub use imp::is_hung_up;
/// True if a byte of the file is locked through another open file description.
///
/// # Errors
/// Those of `fcntl(2)`.
#[doc(alias = "F_OFD_GETLK")]
pub use imp::is_locked;
/// Locks a byte of the file; false if it is locked elsewhere. It stays locked until the
/// last descriptor of the open file description is closed, or [`unlock`].
///
/// # Errors
/// Those of `fcntl(2)`.
#[doc(alias = "F_OFD_SETLK")]
pub use imp::lock;
/// Opens, as [`reopen`] does, the file in memory that another process has under a
/// descriptor number; `None` if there is something else, or nothing, which is not
/// opened.
///
/// # Errors
/// Those of [`reopen`].
#[doc(alias = "pidfd_getfd")]
#[doc(alias = "/proc/PID/fd")]
pub use imp::open_of_process;
/// Gives the memory of a part of the file back; its content is lost.
#[doc(alias = "FALLOC_FL_PUNCH_HOLE")]
pub use imp::punch_hole;
/// Reads 8 bytes of the file, which need no memory for that.
///
/// # Errors
/// Those of `pread(2)`.
#[doc(alias = "pread")]
pub use imp::read_u64;
/// Opens the file once more, with an open file description of its own: what is locked
/// through it is free when this process has ended, whichever others have the file.
///
/// # Errors
/// `Unsupported` without `/proc`; those of `open(2)`.
#[doc(alias = "/proc/self/fd")]
pub use imp::reopen;
/// Makes the other end of a [`socket_pair`] readable, sends no signal and never blocks;
/// false if the other end is closed.
pub use imp::ring;
/// The size of the file.
///
/// # Errors
/// `InvalidData` if any process could change it, or cannot write to the file. A file
/// that is cut short under a mapping is a SIGBUS for the reader.
#[doc(alias = "F_GET_SEALS")]
pub use imp::sealed_size;
/// Makes this end of a [`socket_pair`] unreadable until the next ring; false if the
/// other end is closed.
pub use imp::silence;
/// Sleeps until `word` is woken or the deadline comes, if it still is `value`. For the
/// only sleeper on a word. May return for nothing.
#[doc(alias = "futex")]
#[doc(alias = "FUTEX_WAIT_BITSET")]
pub use imp::sleep;
/// Sleeps until one of two words is woken or the deadline comes, if each still has its
/// value.
///
/// # Errors
/// `Unsupported` before Linux 5.16, and in a sandbox.
#[doc(alias = "futex_waitv")]
pub use imp::sleep_on_two;
/// Makes two ends, each of which tells when the other is closed, and never blocks.
///
/// # Errors
/// Those of `socketpair(2)`.
#[doc(alias = "socketpair")]
pub use imp::socket_pair;
/// Unlocks a byte that [`lock`] has locked.
#[doc(alias = "F_OFD_SETLK")]
pub use imp::unlock;

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A word of a region, which keeps the region mapped.
#[derive(Debug)]
pub struct RegionWord<T> {
    at: NonNull<T>,
    _region: Arc<Region>,
}

// SAFETY: the words are atomics, in memory that the region keeps mapped.
unsafe impl<T: Sync> Send for RegionWord<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for RegionWord<T> {}

impl<T> Deref for RegionWord<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: within the region, which is mapped for as long as we have it.
        unsafe { self.at.as_ref() }
    }
}
