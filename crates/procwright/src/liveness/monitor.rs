//! The watching side.

use std::io;
use std::sync::Arc;

use super::cell::{Kind, Owner};
use super::herald::Heralded;
use super::holder::Seen;
use super::unmarked::Unmarked;
use super::watcher::{UNKNOWN, Watched};
use super::{Error, Guarantee, Invitation, Mechanism, Names, State};
use crate::process::Process;
use crate::sys::fork::Once;
use crate::sys::robust::{AWAITED, DIED, Flag, Rights, View, Word, is_of_a_thread, says_alive};

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
    /// For event loops, once it was asked for.
    pub(super) heralded: Once<Heralded>,
    /// What wakes who sleeps on the word of a token if its holder's process ends,
    /// once somebody sleeps long; none if it cannot be had.
    pub(super) guard: Once<Option<Unmarked>>,
}

#[derive(Debug)]
pub(super) enum Source {
    Token {
        /// Its holder, where that can be seen from here.
        holder: Option<Process>,
        kind: Kind,
        /// Where it can only be released; the word that is looked at first says
        /// nothing then.
        unmarked: Option<Unmarked>,
        /// Where survivors agree who cleans up.
        rights: Rights,
        cell: usize,
    },
    Process {
        process: Process,
        watched: Watched,
    },
}

/// What [`says_alive`] says, of a word as we hold it, with one comparison and one
/// branch, which cost no more than the load: such a word has the bit of those who
/// wait and not that of the dead, so as a signed number it is less than one that has
/// both. False says nothing. (Two tests cost twice what the load does.)
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
    /// that the invitation means; [`Error::Io`] when there is no memory left;
    /// [`Error::Unsupported`] if the holder was made where the kernel does not mark
    /// words, so that its process has to be watched, and that cannot be seen from
    /// here.
    pub fn accept(invitation: Invitation) -> Result<Monitor, Error> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => Error::Invalid(error.to_string()),
            _ => Error::no_token(error),
        };
        let [cells, rights] = invitation.files();
        let view = View::map(cells).map_err(refused)?;
        let rights = Rights::map(rights).map_err(refused)?;
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
        let seen = Seen::of(&owner.holder);
        let (word, unmarked, holder) = match owner.kind {
            Kind::Keeper | Kind::Thread => (word, None, seen.process()),
            Kind::Unmarked => {
                if let Seen::Hidden = seen {
                    return Err(hidden(&owner));
                }
                let holder = seen.process();
                // Not alive at the first look, so that whoever is looked at in the
                // usual way pays nothing for this.
                let nothing = Word::of_flag(&Arc::new(Flag::new(0)?));
                (nothing, Some(Unmarked::new(word, holder.as_ref())?), holder)
            }
        };
        let source = Source::Token {
            holder,
            kind: owner.kind,
            unmarked,
            rights,
            cell,
        };
        Ok(Monitor::new(word, source))
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
        let word = Word::of_flag(&watched.flag);
        let source = Source::Process {
            process: process.clone(),
            watched,
        };
        Ok(Monitor::new(word, source))
    }

    fn new(word: Word, source: Source) -> Monitor {
        Monitor {
            word,
            source,
            heralded: Once::new(),
            guard: Once::new(),
        }
    }

    /// Whether the peer lives: one relaxed load while it does.
    ///
    /// It was so a moment ago. It orders nothing: before reading what a dead peer
    /// has left, ask for the [`state`](Monitor::state).
    #[inline]
    pub fn alive(&self) -> bool {
        is_plainly_alive(self.word.load()) || self.alive_after_all()
    }

    /// In a fork nobody changes the word of a process that has no token. And there
    /// are tokens whose word the kernel does not mark.
    #[cold]
    fn alive_after_all(&self) -> bool {
        match &self.source {
            Source::Token { unmarked, .. } => match unmarked {
                None => says_alive(self.word.load()),
                Some(unmarked) => unmarked.alive(),
            },
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
        let released = match &self.source {
            Source::Token { unmarked, .. } => match unmarked {
                None => self.word.load() == 0,
                Some(unmarked) => unmarked.was_released(),
            },
            Source::Process { .. } => false,
        };
        match released {
            true => State::Released,
            false => State::Died,
        }
    }

    /// The same, and the kernel is asked as well: [`State::Died`] if the process of
    /// the peer has ended, although the word says that it lives. That cannot be
    /// unless somebody meddles with the memory or the threads of the holder, or
    /// this machine was restored from a snapshot; for a process without a token
    /// the kernel knows some microseconds earlier. One or two system calls while
    /// the peer lives; the same as [`state`](Monitor::state) if its process cannot
    /// be seen from here.
    pub fn confirm(&self) -> State {
        let state = self.state();
        let ended = |process: &Process| !process.is_alive();
        if state != State::Alive || !self.process().is_some_and(ended) {
            return state;
        }
        self.has_ended();
        // It may have been released just before the end.
        match self.state() {
            State::Alive => State::Died,
            state => state,
        }
    }

    /// Somebody was told so, and shall not find it alive afterwards, although the
    /// thread that is told may not have come to it yet.
    pub(super) fn has_ended(&self) {
        match &self.source {
            Source::Process { watched, .. } => watched.has_ended(),
            Source::Token { unmarked, .. } => {
                unmarked.as_ref().inspect(|unmarked| unmarked.has_ended());
            }
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
            Source::Token { kind, .. } => kind.guarantee(),
            Source::Process { .. } => Guarantee {
                names: Names::Process,
                mechanism: Mechanism::Watcher,
            },
        }
    }
}

fn hidden(owner: &Owner) -> Error {
    Error::unsupported(format!(
        "this liveness token cannot be watched from here: its holder, process {} of its pid \
         namespace, cannot be seen, and the kernel does not mark its words",
        owner.holder.pid
    ))
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
