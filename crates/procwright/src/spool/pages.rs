//! The pages of memory that output is read into: got ahead of the reads, in the size that
//! is quick here.
//!
//! Huge pages make a capture half as fast again, as long as the system has them at hand.
//! Where it has not, each is many times as slow as the small ones in its place: a hypervisor
//! has to back the whole of it anew, or the kernel has to move others out of its way. Nothing
//! tells the two apart but what they cost. So each is timed, and [`PageCosts`] decides by
//! what pages have cost this process so far.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use procwright_os::memory::{self, PageSize};

/// The size of a huge page. Where it is another, a step of this size is had in others.
pub(super) const HUGE: usize = 2 * 1024 * 1024;

/// The bytes for which small pages are had at a time: at most as many as a read takes, since
/// the writer can fill the pipe meanwhile. A fault for each page costs a fifth more.
const STEPS: [usize; 2] = [64 * 1024, 256 * 1024];

/// The part of what is filled for which small pages are had ahead. What the end of a stream
/// leaves unused was had for nothing: where a host has to back it anew, 256 KiB ahead of each
/// stream cost a capture of 4 MiB a third of its processor time.
const AHEAD: usize = 16;

/// The smallest page that there is.
const LEAST_PAGE: usize = 4096;

/// The size of the first block that is more than one read takes. The allocator has it from
/// the system, and moves it by its page tables from then on. In steps of its heap's sizes
/// all was copied two or three times before, to pages that had to be had for it: 0.2 ms of
/// a first capture of 1 MiB, which takes 2 ms.
pub(crate) const LARGE: usize = 1024 * 1024;

/// The size from which on a block gets its pages ahead. In a smaller one as much again
/// might never be used.
const LEAST: usize = LARGE / 2;

/// The size of a block from which on it gets huge pages: more than one, wherever it lies.
const LEAST_HUGE: usize = 3 * 1024 * 1024;

/// The bytes for which a process has small pages before it tries the first huge one. One
/// that is slow takes as long as the pages for some 14 MiB, and nothing tells in advance
/// whether it will be: of a capture of this size that is 3 %, which cannot be told from
/// noise. Small pages alone are level with what anybody else does.
const FIRST: u64 = 256 * 1024 * 1024;

/// The bytes after which what small pages have cost counts half: enough for a mean, since
/// one in a hundred steps costs as much as all others where the host backs its block anew.
const MEMORY: u64 = 64 * 1024 * 1024;

/// The part of the time for small pages that may be lost to slow huge ones: one in this
/// many.
const SHARE: u64 = 32;

/// What pages have cost this process, and which size follows from that.
///
/// The rule: huge pages are taken as long as each costs no more than the small ones in its
/// place. After one that cost more, so many bytes are had in small pages that the loss is a
/// thirty-second of their cost; then one is tried again. So a machine that is slow for good
/// loses 3 %, one that was slow for a moment gets its speed back, and a single wrong
/// measurement does little harm.
///
/// Counters and no lock: threads that come at once may each try a page, or count one
/// small page less.
#[derive(Debug)]
pub(super) struct PageCosts {
    /// The small pages of late: bytes, and the nanoseconds for them. Both are halved now and
    /// then.
    small_bytes: AtomicU64,
    small_nanos: AtomicU64,
    /// Bytes for which small pages are had before a huge one is tried.
    small_first: AtomicU64,
}

/// The costs of this process. A fork goes on with what its parent knew.
static COSTS: PageCosts = PageCosts::new();

// All accesses are relaxed: each figure stands for itself, and no memory is reached by way
// of it.
impl PageCosts {
    const fn new() -> PageCosts {
        PageCosts {
            small_bytes: AtomicU64::new(0),
            small_nanos: AtomicU64::new(0),
            small_first: AtomicU64::new(FIRST),
        }
    }

    /// The size to have next.
    fn next(&self) -> PageSize {
        match self.small_first.load(Ordering::Relaxed) {
            0 => PageSize::Huge,
            _ => PageSize::Small,
        }
    }

