//! The error of a handle that was closed on this side.

use std::io;

use super::HandleError;

/// The stream was closed on this side, by this or another thread, before or
/// while it was used.
///
/// The error comes wrapped in an [`io::Error`] of kind `Other`; [`Closed::is`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream was closed in this process")]
pub struct Closed;

impl Closed {
    /// True if this error says that the stream was closed on this side.
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Closed>())
    }
}

impl From<HandleError> for io::Error {
    fn from(refused: HandleError) -> io::Error {
        match refused {
            HandleError::Closed => io::Error::other(Closed),
            HandleError::TimedOut => io::ErrorKind::TimedOut.into(),
            HandleError::Interrupted => io::ErrorKind::Interrupted.into(),
            HandleError::Os(error) => error,
        }
    }
}
