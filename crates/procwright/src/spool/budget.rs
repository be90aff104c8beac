//! The budget of all queues of this process together.
//!
//! # Fair shares
//!
//! Each queue may keep what its own policy allows, but no more than the budget
//! divided by the number of queues that keep something now. So one busy child of
//! a thousand has all it asks for, and a thousand busy ones have a thousandth
//! each. There is a floor below which no share falls: then the budget is
//! exceeded by that much, rather than a queue be left with nothing by others.
//!
//! Counters and no lock: a queue may see a count that is a moment old, which moves a
//! limit by a moment. So all counters and limits are `Relaxed`: each is a figure of its
//! own, and no memory is reached by way of it. Only the ring when shares have grown must
//! not be missed: see [`ring_when_grown`].

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Weak};

use procwright_os::Invalid;
use procwright_os::file;
use procwright_os::fork::{OnceBox, PerProcess};
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::wake::Wake;

/// How much the output of all children that are held may take together, in memory
/// and on disk, beside what each may take alone.
///
/// A share that is smaller than what [`Overflow`] allows a stream loses nothing of
/// one that is to lose nothing: it goes to disk sooner, or the child waits sooner.
/// [`DropOldest`] and [`DropNewest`] drop sooner. [`Figures`] tell what is taken.
///
/// Unless it is set here, `PROCWRIGHT_MEMORY_BUDGET` and `PROCWRIGHT_DISK_BUDGET`
/// say it, as bytes or with `KiB`, `MiB`, `GiB`; they are looked at when the first
/// child is started. A stage of [`Buffer`] has what it is given.
///
/// ```
/// use procwright::Budget;
///
/// let before = Budget::current();
/// Budget { memory: 64 << 20, disk: Some(1 << 30) }.set();
/// assert_eq!(Budget::current().memory, 64 << 20);
/// before.set();
/// ```
///
/// [`Overflow`]: crate::Overflow
/// [`DropOldest`]: crate::Overflow::DropOldest
/// [`DropNewest`]: crate::Overflow::DropNewest
/// [`Figures`]: crate::buffer::Figures
/// [`Buffer`]: crate::buffer::Buffer
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The bytes in memory: 256 MiB unless it is set.
    pub memory: u64,
    /// The bytes on disk. None means 8 GiB, or a quarter of what is free when the
    /// first bytes go there, and bounds only streams whose own limit on disk was
    /// not said either: who says `disk: Some(…)` for a stream means it.
    pub disk: Option<u64>,
}

/// A sixteenth of what a small machine has, and room for sixteen streams that take
/// all they may.
const MEMORY: u64 = 256 << 20;

/// Eight streams that take all they may, and never so much that others cannot go
/// on: a disk that is full stops more than one that is slow.
const DISK: u64 = 8 << 30;

/// The least share of memory: as much as a pipe holds.
pub(crate) const LEAST_MEMORY: u64 = 64 << 10;

/// The least share of the disk.
pub(crate) const LEAST_DISK: u64 = 1 << 20;

const UNSET: u64 = u64::MAX;

static MEMORY_SET: AtomicU64 = AtomicU64::new(MEMORY);
static DISK_SET: AtomicU64 = AtomicU64::new(UNSET);
/// The default of the disk, once it is known.
static DISK_DEFAULT: OnceBox<u64> = OnceBox::new();
/// [`Budget::set`] was called.
static IS_SET: AtomicBool = AtomicBool::new(false);
/// The error in the environment, once that was read.
static ENVIRONMENT: OnceBox<Result<(), Invalid>> = OnceBox::new();

/// Queues that exist.
static LIVING: AtomicU64 = AtomicU64::new(0);
/// Queues that keep more in memory than the least share.
static KEEPING: AtomicU64 = AtomicU64::new(0);
/// Queues that have files.
static SPILLED: AtomicU64 = AtomicU64::new(0);

