//! Words in shared memory that the kernel marks when their holder dies.
//!
//! Each thread may have a list of words (`set_robust_list(2)`). When it ends,
//! however it does, the kernel walks that list and sets [`DIED`] in every word
//! that has the thread's number, before it says in any other way that the
//! process has ended. Whoever maps the word needs a load and nothing more to
//! know.
//!
//! Contract of every platform file:
//!
//! - `Ledger::start()`: a thread that holds the words for as long as this process
//!   runs this program. Once a process, never given back. Where words are not marked
//!   there is no such thread, and they tell of releases only: `marks()`.
//!   `Unsupported` where there is no memory that can be sealed.
//! - `hold(facts)`: a word that says from now on that the process lives, with the
//!   facts beside it, in a cell that was never another's: who looks at it later
//!   must not take the next for this one. Its file is sealed: whoever gets it can
//!   map it for reading only, and nobody can make it shorter. `release(held)`: it
//!   says that it was released, and wakes whoever sleeps on it.
//!   Beside it is a file of rights, of the same size, that everybody can write to
//!   and nobody can make shorter.
//! - `ThreadWord::hold(facts)`: the same by the thread that asks, whose own end it
//!   tells of. In a file of its own, at the place of the number [`cells`] and then
//!   so many numbers of 32 bits as stand before it; the facts are beside the first
//!   cell.
//! - `PlacedWord::hold(file, at)`: the same at a place of somebody's file. Whichever
//!   thread drops it, the word says from then on that nobody holds it.
//! - `View::map(file)`: somebody's cells for reading, refused if they could be
//!   changed under us by anybody but the kernel and the one who made them.
//! - `Rights::map(file)`: somebody's rights. `claim(rights, cell)`: if nobody has
//!   that one it is ours, and free again when we die. `give(claimed, value)`: it
//!   says that value from now on, and wakes whoever sleeps on it. `Unsupported`
//!   where words are not marked.
//! - `sleep(word, while_it_is, deadline)`, `wake(word)`: until the word is another
//!   than that, or somebody wakes. The kernel wakes one sleeper of a dead holder:
//!   whoever was woken has woken the others when it returns, and if it is killed
//!   before, the kernel wakes another.
//! - `Pending::on(word, what_it_is)`: that rule, for who sleeps on the word in another
//!   way: as long as it is there, until the others have been woken.
//! - `sleep_on_many(words)`, where it `may_sleep_on_many()`: the same for many words,
//!   without a care for others who sleep there. `sleep_alone(word)`,
//!   `wake_alone(word)`: a sleep that somebody else can end who cannot change the
//!   word, and without waking those who sleep in other ways.
//!
//! [`Flag`] is the same for who has no such word: a word of ours that a thread of
//! ours changes. [`Word`] is either.

mod flag;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod keeper;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod ledger;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod list;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod memory;
#[cfg(all(target_os = "linux", any(target_env = "gnu", target_env = "musl")))]
mod mutex;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod pending;
#[cfg(all(
    not(procwright_loom),
    target_os = "linux",
    any(target_env = "gnu", target_env = "musl")
))]
mod placed;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod rights;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sleep;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod view;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod imp {
    pub(crate) use super::ledger::{Claimed, Held, Ledger};
    pub(crate) use super::memory::rights;
    pub(crate) use super::pending::Pending;
    pub(crate) use super::rights::Rights;
    pub(crate) use super::sleep::{
        MANY, may_sleep_on_many, sleep, sleep_alone, sleep_on_many, wake, wake_alone,
    };
    pub(crate) use super::view::View;
}

#[cfg(not(all(target_os = "linux", any(target_env = "gnu", target_env = "musl"))))]
#[path = "no_mutex.rs"]
mod mutex;
mod word;

pub(crate) use flag::Flag;
#[cfg_attr(procwright_loom, expect(unused_imports, reason = "no queues there"))]
pub(crate) use imp::Pending;
pub(crate) use imp::{Claimed, Held, Ledger, Rights, View, rights, sleep, wake};
pub(crate) use imp::{MANY, may_sleep_on_many, sleep_alone, sleep_on_many, wake_alone};
#[cfg(not(all(target_os = "linux", any(target_env = "gnu", target_env = "musl"))))]
#[cfg_attr(procwright_loom, expect(unused_imports, reason = "no queues there"))]
pub(crate) use mutex::PlacedWord;
pub(crate) use mutex::ThreadWord;
#[cfg(all(
    not(procwright_loom),
    target_os = "linux",
    any(target_env = "gnu", target_env = "musl")
))]
pub(crate) use placed::PlacedWord;
pub(crate) use word::Word;

/// The holder has died with the word in hand: the kernel sets this bit.
pub(crate) const DIED: u32 = 1 << 30;

/// Somebody may sleep on it: without this bit the kernel wakes nobody.
pub(crate) const AWAITED: u32 = 1 << 31;

/// The number of the thread that holds it.
pub(crate) const TID: u32 = (1 << 30) - 1;

/// What a right says when nobody will have it any more: held by nobody, and not
/// free. The kernel takes the number in it for none, so that it wakes a sleeper if
/// who wrote it is killed before waking them.
pub(crate) const DONE: u32 = AWAITED;

/// How many words of its own a process may hold at a time. The kernel walks 2,048
/// entries of a list and no more.
pub(crate) const MOST: usize = 1024;

/// How many rights.
pub(crate) const CLAIMS: usize = 512;

/// Whether a word says that somebody lives: somebody holds it, and has not died.
#[inline]
pub(crate) fn says_alive(word: u32) -> bool {
    word != 0 && word & DIED == 0
}

/// Whether nobody has a right, and somebody may: nobody ever had it, or he has
/// given it back, or has died.
pub(crate) fn is_free(right: u32) -> bool {
    right == 0 || right & DIED != 0
}

/// The numbers beside a word.
pub(crate) const FACTS: usize = 15;

/// What stands beside a word.
pub(crate) type Facts = [u32; FACTS];

/// A cell takes this much, with its word first: a cache line, so that no two
/// words share one.
const CELL: usize = 4 * (1 + FACTS);

/// How many cells a file has.
fn cells() -> usize {
    sheet() / CELL
}

/// Whether the cell of this number is that of a [`ThreadWord`].
pub(crate) fn is_of_a_thread(cell: usize) -> bool {
    cell >= cells()
}

/// What a file of cells takes: a page, the least that can be mapped.
fn sheet() -> usize {
    rustix::param::page_size()
}
