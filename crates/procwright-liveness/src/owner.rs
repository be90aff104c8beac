//! The owner of a word, as it stands beside the word in shared memory.
//!
//! | number | |
//! |---|---|
//! | 0 | version of this table |
//! | 1 | process number, in the holder's namespace |
//! | 2, 3 | nonce: no other token has it |
//! | 4, 5 | inode of the process in pidfs, 0 if it has none |
//! | 6, 7 | when it was started, in clock ticks since boot |
//! | 8 to 11 | the boot, 0 if it cannot be known |
//! | 12 | holder of the word: 0 the keeper thread of the process, 1 a thread of the host, 2 nothing that the kernel knows of |
//! | 13, 14 | the pid namespace, 0 if it cannot be known |

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::holder::HolderId;
use super::{Guarantee, Mechanism, Names};
use procwright_os::proc;
use procwright_os::robust::{FACTS, Facts};

const VERSION: u32 = 1;

/// The holder of a word, whose end the word tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// The keeper thread, which does nothing else and ends with the program.
    Keeper = 0,
    /// A thread of the host program.
    Thread = 1,
    /// No thread: the kernel does not mark the word, which tells of releases only.
    Unmarked = 2,
}

impl TokenKind {
    pub(super) fn guarantee(self) -> Guarantee {
        let (names, mechanism) = match self {
            TokenKind::Keeper => (Names::Image, Mechanism::RobustWord),
            TokenKind::Thread => (Names::Thread, Mechanism::RobustWord),
            TokenKind::Unmarked => (Names::Process, Mechanism::Watcher),
        };
        Guarantee { names, mechanism }
    }

    fn read(number: u32) -> Option<TokenKind> {
        [TokenKind::Keeper, TokenKind::Thread, TokenKind::Unmarked]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

/// The process that owns a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) holder: HolderId,
    pub(super) nonce: u64,
    /// The boot in which it was made, 0 if not known.
    boot: u128,
    pub(super) kind: TokenKind,
}

impl Owner {
    /// This process, with a new nonce.
    pub(super) fn ourselves(kind: TokenKind) -> Owner {
        Owner {
            holder: HolderId::ourselves(),
            nonce: nonce(),
            boot: proc::boot_id().unwrap_or(0),
            kind,
        }
    }

    /// Whether the owner was made since this machine was started, as far as that can
    /// be known.
    pub(super) fn is_of_this_boot(&self) -> bool {
        let ours = proc::boot_id().unwrap_or(0);
        self.boot == 0 || ours == 0 || self.boot == ours
    }

    pub(super) fn facts(&self) -> Facts {
        let mut facts = [0; FACTS];
        let holder = &self.holder;
        facts[0] = VERSION;
        facts[1] = holder.pid.cast_unsigned();
        facts[2..4].copy_from_slice(&halves(self.nonce));
        facts[4..6].copy_from_slice(&halves(holder.inode.unwrap_or(0)));
        facts[6..8].copy_from_slice(&halves(holder.start_ticks));
        facts[8..10].copy_from_slice(&halves(self.boot as u64));
        facts[10..12].copy_from_slice(&halves((self.boot >> 64) as u64));
        facts[12] = self.kind as u32;
        facts[13..15].copy_from_slice(&halves(holder.namespace.unwrap_or(0)));
        facts
    }

    /// Reads the owner. The memory is another process's and may hold anything; none if
    /// it is not of this version.
    pub(super) fn read(facts: &[AtomicU32; FACTS]) -> Option<Owner> {
        // Relaxed: an invitation is made after the facts are written, and its way here
        // orders these loads behind that. What they say is checked.
        let at = |i: usize| facts[i].load(Ordering::Relaxed);
        let whole = |i: usize| u64::from(at(i)) | u64::from(at(i + 1)) << 32;
        if at(0) != VERSION {
            return None;
        }
        Some(Owner {
            holder: HolderId {
                pid: at(1).cast_signed(),
                inode: Some(whole(4)).filter(|inode| *inode != 0),
                start_ticks: whole(6),
                namespace: Some(whole(13)).filter(|namespace| *namespace != 0),
            },
            nonce: whole(2),
            boot: u128::from(whole(8)) | u128::from(whole(10)) << 64,
            kind: TokenKind::read(at(12))?,
        })
    }
}

fn halves(whole: u64) -> [u32; 2] {
    [whole as u32, (whole >> 32) as u32]
}

/// A number that is unique as far as chance goes, and not 0. It is no secret.
#[doc(hidden)]
pub fn nonce() -> u64 {
    // An atomic and no lock, which a fork could inherit held.
    static MADE: AtomicU64 = AtomicU64::new(0);
    // The keys of the standard library's hash maps are random in each process,
    // and a fork has another number.
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(MADE.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    hasher.finish() | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for kind in [TokenKind::Keeper, TokenKind::Thread, TokenKind::Unmarked] {
            let owner = Owner::ourselves(kind);
            let facts = owner.facts().map(AtomicU32::new);
            assert_eq!(Owner::read(&facts), Some(owner));
            assert!(owner.is_of_this_boot());
            let mut other = owner;
            other.boot ^= 1 << 100;
            assert!(!other.is_of_this_boot());
            facts[12].store(7, Ordering::Relaxed);
            assert_eq!(Owner::read(&facts), None);
            facts[12].store(kind as u32, Ordering::Relaxed);
            facts[0].store(7, Ordering::Relaxed);
            assert_eq!(Owner::read(&facts), None);
        }
    }

    #[test]
    fn nonces_differ() {
        let mut all: Vec<_> = (0..1000).map(|_| nonce()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1000);
    }
}