/// Wake-ups of queues that were refused because their share was less than their policy
/// allows. All that they wait for otherwise is their own consumer, which need not come
/// before there is more.
static WAITING: PerProcess<Mutex<Vec<Weak<Wake>>>> = PerProcess::new();
/// The list in `WAITING` may have an entry. Looked at for every stream that was emptied.
static IS_WAITED_FOR: AtomicBool = AtomicBool::new(false);

fn waiting() -> MutexGuard<'static, Vec<Weak<Wake>>> {
    WAITING.get().lock()
}

/// Rings `wake` once, when shares have grown. The caller looks at its share afterwards:
/// it may have grown before.
///
/// No growth is missed, since each side writes, passes a fence and then reads what the
/// other side writes:
///
/// 1. the caller sets `IS_WAITED_FOR`, passes the fence, and reads its share;
/// 2. a queue that gives up its share changes a counter, passes the fence in [`grown`],
///    and reads `IS_WAITED_FOR`.
///
/// The two fences are in one order. If the first is the caller's, `grown` reads the flag
/// and rings; otherwise the caller reads the share that has grown.
pub(crate) fn ring_when_grown(wake: &Arc<Wake>) {
    let mut waiting = waiting();
    let wake = Arc::downgrade(wake);
    if !waiting.iter().any(|other| other.ptr_eq(&wake)) {
        waiting.push(wake);
    }
    IS_WAITED_FOR.store(true, Ordering::SeqCst);
    fence(Ordering::SeqCst);
}

/// Rings the queues that wait for a larger share, after shares have grown.
fn grown() {
    // Pairs with the fence in `ring_when_grown`.
    fence(Ordering::SeqCst);
    if IS_WAITED_FOR.load(Ordering::SeqCst) {
        let mut waiting = waiting();
        // Under the lock of `WAITING`, as the store of `true`: the flag says false only
        // while the list is empty.
        IS_WAITED_FOR.store(false, Ordering::SeqCst);
        let ring = |wake: Weak<Wake>| wake.upgrade().iter().for_each(|wake| wake.ring());
        waiting.drain(..).for_each(ring);
    }
}

/// The budget that is in force unless another is set.
impl Default for Budget {
    fn default() -> Budget {
        Budget {
            memory: MEMORY,
            disk: None,
        }
    }
}

impl Budget {
    /// Sets the budget, for the queues that there are as well.
    pub fn set(self) {
        // The values that are set here go before what the environment says, wrong or not. The
        // environment is read first, so that a thread that reads it at this moment does
        // not store its values over these.
        IS_SET.store(true, Ordering::Relaxed);
        let _ = check_environment();
        MEMORY_SET.store(self.memory, Ordering::Relaxed);
        let disk = self.disk.map_or(UNSET, |disk| disk.min(UNSET - 1));
        DISK_SET.store(disk, Ordering::Relaxed);
        grown();
    }

    /// The budget that is in force. A variable of the environment that cannot be read
    /// counts as unset here; starting a child returns that error.
    pub fn current() -> Budget {
        let _ = check();
        let disk = DISK_SET.load(Ordering::Relaxed);
        Budget {
            memory: MEMORY_SET.load(Ordering::Relaxed),
            disk: (disk != UNSET).then_some(disk),
        }
    }
}

/// Reads the environment, once.
///
/// # Errors
/// A value that is no number of bytes, unless the budget was set since.
pub(crate) fn check() -> Result<(), Invalid> {
    match IS_SET.load(Ordering::Relaxed) {
        true => Ok(()),
        false => check_environment(),
    }
}

fn check_environment() -> Result<(), Invalid> {
    let read = |name: &'static str, to: &AtomicU64| -> Result<(), Invalid> {
        let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        match text.to_str().and_then(bytes) {
            Some(value) => to.store(value.min(UNSET - 1), Ordering::Relaxed),
            None => {
                let is = format!("is {text:?}, which is no number of bytes");
                return Err(Invalid::new(name, is, "such as 268435456 or 256MiB"));
            }
        }
        Ok(())
    };
    let read = || {
        read("PROCWRIGHT_MEMORY_BUDGET", &MEMORY_SET)?;
        read("PROCWRIGHT_DISK_BUDGET", &DISK_SET)
    };
    ENVIRONMENT.get_or_init(read).clone()
}

fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("", 0)];
    let (number, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    let number: u64 = number.trim_end().parse().ok()?;
    number.checked_mul(1 << shift)
}

/// The part of the budget that one queue may take.
#[derive(Debug)]
pub(crate) struct Share {
    /// How the counters count this queue. None for a queue that is bounded by its own
    /// policy alone.
    counted: Option<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    keeps: bool,
    spilled: bool,
}

impl Share {
    /// The share of a queue that has all that its policy allows.
    pub(crate) fn alone() -> Share {
        Share { counted: None }
    }

    /// The share of a queue among all others of this process.
    pub(crate) fn of_process() -> Share {
        LIVING.fetch_add(1, Ordering::Relaxed);
        Share {
            counted: Some(Counted::default()),
        }
    }

    /// The bytes that the queue may keep in memory, of the `own` ones that its policy
    /// allows.
    pub(crate) fn memory(&self, own: u64) -> u64 {
        let Some(counted) = &self.counted else {
            return own;
        };
        let others = KEEPING.load(Ordering::Relaxed) - u64::from(counted.keeps);
        let share = MEMORY_SET.load(Ordering::Relaxed) / (others + 1);
        own.min(share.max(LEAST_MEMORY))
    }

    /// The most bytes from which a queue derives the size of its blocks: every queue has
    /// a few blocks, idle or not.
    pub(crate) fn idle_memory(&self, own: u64) -> u64 {
        match &self.counted {
            None => own,
            Some(_) => {
                let living = LIVING.load(Ordering::Relaxed).max(1);
                own.min(MEMORY_SET.load(Ordering::Relaxed) / living)
            }
        }
    }

    /// The bytes that the queue may keep on disk, of the `own` ones, and whether that is
    /// less. `own_is_named` if its policy names them.
    pub(crate) fn disk(&self, own: u64, own_is_named: bool) -> (u64, bool) {
        let Some(counted) = &self.counted else {
            return (own, false);
        };
        let budget = match DISK_SET.load(Ordering::Relaxed) {
            UNSET if own_is_named => return (own, false),
            UNSET => DISK_DEFAULT.get().copied().unwrap_or(DISK),
            set => set,
        };
        let others = SPILLED.load(Ordering::Relaxed) - u64::from(counted.spilled);
        let share = (budget / (others + 1)).max(LEAST_DISK);
        (own.min(share), share < own)
    }

    /// Counts the queue, which keeps so many bytes in memory now.
    pub(crate) fn keeps(&mut self, bytes: u64) {
        if let Some(counted) = &mut self.counted {
            // Every queue has the least share.
            let kept = counted.keeps;
            count(&KEEPING, &mut counted.keeps, bytes > LEAST_MEMORY);
            if kept && !counted.keeps {
                grown();
            }
        }
    }

    /// Counts the queue, which has files now, or has none.
    pub(crate) fn spilled(&mut self, spilled: bool) {
        if let Some(counted) = &mut self.counted {
            count(&SPILLED, &mut counted.spilled, spilled);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.keeps(0);
        self.spilled(false);
        if self.counted.is_some() {
            LIVING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn count(counter: &AtomicU64, is: &mut bool, now: bool) {
    match (std::mem::replace(is, now), now) {
        (false, true) => drop(counter.fetch_add(1, Ordering::Relaxed)),
        (true, false) => drop(counter.fetch_sub(1, Ordering::Relaxed)),
        _ => {}
    }
}

/// Looks up what is free, for the default. To be called without a lock: a disk may take
/// its time.
pub(crate) fn measure(directory: &Path) {
    DISK_DEFAULT
        .get_or_init(|| file::free_space(directory).map_or(DISK, |free| DISK.min(free / 4)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes() {
        assert_eq!(bytes("4096"), Some(4096));
        assert_eq!(bytes("3KiB"), Some(3072));
        assert_eq!(bytes("2 GiB"), Some(2 << 30));
        for wrong in ["", "KiB", "-1", "1.5MiB", "1kb", "99999999999GiB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
