//! Words in shared memory that the kernel marks when their holder dies: the robust
//! futexes of `set_robust_list(2)`.
//!
//! Each thread may have a list of words. When it ends, however it does, the kernel
//! walks that list and sets [`OWNER_DIED`] in every word that has the thread's
//! number, before it says in any other way that the process has ended. A process that
//! maps the word needs a load and nothing more to know.
//!
//! | Side | Types |
//! |---|---|
//! | holder of words | [`HolderThread`] and [`HeldWord`] (a thread of ours), [`ThreadWord`] (the calling thread), [`PlacedWord`] (the calling thread, at a place of another's file) |
//! | watcher | [`MappedCells`], [`LiveWord`] |
//! | survivors, who agree on one that cleans up | [`MappedRights`], [`HeldRight`] |
//! | sleepers | [`sleep()`], [`wake`], [`PendingOp`], [`sleep_alone`], [`sleep_on_many`] |
//!
//! A file of cells is a page. Each cell is a cache line, with a word first and
//! [`Facts`] behind it. Beside it is a file of rights, a page too, with one right for
//! each cell. A word is in a cell that was never another's: a watcher that comes later
//! must not take the next holder for this one.
//!
//! The kernel wakes one sleeper of a dead holder. A sleeper that was woken has woken
//! the others when `sleep` returns, and if it is killed before, the kernel wakes
//! another ([`PendingOp`]).
//!
//! [`Flag`] serves where there is no such word: a word of this process that a thread
//! of ours changes. [`LiveWord`] is either.

// Words of either kind.
mod flag;
mod live_word;

// The robust list, and the memory of words.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod list;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod pages;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod set_robust_list;

// The holder's side: a thread of ours, and the calling thread.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod holder_thread;
#[cfg(all(
    not(procwright_loom),
    target_os = "linux",
    any(target_env = "gnu", target_env = "musl")
))]
mod placed_word;
#[cfg(all(target_os = "linux", any(target_env = "gnu", target_env = "musl")))]
mod robust_lock;
#[cfg(all(target_os = "linux", any(target_env = "gnu", target_env = "musl")))]
mod thread_word;
#[cfg(not(all(target_os = "linux", any(target_env = "gnu", target_env = "musl"))))]
#[path = "no_thread_word.rs"]
mod thread_word;

// The watchers' side, and the survivors'.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod mapped_cells;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod mapped_rights;

// Sleeping on words.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod pending_op;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sleep;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod imp {
    pub use super::holder_thread::{HeldRight, HeldWord, HolderThread};
    pub use super::mapped_cells::MappedCells;
    pub use super::mapped_rights::MappedRights;
    pub use super::pages::create_rights_file;
    pub use super::pending_op::PendingOp;
    pub use super::sleep::{
        MANY, may_sleep_on_many, sleep, sleep_alone, sleep_on_many, wake, wake_alone,
    };
}

pub use flag::Flag;
#[cfg_attr(procwright_loom, expect(unused_imports, reason = "no queues there"))]
pub use imp::PendingOp;
pub use imp::{HeldRight, HeldWord, HolderThread, MappedCells, MappedRights, create_rights_file};
pub use imp::{MANY, may_sleep_on_many, sleep, sleep_alone, sleep_on_many, wake, wake_alone};
pub use live_word::LiveWord;
#[cfg(all(
    not(procwright_loom),
    target_os = "linux",
    any(target_env = "gnu", target_env = "musl")
))]
pub use placed_word::PlacedWord;
#[cfg(not(all(target_os = "linux", any(target_env = "gnu", target_env = "musl"))))]
#[cfg_attr(procwright_loom, expect(unused_imports, reason = "no queues there"))]
pub use thread_word::PlacedWord;
pub use thread_word::ThreadWord;

/// The bit that the kernel sets in a word whose holder died with it.
#[doc(alias = "FUTEX_OWNER_DIED")]
pub const OWNER_DIED: u32 = 1 << 30;

/// The bit that says that a thread may sleep on the word: without it the kernel wakes
/// none.
#[doc(alias = "FUTEX_WAITERS")]
pub const WAITERS: u32 = 1 << 31;

/// The bits with the number of the thread that holds the word.
#[doc(alias = "FUTEX_TID_MASK")]
pub const TID_MASK: u32 = (1 << 30) - 1;

/// The value of a right that no process will have any more: held by none, and not
/// free. The kernel reads no holder in it, so that it wakes a sleeper if the process
/// that wrote the value is killed before it wakes them.
pub const RIGHT_SPENT: u32 = WAITERS;

/// The most words of its own that a process may hold at a time. The kernel walks 2,048
/// entries of a list and no more (`ROBUST_LIST_LIMIT`).
#[doc(alias = "ROBUST_LIST_LIMIT")]
pub const MAX_WORDS: usize = 1024;

/// The most rights that a process may hold at a time.
pub const MAX_RIGHTS: usize = 512;

/// True if a word says that its holder lives: it has a holder that has not died.
#[inline]
pub fn says_alive(word: u32) -> bool {
    word != 0 && word & OWNER_DIED == 0
}

/// True if no process holds a right, and one may: it was never held, or was given
/// back, or its holder has died.
pub fn is_free(right: u32) -> bool {
    right == 0 || right & OWNER_DIED != 0
}

/// How many numbers stand beside a word.
pub const FACTS: usize = 15;

/// The numbers that stand beside a word.
pub type Facts = [u32; FACTS];

/// Size of a cell, with its word first: a cache line, so that no two words share one.
const CELL: usize = 4 * (1 + FACTS);

/// How many cells a file has.
fn cells() -> usize {
    page_size() / CELL
}

/// True if the cell of this number is that of a [`ThreadWord`].
pub fn is_thread_cell(cell: usize) -> bool {
    cell >= cells()
}

/// Size of a file of cells: a page, the least that can be mapped.
fn page_size() -> usize {
    rustix::param::page_size()
}
