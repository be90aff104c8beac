//! Liveness tokens and monitors, as `lib/procwright/liveness.rb` completes them.

mod claim;
mod convert;
mod invitation;
mod monitor;
mod token;

pub(crate) use monitor::Monitor;

use magnus::{Error, RModule, Ruby};

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    token::define(ruby, native)?;
    invitation::define(ruby, native)?;
    monitor::define(ruby, native)?;
    claim::define(ruby, native)
}
