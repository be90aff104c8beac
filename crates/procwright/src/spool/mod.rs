//! What a drain reads into.
//!
//! [`Memory`] is the final object of a capture, [`Ends`] a bounded one that
//! keeps head and tail, [`fifo`] carries copies to consumers that may be slow.

mod ends;
pub(crate) mod fifo;
pub mod memory;

pub(crate) use ends::Ends;
pub use memory::Memory;
