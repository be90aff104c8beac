//! The watching side.

use std::io;
use std::sync::Arc;

use super::futex_watch::FutexWatch;
use super::holder::HolderLookup;
use super::owner::{Owner, TokenKind};
use super::process_watch::{ProcessWatch, UNKNOWN};
use super::unmarked::UnmarkedWatch;
use super::{Error, Guarantee, Invitation, Mechanism, Names, State};
use procwright_os::fork::OnceBox;
use procwright_os::robust::{
    Flag, LiveWord, MappedCells, MappedRights, OWNER_DIED, WAITERS, is_thread_cell, says_alive,
};
use procwright_process::Process;

/// Knows whether a peer lives.
///
/// It watches a token ([`accept`](Monitor::accept)) or any process
/// ([`of_process`](Monitor::of_process)). Any thread may use it.
#[derive(Debug)]
pub struct Monitor {
    /// The word that is looked at. Every other field is for the time when it does not
    /// say "alive".
    pub(super) word: LiveWord,
    pub(super) source: MonitorSource,
    /// The descriptor for event loops, once it was asked for.
    pub(super) futex_watch: OnceBox<FutexWatch>,
    /// A watch of the holder's process, which wakes those who sleep on the word when
    /// the process ends. Made at the first long sleep; none if it cannot be had.
    pub(super) guard: OnceBox<Option<UnmarkedWatch>>,
}

#[derive(Debug)]
pub(super) enum MonitorSource {
    Token {
        /// The holder, where it can be seen from here.
        holder: Option<Process>,
        kind: TokenKind,
        /// Set if the kernel does not mark the word. The word that is looked at first
        /// never says "alive" then.
        unmarked: Option<UnmarkedWatch>,
        /// The memory in which survivors agree who cleans up.
        rights: MappedRights,
        cell: usize,
    },
    Process {
        process: Process,
        watched: ProcessWatch,
    },
}

