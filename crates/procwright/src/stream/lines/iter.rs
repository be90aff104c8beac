//! An iterator over lines.

use std::io;

use super::line_reader::{Item, LineReader};
use crate::stream::{Broken, Patience};

/// A line that was read, or a place where bytes are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineItem {
    /// A line without its separator.
    Line(Vec<u8>),
    /// The number of bytes that were dropped here, as [`Overflow`](crate::Overflow) says.
    Gap(u64),
}

impl From<&str> for LineItem {
    fn from(line: &str) -> LineItem {
        LineItem::Line(line.into())
    }
}

/// Iterates over lines, see [`LineReader::lines`].
#[derive(Debug)]
pub struct Lines<'a> {
    reader: &'a LineReader,
    over: bool,
}

impl LineReader {
    /// Iterates over the lines to the end of the stream, waiting for each. They
    /// come without what separates them, as those of
    /// [`BufRead::lines`](std::io::BufRead::lines); for a newline that is `\n` or
    /// `\r\n`. Gaps are items of their own, so that no line is glued together from
    /// two.
    ///
    /// An error ends the iteration, except where the stream itself goes on: behind bytes
    /// that were lost on disk ([`Broken::Lost`]).
    ///
    /// # Blocking
    /// Until there is a line, or until the reader is closed.
    pub fn lines(&self) -> Lines<'_> {
        Lines {
            reader: self,
            over: false,
        }
    }

    /// The next line, as [`lines`](LineReader::lines) would give it; none at the
    /// end.
    ///
    /// # Errors
    /// As [`await_line`](LineReader::await_line) and
    /// [`try_line`](LineReader::try_line).
    ///
    /// # Blocking
    /// Until there is one, or until the reader is closed.
    pub fn next_line(&self, patience: Patience<'_>) -> io::Result<Option<LineItem>> {
        let separator = &self.framing().separator;
        loop {
            let made = self.try_line(usize::MAX, |item| match item {
                Item::Line(line) => Some(LineItem::Line(separator.strip(line).to_vec())),
                Item::Gap(n) => Some(LineItem::Gap(n)),
                Item::End => None,
            })?;
            match made {
                Some(item) => return Ok(item),
                None => self.await_line(usize::MAX, patience)?,
            }
        }
    }
}

impl Iterator for Lines<'_> {
    type Item = io::Result<LineItem>;

    fn next(&mut self) -> Option<io::Result<LineItem>> {
        if self.over {
            return None;
        }
        let next = self.reader.next_line(Patience::NEVER_ENDING).transpose();
        self.over = match &next {
            Some(Ok(_)) => false,
            Some(Err(error)) => !is_passed(error),
            None => true,
        };
        next
    }
}

impl std::iter::FusedIterator for Lines<'_> {}

/// Whether the stream goes on behind this error.
fn is_passed(error: &io::Error) -> bool {
    let broken = error.get_ref().and_then(|e| e.downcast_ref::<Broken>());
    matches!(broken, Some(Broken::Lost { .. }))
}
