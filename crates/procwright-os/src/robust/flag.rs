//! Words of this process's own that a fork finds empty (`MADV_WIPEONFORK`).

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use crate::fork::PerProcess;
use crate::sync::{Mutex, MutexGuard};

/// A word that a thread of ours changes.
///
/// A fork does not have that thread, and there the word would stay what it was for
/// ever. So in a fork it is 0, which says nothing, and a reader has to find out anew.
#[doc(alias = "MADV_WIPEONFORK")]
#[derive(Debug)]
pub struct Flag(NonNull<AtomicU32>);

// SAFETY: an atomic in memory that is never unmapped.
unsafe impl Send for Flag {}
// SAFETY: as above.
unsafe impl Sync for Flag {}

/// Flags that are not in use. Words are small: a page holds many, and is kept.
static FREE: PerProcess<Mutex<Vec<Flag>>> = PerProcess::new();

const PAGE: usize = 4096;

impl Flag {
    /// A word with this value.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn new(value: u32) -> io::Result<Flag> {
        let mut free = free();
        if free.is_empty() {
            free.extend(page()?);
        }
        // SeqCst: readers on other threads find the value before any later change.
        let flag = free.pop().ok_or(io::ErrorKind::OutOfMemory)?;
        flag.word().store(value, Ordering::SeqCst);
        Ok(flag)
    }

    /// The word itself.
    pub fn word(&self) -> &AtomicU32 {
        // SAFETY: within a page that is never unmapped, aligned.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        free().push(Flag(self.0));
    }
}

fn free() -> MutexGuard<'static, Vec<Flag>> {
    FREE.get().lock()
}

/// A page of words.
fn page() -> io::Result<impl Iterator<Item = Flag>> {
    // SAFETY: a fresh mapping at a place of the kernel's choice.
    let start = unsafe {
        let readable = ProtFlags::READ | ProtFlags::WRITE;
        let start = rustix::mm::mmap_anonymous(ptr::null_mut(), PAGE, readable, MapFlags::PRIVATE)?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        rustix::mm::madvise(start, PAGE, rustix::mm::Advice::LinuxWipeOnFork)?;
        start
    };
    let start = NonNull::new(start.cast::<AtomicU32>()).ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: within the page.
    Ok((0..PAGE / size_of::<AtomicU32>()).map(move |i| Flag(unsafe { start.add(i) })))
}
