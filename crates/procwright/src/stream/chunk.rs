//! The result of a read.

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk {
    /// The number of bytes that were read.
    Bytes(usize),
    /// The number of bytes that were dropped here, as [`Overflow`](crate::Overflow) says.
    Gap(u64),
    /// The end of the stream.
    End,
}
