//! Whether the receiver lives: one load.
//!
//! The one place that knows what that word is: a liveness token of the receiver's
//! process, for now.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Error;
use crate::liveness::{self, Invitation, Monitor, State, Token};
use crate::sys::robust::wake;

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
pub(super) struct Watch(Monitor);

/// What a receiver is that does not live any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Died,
    Closed,
}

impl Watch {
    pub(super) fn accept(invitation: Invitation) -> Result<Watch, Error> {
        Ok(Watch(Monitor::accept(invitation).map_err(told)?))
    }

    /// One relaxed load while it lives.
    #[inline]
    pub(super) fn gone(&self) -> Option<Gone> {
        match self.0.alive() {
            true => None,
            false => self.why(),
        }
    }

    #[cold]
    fn why(&self) -> Option<Gone> {
        match self.0.state() {
            State::Alive => None,
            State::Released => Some(Gone::Closed),
            State::Died => Some(Gone::Died),
        }
    }

    /// The word, and what it is now; none where the kernel does not wake who sleeps
    /// on it when the receiver dies.
    pub(super) fn word(&self) -> Option<(&AtomicU32, u32)> {
        let word = self.0.marked_word()?;
        Some((word, word.load(Ordering::Relaxed)))
    }

    /// The kernel wakes one of those who sleep on a dead receiver's word.
    pub(super) fn wake_others(&self) {
        if let Some(word) = self.0.marked_word() {
            wake(word);
        }
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
