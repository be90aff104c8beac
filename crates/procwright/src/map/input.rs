//! The iterator that the commands come from, asked by one thread at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::error::Error;
use crate::error::BoxError;
use crate::spec::Spec;

/// The commands of a map.
pub(super) type Commands = Box<dyn Iterator<Item = Result<Spec, BoxError>> + Send>;

/// Where the input of a map is.
pub(super) enum Input {
    /// Nobody asks it.
    Idle(Commands),
    /// A thread is inside its `next`, which may block.
    Asked,
    /// It has no more.
    Done,
}

impl Input {
    /// Takes the iterator out, to be asked without a lock.
    pub(super) fn take(&mut self) -> Option<Commands> {
        match std::mem::replace(self, Input::Asked) {
            Input::Idle(commands) => Some(commands),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// The next command of `commands`.
///
/// # Errors
/// The iterator's own, and its panic.
pub(super) fn ask(commands: &mut Commands) -> Result<Option<Spec>, Error> {
    match catch_unwind(AssertUnwindSafe(|| commands.next())) {
        Ok(None) => Ok(None),
        Ok(Some(Ok(spec))) => Ok(Some(spec)),
        Ok(Some(Err(error))) => Err(Error::Input(error)),
        Err(_) => Err(Error::Panicked("the iterator of the commands")),
    }
}
