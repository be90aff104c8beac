//! Queues, as `lib/procwright/queue.rb` completes them.

mod bytes;
mod errors;
mod invitation;
mod receiver;
mod sender;
mod stat;

pub(crate) use errors::{Side, failed};
pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;

use magnus::{Error, RModule, Ruby};
use procwright::queue;

use crate::errors::panicked;
use crate::gvl::briefly_unlocked;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    invitation::define(ruby, native)?;
    receiver::define(ruby, native)?;
    sender::define(ruby, native)?;
    stat::define(native)
}

/// What takes a moment, such as to look through the processes for those that have a
/// queue, without Ruby's lock.
fn made<T>(side: Side, mut make: impl FnMut() -> Result<T, queue::Error>) -> Result<T, Error> {
    let made = briefly_unlocked(&mut make)?;
    let made = made.map_err(|panic| panicked(&*panic))?;
    made.map_err(|error| failed(&error, side))
}
