//! The watched side, without a thread of the library: for hosts that can have none.

use std::os::fd::OwnedFd;

use super::owner::{Owner, TokenKind};
use super::{Error, Guarantee, Invitation, Mechanism, Names};
use procwright_os::fork::ForkId;
use procwright_os::robust::{MAX_WORDS, ThreadWord, create_rights_file};
use procwright_os::thread::is_main;

/// Says that the main thread of this process lives, to whoever was invited to
/// watch.
///
/// For hosts that cannot have a thread more: [`Token`](super::Token) starts one, at
/// which Python warns at every `os.fork()` and with which
/// `unshare(CLONE_NEWUSER)` fails. This one starts none. At its first use a child
/// that shares the memory for some microseconds tries what the kernel does.
///
/// It tells less for that. It says that the *thread* has died, so the process may
/// go on: after `pthread_exit` in the main thread, which hardly any program
/// calls. It is for that main thread alone: with any other, whose end is an
/// everyday event, that would be a false alarm waiting to happen, and the kernel
/// leaves the word of another thread that calls `exec` as it is for ever.
///
/// It holds until it is dropped, and then says that it was released. It stays on
/// the thread that made it:
///
/// ```compile_fail
/// fn on_any_thread<T: Send>(_: T) {}
/// on_any_thread(procwright_liveness::ThreadToken::new());
/// ```
///
/// # Cost
/// Two descriptors and three pages each; a process may have 1,024. They are robust
/// locks of the C library's, of which the kernel looks at the newest 2,048 of a
/// thread: that is shared with locks of your own.
///
/// # Fork
/// A fork has no part in it: dropping it there does nothing, and monitors tell of
/// the thread that made it.
///
/// # Platform
/// Linux with glibc or musl. Elsewhere [`Error::Unsupported`], as under a sandbox
/// that denies `set_robust_list` or `get_robust_list`.
#[derive(Debug)]
pub struct ThreadToken {
    word: ThreadWord,
    /// The memory in which survivors agree who cleans up.
    rights: OwnedFd,
    nonce: u64,
    process: ForkId,
}

impl ThreadToken {
    /// Makes a token of the calling thread, which has to be the main one.
    ///
    /// # Errors
    /// [`Error::NotMain`], [`Error::Unsupported`], [`Error::Full`], or
    /// [`Error::Io`] when there is no memory, descriptor or process left.
    pub fn new() -> Result<ThreadToken, Error> {
        if !is_main() {
            return Err(Error::NotMain);
        }
        let owner = Owner::ourselves(TokenKind::Thread);
        let word = ThreadWord::hold(&owner.facts()).map_err(Error::no_token)?;
        Ok(ThreadToken {
            rights: create_rights_file().map_err(Error::no_token)?,
            word: word.ok_or(Error::Full(MAX_WORDS))?,
            nonce: owner.nonce,
            process: ForkId::current(),
        })
    }

    /// Makes an invitation, to be sent to a watcher or inherited by it.
    ///
    /// # Errors
    /// When no descriptor is left; [`Error::Forked`] in a fork.
    pub fn invite(&self) -> Result<Invitation, Error> {
        if !self.process.is_current() {
            return Err(Error::Forked);
        }
        let cells = self.word.file().try_clone_to_owned()?;
        Ok(Invitation::new(
            [cells, self.rights.try_clone()?],
            self.word.cell(),
            self.nonce,
        ))
    }

    /// What a monitor of it can promise.
    pub fn guarantee(&self) -> Guarantee {
        Guarantee {
            names: Names::Thread,
            mechanism: Mechanism::RobustWord,
        }
    }
}
