//! The watched side: a word held by the keeper thread of the process.

use super::owner::{Owner, TokenKind};
use super::{Error, Guarantee, Invitation};
use procwright_os::fork::{ForkId, PerProcess};
use procwright_os::robust::{HeldWord, HolderThread, MAX_WORDS};
use procwright_os::sync::Mutex;

/// Says that this process lives, to whoever was invited to watch.
///
/// It holds until it is dropped, and then says that it was released. If the process
/// ends in any other way, or runs another program, it says that the process has
/// died. It does not matter which thread made it, or whether that still runs.
///
/// A process may have 1,024 at a time.
///
/// # Cost
/// The first starts a thread that sleeps until the process ends: one for all, with
/// a stack of 128 KiB. Python warns at an `os.fork()` of a process with threads,
/// `unshare(CLONE_NEWUSER)` fails in one, and a process whose main thread has called
/// `pthread_exit` does not end before its last thread. Each takes 64 bytes; two
/// descriptors are taken for each 64 of them.
///
/// # Fork
/// A fork has no part in it: dropping it there does nothing, and monitors tell of
/// the process that made it.
///
/// # Platform
/// Linux; elsewhere [`Error::Unsupported`], and [`Monitor::of_process`] works.
///
/// Under a sandbox that denies `set_robust_list`, or a kernel that takes the list
/// and never looks at it, a token is less: monitors are told of its release by the
/// word, and of the end of its process as of any other's, by a thread of their own.
/// It then stands for the process and not for its program; a look costs two loads and
/// a call; and a monitor can only be had where that process can be seen.
/// [`guarantee`](Token::guarantee) tells.
///
/// [`Monitor::of_process`]: super::Monitor::of_process
#[derive(Debug)]
pub struct Token {
    held: HeldWord,
    nonce: u64,
    ledger: &'static HolderThread,
    process: ForkId,
}

/// The ledger of this process, once a token was asked for.
static LEDGER: PerProcess<Mutex<Option<&'static HolderThread>>> = PerProcess::new();

impl Token {
    /// Makes a token of this process. The first one starts the keeper thread.
    ///
    /// # Errors
    /// [`Error::Unsupported`], [`Error::Full`], or [`Error::Io`] when there is no
    /// memory, descriptor or thread left.
    pub fn new() -> Result<Token, Error> {
        let ledger = ledger()?;
        let owner = Owner::ourselves(kind(ledger));
        let held = ledger.hold(&owner.facts())?.ok_or(Error::Full(MAX_WORDS))?;
        Ok(Token {
            held,
            nonce: owner.nonce,
            ledger,
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
        let [cells, rights] = self.held.files();
        let files = [cells.try_clone_to_owned()?, rights.try_clone_to_owned()?];
        Ok(Invitation::new(files, self.held.cell(), self.nonce))
    }

    /// What a monitor of it can promise.
    pub fn guarantee(&self) -> Guarantee {
        kind(self.ledger).guarantee()
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        // The word is not mapped in a fork, and not the fork's to release.
        if self.process.is_current() {
            self.ledger.release(&self.held);
        }
    }
}

fn kind(ledger: &HolderThread) -> TokenKind {
    match ledger.marks() {
        true => TokenKind::Keeper,
        false => TokenKind::Unmarked,
    }
}

pub(super) fn ledger() -> Result<&'static HolderThread, Error> {
    let mut ledger = LEDGER.get().lock();
    if let Some(ledger) = *ledger {
        return Ok(ledger);
    }
    let started = HolderThread::start().map_err(Error::no_token)?;
    // Never freed, as the thread that holds its words never ends.
    Ok(ledger.insert(Box::leak(Box::new(started))))
}