/// Whether a word as procwright holds it says "alive", by one comparison and one
/// branch, which cost no more than the load. Such a word has the bit `WAITERS` and not
/// `OWNER_DIED`, so as a signed number it is less than one that has both. False says
/// nothing; [`says_alive`] tells then, with two tests that cost twice the load.
#[inline]
fn is_plainly_alive(word: u32) -> bool {
    word.cast_signed() < (WAITERS | OWNER_DIED).cast_signed()
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
        let view = MappedCells::map(cells).map_err(refused)?;
        let rights = MappedRights::map(rights).map_err(refused)?;
        let cell = invitation.cell();
        let view = Arc::new(view);
        let facts = view.facts(cell).and_then(Owner::read);
        let (Some(owner), Some(word)) = (facts, LiveWord::of_cell(&view, cell)) else {
            return Err(Error::Invalid("there is no token in that place".into()));
        };
        if is_thread_cell(cell) != (owner.kind == TokenKind::Thread) {
            return Err(Error::Invalid("it is another kind of token".into()));
        }
        if owner.nonce != invitation.nonce() {
            return Err(Error::Stale("its place is that of another token"));
        }
        if !owner.is_of_this_boot() {
            return Err(Error::Stale("it was made before the machine was started"));
        }
        let seen = HolderLookup::find(&owner.holder);
        let (word, unmarked, holder) = match owner.kind {
            TokenKind::Keeper | TokenKind::Thread => (word, None, seen.process()),
            TokenKind::Unmarked => {
                if let HolderLookup::Hidden = seen {
                    return Err(hidden(&owner));
                }
                let holder = seen.process();
                // A word that is never alive at the first look, so that marked words pay
                // nothing for this case.
                let nothing = LiveWord::of_flag(&Arc::new(Flag::new(0)?));
                (
                    nothing,
                    Some(UnmarkedWatch::new(word, holder.as_ref())?),
                    holder,
                )
            }
        };
        let source = MonitorSource::Token {
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
        let watched = ProcessWatch::new(process)?;
        let word = LiveWord::of_flag(&watched.flag);
        let source = MonitorSource::Process {
            process: process.clone(),
            watched,
        };
        Ok(Monitor::new(word, source))
    }

    fn new(word: LiveWord, source: MonitorSource) -> Monitor {
        Monitor {
            word,
            source,
            futex_watch: OnceBox::new(),
            guard: OnceBox::new(),
        }
    }

    /// Whether the peer lives: one relaxed load while it does.
    ///
    /// The answer was true a moment ago. The load orders nothing: before reading what
    /// a dead peer has left, ask for the [`state`](Monitor::state).
    #[inline]
    pub fn alive(&self) -> bool {
        is_plainly_alive(self.word.load()) || self.is_alive_by_second_look()
    }

    /// The slow look. In a fork no thread changes the flag of a process without a
    /// token, and the kernel does not mark the words of all tokens.
    #[cold]
    fn is_alive_by_second_look(&self) -> bool {
        match &self.source {
            MonitorSource::Token { unmarked, .. } => match unmarked {
                None => says_alive(self.word.load()),
                Some(unmarked) => unmarked.alive(),
            },
            MonitorSource::Process { process, .. } => {
                self.word.load() == UNKNOWN && process.is_alive()
            }
        }
    }

    /// What is known of the peer. A caller that is told of its death or release here
    /// sees all that it wrote before.
    pub fn state(&self) -> State {
        if self.alive() {
            return State::Alive;
        }
        // Orders the reads of the caller behind the load of the word, which was
        // relaxed. The store that it has read is the holder's, the kernel's, or that of
        // a thread which the kernel has told of the end.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        let released = match &self.source {
            MonitorSource::Token { unmarked, .. } => match unmarked {
                None => self.word.load() == 0,
                Some(unmarked) => unmarked.was_released(),
            },
            MonitorSource::Process { .. } => false,
        };
        match released {
            true => State::Released,
            false => State::Died,
        }
    }

    /// The [`state`](Monitor::state), with the kernel asked as well: [`State::Died`]
    /// if the process of the peer has ended although the word says that it lives.
    /// That happens only if the memory or the threads of the holder were meddled
    /// with, or the machine was restored from a snapshot; for a process without a
    /// token the kernel knows some microseconds earlier. One or two system calls
    /// while the peer lives, none if its process cannot be seen from here.
    pub fn confirm(&self) -> State {
        let state = self.state();
        let ended = |process: &Process| !process.is_alive();
        if state != State::Alive || !self.process().is_some_and(ended) {
            return state;
        }
        self.has_ended();
        // The token may have been released just before the end.
        match self.state() {
            State::Alive => State::Died,
            state => state,
        }
    }

    /// Notes an end that a caller was told of: no later look shall find the peer
    /// alive, although the watching thread may not have noticed yet.
    pub(super) fn has_ended(&self) {
        match &self.source {
            MonitorSource::Process { watched, .. } => watched.has_ended(),
            MonitorSource::Token { unmarked, .. } => {
                unmarked.as_ref().inspect(|unmarked| unmarked.has_ended());
            }
        }
    }

    /// The process of the peer, where it can be seen from here.
    pub fn process(&self) -> Option<&Process> {
        match &self.source {
            MonitorSource::Token { holder, .. } => holder.as_ref(),
            MonitorSource::Process { process, .. } => Some(process),
        }
    }

    /// What this monitor can promise.
    pub fn guarantee(&self) -> Guarantee {
        match self.source {
            MonitorSource::Token { kind, .. } => kind.guarantee(),
            MonitorSource::Process { .. } => Guarantee {
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
    use super::{OWNER_DIED, WAITERS, is_plainly_alive, says_alive};

    #[test]
    fn the_short_look_is_never_wrong() {
        // A thread's number has at most 30 bits.
        let numbers = [0, 1, 2, 4_194_304, OWNER_DIED / 2, OWNER_DIED - 1];
        for word in numbers {
            assert_eq!(is_plainly_alive(word | WAITERS), says_alive(word | WAITERS));
            for word in [word, word | OWNER_DIED, word | WAITERS | OWNER_DIED] {
                assert!(!is_plainly_alive(word), "{word:#x}");
            }
        }
    }
}
