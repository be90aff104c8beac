//! Queues, as `lib/procwright/queue/` completes them.

mod blocking;
mod bytes;
mod errors;
mod invitation;
mod receiver;
mod sender;
mod stat;

pub(crate) use errors::{Side, queue_error};
pub(crate) use receiver::Receiver;
pub(crate) use sender::Sender;

use magnus::{Error, RModule, Ruby};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    invitation::define(ruby, native)?;
    receiver::define(ruby, native)?;
    sender::define(ruby, native)?;
    stat::define(native)
}
