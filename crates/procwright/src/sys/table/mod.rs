//! A descriptor table that a thread shares with nobody.
//!
//! The limit on descriptors is a limit on their numbers in one table, so a
//! thread with a table of its own has room where its process has none.
//!
//! Contract of every platform file:
//!
//! - `leave()`: from now on the calling thread has a table of its own, and that
//!   is empty. For threads of ours that hold no descriptor and never will one of
//!   another thread: dropped here, it would close a number that means something
//!   else.
//! - `Nudge`: wakes such a thread from others, for which no descriptor can be
//!   shared. `new()` is called on the thread, which has all signals blocked;
//!   readable once it was nudged, until `silence()`. `address()` is what others
//!   pass to `nudge(address)`, while the thread exists. That fails where a filter
//!   forbids it, and is lost where the host sets the signal's disposition to
//!   "ignored" at that very moment: who waits for an answer nudges again.

#[cfg(any(target_os = "linux", target_os = "android"))]
#[path = "linux.rs"]
mod imp;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[path = "other.rs"]
mod imp;

pub(crate) use imp::{Address, Nudge, leave, nudge};
