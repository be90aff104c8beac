//! Whether the receiver lives: one load.
//!
//! The one place that knows what that word is: a liveness token of the receiver's
//! process, for now.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::Error;
use crate::liveness::{self, Invitation, Mechanism, Monitor, Token};
use crate::sys::robust::{DIED, View, Word, wake};

/// The receiver's side. It says that the receiver is there until it is dropped.
#[derive(Debug)]
pub(super) struct Life(Token);

impl Life {
    pub(super) fn new() -> Result<Life, Error> {
        Ok(Life(Token::new().map_err(told)?))
    }

    pub(super) fn invite(&self) -> Result<Invitation, Error> {
        self.0.invite().map_err(told)
    }
}

/// A sender's side.
#[derive(Debug)]
pub(super) struct Watch {
    monitor: Monitor,
    word: Word,
}

/// What a receiver is that does not live any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Died,
    Closed,
}

impl Watch {
    pub(super) fn accept(invitation: Invitation) -> Result<Watch, Error> {
        // Mapped once more, since a monitor keeps its word to itself; it checks
        // what it maps.
        let view = View::map(std::os::fd::AsFd::as_fd(&invitation)).map_err(Error::of)?;
        let cell = usize::from_str_radix(&invitation.ticket()[..8], 16);
        let word = cell
            .ok()
            .and_then(|cell| Word::of_cell(&Arc::new(view), cell));
        let word = word.ok_or_else(|| Error::Invalid("there is no token in that place".into()))?;
        Ok(Watch {
            monitor: Monitor::accept(invitation).map_err(told)?,
            word,
        })
    }

    /// One relaxed load while it lives.
    #[inline]
    pub(super) fn gone(&self) -> Option<Gone> {
        match self.word.load() {
            0 => Some(Gone::Closed),
            word if word & DIED != 0 => Some(Gone::Died),
            _ => None,
        }
    }

    /// The word, and what it is while the receiver lives; none where the kernel
    /// does not wake who sleeps on it.
    pub(super) fn word(&self) -> Option<(&AtomicU32, u32)> {
        let marked = self.monitor.guarantee().mechanism == Mechanism::RobustWord;
        marked.then(|| (self.word.word(), self.word.load()))
    }

    /// The kernel wakes one of those who sleep on a dead receiver's word.
    pub(super) fn wake_others(&self) {
        wake(self.word.word());
    }
}

fn told(error: liveness::Error) -> Error {
    match error {
        liveness::Error::Unsupported(error) => Error::Unsupported(error),
        liveness::Error::Io(error) => Error::Io(error),
        liveness::Error::Forked => Error::Forked,
        other => Error::Invalid(other.to_string()),
    }
}
