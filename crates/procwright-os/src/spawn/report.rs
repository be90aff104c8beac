//! The report of a child to its parent.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// The result that the child leaves for its parent.
///
/// Relaxed everywhere: the parent reads only after the child has gone, which orders
/// the two; the atomics are for the compiler.
pub(super) struct ChildReport {
    /// Index of the failed action, [`CGROUP`], [`EXEC`] or [`NOTHING`].
    pub(super) step: AtomicI32,
    pub(super) errno: AtomicI32,
}

pub(super) const NOTHING: i32 = -1;
pub(super) const EXEC: i32 = -2;
pub(super) const CGROUP: i32 = -3;

/// A report in memory that a child without CLONE_VM shares with us.
pub(super) struct SharedReport(ptr::NonNull<ChildReport>);

impl SharedReport {
    pub(super) fn new() -> io::Result<SharedReport> {
        // SAFETY: a fresh anonymous mapping, checked for failure.
        let page = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size_of::<ChildReport>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let report = ptr::NonNull::new(page.cast::<ChildReport>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let shared = SharedReport(report);
        shared.get().step.store(NOTHING, Ordering::Relaxed);
        Ok(shared)
    }

    pub(super) fn get(&self) -> &ChildReport {
        // SAFETY: mapped for as long as this lives; zero bytes are a valid
        // ChildReport.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedReport {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which no reference is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<ChildReport>()) };
    }
}
