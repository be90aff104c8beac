//! The watching side.

use std::io;
use std::sync::Arc;

use super::cell::{Kind, Owner};
use super::watcher::{UNKNOWN, Watched};
use super::{Error, Guarantee, Invitation, Mechanism, Names, State};
use crate::process::{Id, Process};
use crate::sys::robust::{AWAITED, DIED, View, Word, is_of_a_thread};

/// Knows whether a peer lives.
///
/// Of a token ([`accept`](Monitor::accept)), or of any process
/// ([`of_process`](Monitor::of_process)). Any thread may use it.
#[derive(Debug)]
pub struct Monitor {
    /// What is looked at. Everything else here is for the time when it does not
    /// say "alive".
    pub(super) word: Word,
    pub(super) source: Source,
}

#[derive(Debug)]
pub(super) enum Source {
    Token {
        /// Its holder, where that can be seen from here.
        holder: Option<Process>,
        kind: Kind,
    },
    Process {
        process: Process,
        _watched: Watched,
    },
}

/// Whether a word says that somebody lives: somebody holds it, and has not died.
#[inline]
pub(super) fn says_alive(word: u32) -> bool {
    word != 0 && word & DIED == 0
}

/// The same of a word as we hold it, with one comparison and one branch, which cost
/// no more than the load: such a word has the bit of those who wait and not that of
/// the dead, so as a signed number it is less than one that has both. False says
/// nothing. (Two tests, as in `says_alive`, cost twice what the load does.)
#[inline]
fn is_plainly_alive(word: u32) -> bool {
    word.cast_signed() < (AWAITED | DIED).cast_signed()
}

impl Monitor {
    /// Watches the token of an invitation.
    ///
    /// If its holder has died since, or has released it, this succeeds, and says
    /// so.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no token's memory, or could be changed or cut
    /// short by others; [`Error::Stale`] if it is of an earlier boot or not the one
    /// that the invitation means; [`Error::Io`] when there is no memory left.
    pub fn accept(invitation: Invitation) -> Result<Monitor, Error> {
        let [cells, _] = invitation.files();
        let view = View::map(cells).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Error::Invalid(error.to_string()),
            io::ErrorKind::Unsupported => Error::Unsupported(error),
            _ => Error::Io(error),
        })?;
        let cell = invitation.cell();
        let view = Arc::new(view);
        let facts = view.facts(cell).and_then(Owner::read);
        let (Some(owner), Some(word)) = (facts, Word::of_cell(&view, cell)) else {
            return Err(Error::Invalid("there is no token in that place".into()));
        };
        if is_of_a_thread(cell) != (owner.kind == Kind::Thread) {
            return Err(Error::Invalid("it is another kind of token".into()));
        }
        if owner.nonce != invitation.nonce() {
            return Err(Error::Stale("its place is that of another token"));
        }
        if !owner.is_of_this_boot() {
            return Err(Error::Stale("it was made before the machine was started"));
        }
        Ok(Monitor {
            source: Source::Token {
                holder: holder(&owner),
                kind: owner.kind,
            },
            word,
        })
    }

    /// Watches a process that need not know of it.
    ///
    /// One thread of this process serves all such monitors. It sleeps until a
    /// process ends.
    ///
    /// # Errors
    /// When there is no memory, descriptor or thread left.
    pub fn of_process(process: &Process) -> Result<Monitor, Error> {
        let watched = Watched::new(process)?;
        Ok(Monitor {
            word: Word::of_flag(&watched.flag),
            source: Source::Process {
                process: process.clone(),
                _watched: watched,
            },
        })
    }

    /// Whether the peer lives: one relaxed load while it does.
    ///
    /// It was so a moment ago. It orders nothing: before reading what a dead peer
    /// has left, ask for the [`state`](Monitor::state).
    #[inline]
    pub fn alive(&self) -> bool {
        is_plainly_alive(self.word.load()) || self.alive_after_all()
    }

    /// In a fork nobody changes the word of a process that has no token.
    #[cold]
    fn alive_after_all(&self) -> bool {
        match &self.source {
            Source::Token { .. } => says_alive(self.word.load()),
            Source::Process { process, .. } => self.word.load() == UNKNOWN && process.is_alive(),
        }
    }

    /// What is known of the peer. What it wrote before it died or released its
    /// token is seen by whoever has been told so here.
    pub fn state(&self) -> State {
        if self.alive() {
            return State::Alive;
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        match &self.source {
            Source::Token { .. } if self.word.load() == 0 => State::Released,
            _ => State::Died,
        }
    }

    /// The process of the peer, where it can be seen from here.
    pub fn process(&self) -> Option<&Process> {
        match &self.source {
            Source::Token { holder, .. } => holder.as_ref(),
            Source::Process { process, .. } => Some(process),
        }
    }

    /// What this monitor can promise.
    pub fn guarantee(&self) -> Guarantee {
        match self.source {
            Source::Token { kind, .. } => Guarantee {
                names: match kind {
                    Kind::Keeper => Names::Image,
                    Kind::Thread => Names::Thread,
                },
                mechanism: Mechanism::RobustWord,
            },
            Source::Process { .. } => Guarantee {
                names: Names::Process,
                mechanism: Mechanism::Watcher,
            },
        }
    }
}

/// The process that holds a token, if it can be seen from here: where numbers are
/// those of another namespace it cannot.
fn holder(owner: &Owner) -> Option<Process> {
    let id = Id::new(owner.pid, Some(owner.inode?)).ok()?;
    Process::open_id(id).ok()
}

#[cfg(test)]
mod tests {
    use super::{AWAITED, DIED, is_plainly_alive, says_alive};

    #[test]
    fn the_short_look_is_never_wrong() {
        // A thread's number has at most 30 bits.
        let numbers = [0, 1, 2, 4_194_304, DIED / 2, DIED - 1];
        for word in numbers {
            assert_eq!(is_plainly_alive(word | AWAITED), says_alive(word | AWAITED));
            for word in [word, word | DIED, word | AWAITED | DIED] {
                assert!(!is_plainly_alive(word), "{word:#x}");
            }
        }
    }
}
