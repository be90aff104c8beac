//! The pages of memory that was reserved: which ones it is to get, and when.

use std::mem::MaybeUninit;
use std::time::Duration;

#[cfg(any(target_os = "linux", target_os = "android"))]
use crate::time::thread_cpu;

/// A size of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// The smallest that the system has: 4 KiB on most.
    Small,
    /// Transparent huge pages: 2 MiB on most.
    Huge,
}

/// Asks for pages of that size for a block of memory: a wish that changes the speed and
/// nothing else, wherever it points, which is why this is safe. Pages that are there stay.
///
/// The whole block is advised, down to the allocator's header in front of it: advice
/// for a part would split the mapping in two, and the kernel moves only one at a
/// time, so that the next growth would copy.
#[doc(alias = "madvise")]
#[doc(alias = "MADV_HUGEPAGE")]
#[doc(alias = "MADV_NOHUGEPAGE")]
pub fn advise(start: *const u8, length: usize, pages: PageSize) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let page = rustix::param::page_size();
        let before = start.addr() % page;
        let advice = match pages {
            PageSize::Small => libc::MADV_NOHUGEPAGE,
            PageSize::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: both wishes touch no content, and the kernel checks the range.
        unsafe {
            libc::madvise(
                start.wrapping_sub(before).cast_mut().cast(),
                (before + length).next_multiple_of(page),
                advice,
            );
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (start, length, pages);
}

/// Gets the pages of `room` from the system now, instead of one by one when they are
/// written to, and returns the processor time of this thread that it took. A page that
/// `room` covers in part counts. Bytes of `room` may be 0 afterwards.
///
/// Processor time, since any other work on the machine would count in the time that
/// passes. What a hypervisor does to back a page it does in the time of the processor
/// that asked, which sees none of it as waiting.
///
/// # Platform
/// Linux. Nothing happens elsewhere, which is told by None.
#[doc(alias = "MADV_POPULATE_WRITE")]
pub fn populate(room: &mut [MaybeUninit<u8>]) -> Option<Duration> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let before = thread_cpu();
        linux::populate(room);
        Some(thread_cpu().saturating_sub(before))
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = room;
        None
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::io::Errno;
    use rustix::mm::{Advice, madvise};

    /// The kernel has no `MADV_POPULATE_WRITE` (5.14), or a sandbox forbids it.
    static IS_REFUSED: AtomicBool = AtomicBool::new(false);

    pub(super) fn populate(room: &mut [MaybeUninit<u8>]) {
        // Relaxed: which of two ways is tried, and both do.
        if room.is_empty() || (!IS_REFUSED.load(Ordering::Relaxed) && ask(room)) {
            return;
        }
        let page = rustix::param::page_size();
        let first = room.as_ptr().addr() % page;
        for at in std::iter::once(0).chain((page - first..room.len()).step_by(page)) {
            // SAFETY: within `room`, which is ours. Volatile: nobody reads it.
            unsafe {
                room.as_mut_ptr()
                    .add(at)
                    .write_volatile(MaybeUninit::new(0))
            };
        }
    }

    /// Has the kernel do it. False if it cannot.
    fn ask(room: &mut [MaybeUninit<u8>]) -> bool {
        let page = rustix::param::page_size();
        let before = room.as_ptr().addr() % page;
        let start = room.as_mut_ptr().wrapping_byte_sub(before);
        let length = (before + room.len()).next_multiple_of(page);
        // SAFETY: the pages are had, and what they hold stays.
        match unsafe { madvise(start.cast(), length, Advice::LinuxPopulateWrite) } {
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM | Errno::ACCESS) => {
                IS_REFUSED.store(true, Ordering::Relaxed);
                false
            }
            // Memory that cannot be had is found out by who writes to it, as without this.
            _ => true,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn pages_are_had_with_the_call_and_without() {
            let page = rustix::param::page_size();
            for is_refused in [false, true] {
                let mut memory: Vec<u8> = Vec::new();
                memory.reserve_exact(64 * page);
                let start = memory.as_ptr().addr().next_multiple_of(page) - memory.as_ptr().addr();
                let room = &mut memory.spare_capacity_mut()[start..];
                IS_REFUSED.store(is_refused, Ordering::Relaxed);
                populate(&mut room[10..10 + 40 * page]);
                IS_REFUSED.store(false, Ordering::Relaxed);
                let at = room.as_ptr().addr() as u64 / page as u64;
                let had: Vec<bool> = (at..at + 60).map(is_present).collect();
                assert!(had[..41].iter().all(|had| *had), "{is_refused}: {had:?}");
            }
        }

        /// Whether this process has a page of that number.
        fn is_present(page: u64) -> bool {
            use std::os::unix::fs::FileExt as _;
            let map = std::fs::File::open("/proc/self/pagemap").unwrap();
            let mut entry = [0; 8];
            map.read_exact_at(&mut entry, 8 * page).unwrap();
            u64::from_ne_bytes(entry) >> 63 == 1
        }
    }
}