    /// Counts small pages for so many bytes.
    fn note_small(&self, bytes: usize, cost: Duration) {
        let (bytes, nanos) = (bytes as u64, nanos(cost));
        let sum = bytes + self.small_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.small_nanos.fetch_add(nanos, Ordering::Relaxed);
        if sum > MEMORY {
            for figure in [&self.small_bytes, &self.small_nanos] {
                figure.store(figure.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
            }
        }
        let less = |left: u64| Some(left.saturating_sub(bytes));
        let _ = self
            .small_first
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Counts a huge page.
    fn note_huge(&self, cost: Duration) {
        let bytes = self.small_bytes.load(Ordering::Relaxed);
        let nanos_of_small = self.small_nanos.load(Ordering::Relaxed).max(1);
        let lost = nanos(cost).saturating_sub(nanos_of_small * HUGE as u64 / bytes.max(1));
        // What small pages for so many bytes cost is `SHARE` times the loss.
        let until = (lost * SHARE).saturating_mul(bytes) / nanos_of_small;
        self.small_first.fetch_max(until, Ordering::Relaxed);
    }
}

/// No page takes more than a second, or the products above would overflow.
fn nanos(cost: Duration) -> u64 {
    cost.min(Duration::from_secs(1)).as_nanos() as u64
}

/// The pages of one block of memory that grows while it is filled, such as that of a
/// [`Memory`](super::Memory). Only speed depends on it.
///
/// ```
/// use procwright::memory::{Pages, next_capacity};
///
/// let (mut data, mut pages) = (Vec::<u8>::new(), Pages::default());
/// for piece in [b"first", b"later"] {
///     if data.capacity() - data.len() < piece.len() {
///         let capacity = next_capacity(data.capacity(), data.len() + piece.len());
///         data.reserve_exact(capacity - data.len());
///     }
///     pages.provide(data.len(), data.spare_capacity_mut(), piece.len());
///     data.extend_from_slice(piece);
/// }
/// assert_eq!(data, b"firstlater");
/// ```
///
/// # Platform
/// Linux; nothing happens elsewhere. Huge pages are for Linux with transparent huge pages
/// set to `madvise` or `always`.
#[derive(Debug, Default)]
pub struct Pages {
    /// The bytes from the start of the block on that have pages.
    had: usize,
    /// The advice that the block has.
    advice: Option<Advice>,
}

/// Advice that was given for a block, which may since have moved or grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Advice {
    start: usize,
    size: usize,
    pages: PageSize,
}

impl Pages {
    /// Whether [`provide`](Pages::provide) would get any pages for the next `more` bytes of a
    /// block of `size`, in which `filled` are used.
    pub(crate) fn lacks(&self, filled: usize, size: usize, more: usize) -> bool {
        size >= LEAST && self.had < wanted(filled, size, more)
    }

    /// Gets the pages for the next `more` bytes of a block in which `filled` bytes are used,
    /// or for a sixteenth of that if it is less, and maybe for more bytes. `room` is the rest of the block, bytes of which may
    /// be 0 afterwards. Does nothing in a block below 512 KiB.
    ///
    /// # Blocking
    /// As long as the system takes for the pages, which whoever writes to them first would
    /// wait for otherwise: 0.1 ms usually, some milliseconds at worst.
    pub fn provide(&mut self, filled: usize, room: &mut [MaybeUninit<u8>], more: usize) {
        self.provide_by(&COSTS, filled, room, more, memory::populate);
    }

    fn provide_by(
        &mut self,
        costs: &PageCosts,
        filled: usize,
        room: &mut [MaybeUninit<u8>],
        more: usize,
        mut populate: impl FnMut(&mut [MaybeUninit<u8>]) -> Option<Duration>,
    ) {
        let size = filled + room.len();
        if !self.lacks(filled, size, more) {
            return;
        }
        let (ahead, wanted) = (ahead(filled), wanted(filled, size, more));
        let start = room.as_ptr().wrapping_byte_sub(filled);
        self.had = self.had.max(filled);
        while self.had < wanted {
            let at = start.addr() + self.had;
            let pages = match size >= LEAST_HUGE {
                true => costs.next(),
                false => PageSize::Small,
            };
            self.advise(start.cast(), size, pages);
            let step = match pages {
                PageSize::Small => 1 << ahead.ilog2(),
                PageSize::Huge => HUGE,
            };
            let until = ((at + 1).next_multiple_of(step) - start.addr()).min(size);
            // A part of a huge page is had in small ones, unless only a header is missing.
            let is_whole = until - self.had > step - LEAST_PAGE;
            let Some(cost) = populate(&mut room[self.had - filled..until - filled]) else {
                self.had = usize::MAX;
                return;
            };
            match pages {
                _ if !is_whole => {}
                PageSize::Huge => costs.note_huge(cost),
                PageSize::Small => costs.note_small(until - self.had, cost),
            }
            self.had = until;
        }
    }

