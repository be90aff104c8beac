//! The rule by which a stream is cut into lines.

use std::io;

use memchr::{memchr, memchr2, memmem};

use procwright_os::Invalid;

/// A rule by which lines are cut: where one ends, and how long it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Framing {
    /// The bytes that end a line.
    pub separator: Separator,
    /// The longest line in bytes, its separator included. None by default: then a
    /// line takes as much memory as it is long.
    pub max_length: Option<usize>,
    /// The treatment of a longer line.
    pub too_long: TooLong,
}

/// The bytes that end a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Separator {
    /// `\n`.
    Newline,
    /// `\n`, `\r` or `\r\n`: also what a progress display writes over and over.
    /// The line is there with its `\r`; a `\n` that comes right after it, but
    /// later, belongs to it and is not given out. So is one for which
    /// `max_length` leaves no room.
    NewlineOrReturn,
    /// These bytes, at least one.
    Bytes(Vec<u8>),
}

/// A line is longer than it may be. It comes wrapped in an [`io::Error`] of kind
/// `InvalidData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than the {max_length} bytes that were allowed")]
pub struct LineTooLong {
    /// The longest line that was allowed.
    pub max_length: usize,
}

/// The treatment of a line that is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TooLong {
    /// The line comes in pieces of the greatest length, all but the last without a
    /// separator. No piece ends within a separator: the piece then is that much shorter.
    Split,
    /// [`LineTooLong`]. The bytes stay where they are, to be
    /// read by other means.
    Fail,
}

impl Default for Framing {
    fn default() -> Framing {
        Framing {
            separator: Separator::Newline,
            max_length: None,
            too_long: TooLong::Split,
        }
    }
}

impl Separator {
    /// The line without the separator at its end, if it has one. `\n` goes
    /// with a `\r` in front of it, as in [`BufRead::lines`](std::io::BufRead::lines).
    pub(in crate::stream) fn strip<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        match self {
            Separator::Newline => match line.strip_suffix(b"\n") {
                Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
                None => line,
            },
            Separator::NewlineOrReturn => {
                let line = line.strip_suffix(b"\n").unwrap_or(line);
                line.strip_suffix(b"\r").unwrap_or(line)
            }
            Separator::Bytes(separator) => line.strip_suffix(&separator[..]).unwrap_or(line),
        }
    }

    fn length(&self) -> usize {
        match self {
            Separator::Newline | Separator::NewlineOrReturn => 1,
            Separator::Bytes(separator) => separator.len(),
        }
    }
}

/// A framing that can be used: see [`LineReader::try_line_as`](super::LineReader::try_line_as).
#[derive(Debug)]
pub struct Frame {
    pub(in crate::stream) framing: Framing,
    /// The searcher for separators of several bytes. It is made once, because that costs
    /// more than the search in a short line; and boxed, because it is aligned more
    /// strictly than what the allocators of other languages give, and so would be all
    /// that holds it.
    finder: Option<Box<memmem::Finder<'static>>>,
}

impl Frame {
    /// # Errors
    /// As [`LineReader::new`](super::LineReader::new).
    pub fn new(framing: Framing) -> Result<Frame, Invalid> {
        let length = framing.separator.length();
        if length == 0 {
            return Err(Invalid::new(
                "separator",
                "is empty",
                "name at least one byte, or read the stream without lines",
            ));
        }
        if framing.max_length.is_some_and(|most| most < length) {
            return Err(Invalid::new(
                "max_length",
                "is less than the separator is long, so no line could have an end",
                format!("allow at least {length}, or none for no limit"),
            ));
        }
        let finder = match &framing.separator {
            Separator::Bytes(separator) if separator.len() > 1 => {
                Some(Box::new(memmem::Finder::new(separator).into_owned()))
            }
            _ => None,
        };
        Ok(Frame { framing, finder })
    }

    /// The line without the separator at its end, if it has one. `\n` goes
    /// with a `\r` in front of it, as in [`BufRead::lines`](std::io::BufRead::lines).
    pub fn strip<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        self.framing.separator.strip(line)
    }

    /// The first separator in `bytes`, start and end. None begins before `from`.
    pub(in crate::stream) fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let rest = &bytes[from..];
        let (at, length) = match &self.framing.separator {
            Separator::Newline => (memchr(b'\n', rest)?, 1),
            Separator::NewlineOrReturn => {
                let at = memchr2(b'\n', b'\r', rest)?;
                (at, 1 + usize::from(rest[at..].starts_with(b"\r\n")))
            }
            Separator::Bytes(separator) => match &self.finder {
                Some(finder) => (finder.find(rest)?, separator.len()),
                None => (memchr(*separator.first()?, rest)?, 1),
            },
        };
        Some((from + at, from + at + length))
    }

    /// The byte before which no separator begins, in bytes that have none.
    pub(in crate::stream) fn end_of_search(&self, bytes: &[u8]) -> usize {
        bytes
            .len()
            .saturating_sub(self.framing.separator.length() - 1)
    }

    /// The number of bytes at the end that may be the beginning of a separator.
    pub(in crate::stream) fn partial_separator(&self, bytes: &[u8]) -> usize {
        match &self.framing.separator {
            Separator::Bytes(separator) => (1..separator.len())
                .rev()
                .find(|&n| bytes.ends_with(&separator[..n]))
                .unwrap_or(0),
            Separator::Newline | Separator::NewlineOrReturn => 0,
        }
    }

    pub(in crate::stream) fn too_long(&self) -> io::Error {
        let max_length = self.framing.max_length.unwrap_or(usize::MAX);
        io::Error::new(io::ErrorKind::InvalidData, LineTooLong { max_length })
    }

    /// Whether lines end with `\n`, or `\r\n`.
    pub(in crate::stream) fn ends_with_newlines(&self) -> bool {
        !matches!(self.framing.separator, Separator::Bytes(_))
    }

    /// Whether `\r\n` may be taken apart after its `\r`.
    pub(in crate::stream) fn takes_returns(&self) -> bool {
        self.framing.separator == Separator::NewlineOrReturn
    }
}
