//! What a drain reads into.
//!
//! [`Memory`] is the final object of a capture, [`Ends`] a bounded one that
//! keeps head and tail, [`fifo`] carries copies to consumers that may be slow,
//! [`elastic`] carries a stream to one, through memory and disk, and [`budget`] is
//! what all of these may take together.

pub(crate) mod budget;
pub(crate) mod elastic;
mod ends;
pub(crate) mod fifo;
pub mod memory;
mod overflow;

pub use budget::Budget;
pub(crate) use ends::Ends;
pub use memory::Memory;
pub use overflow::Overflow;