    /// Asks for pages of that size, where the block has other advice. One that was never to
    /// have huge pages is left alone: that is what the system gives by itself, or what its
    /// administrator wants.
    fn advise(&mut self, start: *const u8, size: usize, pages: PageSize) {
        if self.advice.is_none() && pages == PageSize::Small {
            return;
        }
        let wanted = Advice {
            start: start.addr(),
            size,
            pages,
        };
        if self.advice != Some(wanted) {
            memory::advise(start, size, pages);
            self.advice = Some(wanted);
        }
    }
}

/// The most that is had ahead of a read.
fn ahead(filled: usize) -> usize {
    (filled / AHEAD).clamp(STEPS[0], STEPS[1])
}

/// The bytes of a block that are to have pages before the next `more` come.
fn wanted(filled: usize, size: usize, more: usize) -> usize {
    filled.saturating_add(more.min(ahead(filled))).min(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(100);
    const SLOW: Duration = Duration::from_millis(6);
    /// Small pages in place of a huge one.
    const SMALL: Duration = Duration::from_micros(800);

    /// What was had: bytes, one after the other, and how many huge pages.
    #[derive(Debug, Default, PartialEq, Eq)]
    struct Had {
        bytes: usize,
        huge: usize,
    }

    fn is_huge(part: &[MaybeUninit<u8>]) -> bool {
        part.len() > HUGE - LEAST_PAGE
    }

    /// What pages cost, if a huge one costs so much.
    fn cost(part: &[MaybeUninit<u8>], huge: Duration) -> Duration {
        match is_huge(part) {
            true => huge,
            false => SMALL.mul_f64(part.len() as f64 / HUGE as f64),
        }
    }

    /// A capture of so many bytes in pieces of 64 KiB. Each huge page costs `huge`.
    fn capture(costs: &PageCosts, bytes: usize, huge: Duration) -> Had {
        let (mut data, mut pages) = (Vec::<u8>::new(), Pages::default());
        data.reserve_exact(bytes);
        let mut had = Had::default();
        let start = data.as_ptr().addr();
        let piece = 64 * 1024;
        for filled in (0..bytes).step_by(piece) {
            let room = &mut data.spare_capacity_mut()[filled..];
            pages.provide_by(costs, filled, room, piece, |part| {
                assert_eq!(part.as_ptr().addr(), start + had.bytes, "a gap");
                had.bytes += part.len();
                had.huge += usize::from(is_huge(part));
                assert!(part.len() <= HUGE);
                Some(cost(part, huge))
            });
            let wanted = (filled + piece).min(bytes);
            assert!(had.bytes >= wanted || bytes < LEAST, "reads come later");
        }
        assert!(had.bytes <= bytes);
        had
    }

    /// Costs that are known already.
    fn known() -> PageCosts {
        let costs = PageCosts::new();
        costs.note_small(FIRST as usize, SMALL * (FIRST as u32 / HUGE as u32));
        costs
    }

    #[test]
    fn quick_huge_pages_are_kept() {
        let costs = PageCosts::new();
        let had = capture(&costs, 1 << 30, QUICK);
        let huge = (1 << 30) / HUGE;
        assert!((huge * 2 / 3..huge).contains(&had.huge), "{had:?}");
        // A process that knows them has them from the start.
        assert!(capture(&costs, 64 << 20, QUICK).huge >= 30);
        assert!(capture(&costs, 8 << 20, QUICK).huge >= 2);
    }

    #[test]
    fn after_a_slow_one_there_are_small_ones_at_once_in_the_whole_process() {
        let costs = known();
        assert_eq!(capture(&costs, 64 << 20, SLOW).huge, 1);
        // The next captures know it.
        for _ in 0..3 {
            assert_eq!(capture(&costs, 64 << 20, SLOW).huge, 0);
        }
    }

    /// Whatever the size: also of one that ends right behind the first huge page.
    #[test]
    fn the_first_capture_of_a_process_loses_a_sixteenth_at_most() {
        let sizes = [
            1, 4, 16, 32, 33, 34, 36, 48, 64, 128, 255, 258, 264, 512, 2048,
        ];
        for bytes in sizes.map(|mib: usize| mib << 20) {
            let had = capture(&PageCosts::new(), bytes, SLOW);
            let lost = (SLOW - SMALL) * had.huge as u32;
            let small = SMALL.mul_f64(bytes as f64 / HUGE as f64);
            assert!(lost <= small / 16, "{had:?}");
        }
    }

    #[test]
    fn slow_ones_cost_a_thirty_second_of_what_small_ones_do() {
        let costs = known();
        let bytes = 4 << 30;
        let mut slow = 0;
        for _ in 0..bytes / (256 << 20) {
            slow += capture(&costs, 256 << 20, SLOW).huge;
        }
        let lost = (SLOW - SMALL) * slow as u32;
        let small = SMALL * (bytes / HUGE) as u32;
        // One more than a thirty-second: the first.
        assert!(lost <= small / SHARE as u32 + SLOW, "{slow}");
        // It is not for good: whoever has become quick is found so.
        assert!(slow >= 2);
    }

    #[test]
    fn a_moment_of_slowness_is_forgotten() {
        let costs = known();
        costs.note_huge(SLOW);
        assert_eq!(costs.next(), PageSize::Small);
        let had = capture(&costs, 2 << 30, QUICK);
        assert!(had.huge > (2 << 30) / HUGE / 2, "{had:?}");
    }

    #[test]
    fn huge_pages_that_cost_as_much_as_small_ones_are_no_loss() {
        let costs = known();
        costs.note_huge(SMALL);
        assert_eq!(costs.next(), PageSize::Huge);
        // Slow pages of both sizes: no reason to be afraid of one of them.
        for _ in 0..4 {
            costs.note_small(MEMORY as usize, SLOW * (MEMORY as u32 / HUGE as u32) * 3);
        }
        costs.note_huge(SLOW);
        assert_eq!(costs.next(), PageSize::Huge);
    }

    #[test]
    fn a_small_block_is_left_alone() {
        let costs = known();
        assert_eq!(capture(&costs, LEAST - 1, QUICK), Had::default());
        // One in between has no huge pages.
        assert_eq!(capture(&costs, LEAST_HUGE - 1, QUICK).huge, 0);
    }

    #[test]
    fn the_end_of_a_stream_leaves_few_pages_unused() {
        for bytes in [1, 2, 3, 7, 40].map(|mib: usize| mib << 20) {
            let (mut data, mut pages) = (Vec::<u8>::new(), Pages::default());
            data.reserve_exact(4 * bytes);
            let mut had = 0;
            for filled in (0..=bytes).step_by(4096) {
                let room = &mut data.spare_capacity_mut()[filled..];
                let costs = PageCosts::new();
                pages.provide_by(&costs, filled, room, 256 * 1024, |part| {
                    had += part.len();
                    Some(cost(part, QUICK))
                });
            }
            let unused = had.saturating_sub(bytes);
            assert!(unused <= (bytes / 8).max(128 * 1024), "{unused} of {bytes}");
        }
    }

    #[test]
    fn where_pages_cannot_be_had_ahead_nobody_asks_twice() {
        let (costs, mut pages) = (known(), Pages::default());
        let mut data: Vec<u8> = Vec::with_capacity(4 << 20);
        let mut asked = 0;
        for filled in [0, 1 << 20, 2 << 20] {
            let room = &mut data.spare_capacity_mut()[filled..];
            pages.provide_by(&costs, filled, room, 1 << 20, |_| {
                asked += 1;
                None
            });
        }
        assert_eq!(asked, 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_is_asked_for_the_size_that_is_quick() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        let costs = known();
        let (mut data, mut pages) = (Vec::<u8>::new(), Pages::default());
        data.reserve_exact(64 << 20);
        let start = data.as_ptr().addr();
        let middle = start + (32 << 20);
        // A part of a huge page would tell nothing of what a whole one costs, and not every
        // system aligns a block to them.
        let aligned = start.next_multiple_of(HUGE) - start;
        let mut provide = |filled: usize, huge| {
            let filled = filled + aligned;
            let room = &mut data.spare_capacity_mut()[filled..];
            pages.provide_by(&costs, filled, room, 8 << 20, |part| Some(cost(part, huge)));
            test_support::mapping_flags(middle)
        };
        assert!(provide(0, QUICK).contains(" hg "));
        provide(8 << 20, SLOW);
        assert!(provide(12 << 20, SLOW).contains(" nh "));
        costs.note_small(1 << 30, SMALL * ((1 << 30) / HUGE as u32));
        assert!(provide(24 << 20, QUICK).contains(" hg "));
    }
}
