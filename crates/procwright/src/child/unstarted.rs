//! Why a program did not start.

use crate::error::{Invalid, SpawnError};

/// A specification that is wrong, a step that failed, or a cancel.
#[derive(Debug)]
pub(crate) enum Unstarted {
    Invalid(Invalid),
    Spawn(SpawnError),
    /// The caller wants it no more.
    Cancelled,
}

impl From<Invalid> for Unstarted {
    fn from(invalid: Invalid) -> Unstarted {
        Unstarted::Invalid(invalid)
    }
}

impl From<SpawnError> for Unstarted {
    fn from(error: SpawnError) -> Unstarted {
        Unstarted::Spawn(error)
    }
}
