//! The places into which a drain reads.
//!
//! [`Memory`] is the final object of a capture, [`HeadAndTail`] a bounded one that
//! keeps head and tail, [`fifo`] carries copies to consumers that may be slow,
//! [`elastic`] carries a stream to one, through memory and disk, and [`budget`] is
//! what all of these may take together.

pub(crate) mod budget;
pub(crate) mod elastic;
pub(crate) mod fifo;
mod head_and_tail;
pub mod memory;
mod overflow;
mod pages;
mod spool_dir;

pub use budget::Budget;
pub(crate) use head_and_tail::HeadAndTail;
pub use memory::Memory;
pub use overflow::Overflow;
pub(crate) use pages::{LARGE, Pages};
