//! Lines out of a stream.
//!
//! ```text
//! iter · find_line · front_end   ways to read lines
//! line_reader · line_cutter      LineReader, which several threads may use; lines for callbacks
//! line_buffer                    bytes that were read, and where a line ends in them
//! framing                        what a line is
//! ```

mod find_line;
mod framing;
mod front_end;
mod iter;
mod line_buffer;
mod line_cutter;
mod line_reader;
#[cfg(test)]
mod tests;

pub(super) use find_line::LineSearch;
pub use framing::{Frame, Framing, LineTooLong, Separator, TooLong};
pub use iter::{LineItem, Lines};
pub(super) use line_buffer::{AfterBuffer, Available, LineBuffer, is_transient};
pub(crate) use line_cutter::LineCutter;
pub use line_reader::{Item, LineReader};
