//! Memory that processes share, in a file that none of them can cut short.
//!
//! Contract of every platform file:
//!
//! - `create(size)`: a file in memory, sparse, close-on-exec, whose size nobody
//!   can change.
//! - `size(file)`: its size, if nobody can change it; `InvalidData` for all other
//!   files. A file that is cut short under a mapping is a SIGBUS for who looks.
//! - `reopen(file)`: the same file, and an open file description of its own: what
//!   is locked through it is free when this process has ended, whoever else has
//!   the file. `Unsupported` where that cannot be had.
//! - `of_process(pid, number)`: the same of what another process has under that
//!   number; none if that is no file in memory, or nothing. Of nothing else more is
//!   done than to look what it is.
//! - `append(file, bytes)`: behind what is there then, whoever else does so.
//! - `lock(file, byte)`: whether it could be locked; it stays so until the last
//!   descriptor of the open file description is closed, or `unlock`.
//!   `is_locked(file, byte)`: whether somebody has.
//! - `memory(file)`: how many bytes of memory it takes. `number_at(file, at)`: the 8
//!   bytes there, which need no memory for that.
//! - `provide(file, at, length)`: there is memory for that part from now on, or an
//!   error. `discard`: there need be none, and what was there is lost.
//! - `Region::map(file, at, length, writable)`: not inherited by a fork.
//! - `sleep(word, while_it_is, deadline)`: for the only one who sleeps there, until
//!   somebody wakes. May return for nothing. `sleep_on_two(…)`: until one of two words is another than that, or somebody
//!   wakes; `Unsupported` where one can sleep on one only.
//! - `last_tick()`: how late it was some milliseconds ago at most, for no system call.
//! - `link()`: two ends, each of which tells when the other is gone, which never
//!   block. `ring(end)` makes the other end readable and sends no signal, and says
//!   whether anybody is there;
//!   `silence(end)` ends that, and says whether the other is there;
//!   `is_abandoned(end)`: whether it is not.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

pub(crate) use imp::{
    Region, append, create, discard, is_abandoned, is_locked, last_tick, link, lock, memory,
    number_at, of_process, provide, reopen, ring, silence, size, sleep, sleep_on_two, unlock,
};

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A word of a region, for as long as this is there.
#[derive(Debug)]
pub(crate) struct Word<T> {
    at: NonNull<T>,
    _region: Arc<Region>,
}

// SAFETY: the words are atomics, in memory that the region keeps mapped.
unsafe impl<T: Sync> Send for Word<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Word<T> {}

impl<T> Deref for Word<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: within the region, which is mapped for as long as we have it.
        unsafe { self.at.as_ref() }
    }
}
