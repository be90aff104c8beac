//! Why a program did not start.

use crate::error::{Invalid, SpawnError};

/// A specification that is wrong, or a step that failed.
#[derive(Debug)]
pub(crate) enum Unstarted {
    Invalid(Invalid),
    Spawn(SpawnError),
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
