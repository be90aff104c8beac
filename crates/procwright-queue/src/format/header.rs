//! The header: the first bytes of the file.

use super::geometry::Geometry;
use super::layout::{MAGIC, ORDER, VERSION};

/// Reason why a header is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// The file is no queue.
    NotAQueue(&'static str),
    /// The file is a queue of another version of the format.
    Version(u32),
}

/// The header of a queue. It does not change once the queue was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueHeader {
    pub(crate) geometry: Geometry,
    /// Random number by which queues are told apart.
    pub(crate) nonce: u64,
}

pub(crate) const HEADER_SIZE: usize = 64;

impl QueueHeader {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        let shape = &self.geometry;
        bytes[..8].copy_from_slice(&MAGIC);
        for (at, value) in [
            (8, VERSION),
            (12, ORDER),
            (16, shape.lanes),
            (20, shape.first),
            (24, shape.blocks),
            // Flags: none is defined yet.
            (28, 0),
            (48, shape.kept),
        ] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes[32..40].copy_from_slice(&self.nonce.to_le_bytes());
        bytes[40..48].copy_from_slice(&shape.file_size().to_le_bytes());
        bytes
    }

    /// Reads a header from its bytes.
    ///
    /// # Errors
    /// If these bytes are no header, or one that this code does not know.
    pub(crate) fn parse(bytes: &[u8; HEADER_SIZE]) -> Result<QueueHeader, HeaderError> {
        let number = |at: usize| {
            let mut four = [0; 4];
            four.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(four)
        };
        let whole = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        if bytes[..8] != MAGIC {
            return Err(HeaderError::NotAQueue("it does not begin as one"));
        }
        // The version comes first: all that follows may have another meaning there.
        match number(8) {
            VERSION => {}
            other => return Err(HeaderError::Version(other)),
        }
        if number(12) != ORDER {
            return Err(HeaderError::NotAQueue("its byte order is another"));
        }
        let geometry = Geometry::new(number(16), number(20), number(24), number(48))
            .ok_or(HeaderError::NotAQueue("it has an impossible shape"))?;
        // A flag has a meaning that this code would get wrong.
        if number(28) != 0 || bytes[52..].iter().any(|byte| *byte != 0) {
            return Err(HeaderError::NotAQueue(
                "it has features that are not known here",
            ));
        }
        if whole(40) != geometry.file_size() {
            return Err(HeaderError::NotAQueue("its size is not that of its shape"));
        }
        Ok(QueueHeader {
            geometry,
            nonce: whole(32),
        })
    }
}
