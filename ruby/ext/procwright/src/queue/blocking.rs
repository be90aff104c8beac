//! Calls of the core that take a moment.

use magnus::Error;
use procwright::queue;

use super::errors::{Side, queue_error};
use crate::errors::panic_error;
use crate::gvl::without_gvl_briefly;

/// Calls without Ruby's lock: to make or find a queue may mean a look through all processes
/// for those that have it.
pub(super) fn briefly<T>(
    side: Side,
    mut call: impl FnMut() -> Result<T, queue::Error>,
) -> Result<T, Error> {
    let done = without_gvl_briefly(&mut call)?;
    let done = done.map_err(|panic| panic_error(&*panic))?;
    done.map_err(|error| queue_error(&error, side))
}
