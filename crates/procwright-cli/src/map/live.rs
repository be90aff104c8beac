//! `--live` and `--tag`: lines of the commands, one by one.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;

use procwright::{BoxError, Piece, StdStream, Tap};

use super::screen::Screen;
use crate::lines::{Line, LineSplitter, name_in_a_line};
use crate::stdio;

/// Takes both streams of a command, while they come or when they have been captured, and shows
/// their lines.
#[derive(Debug)]
pub(super) struct LiveTap {
    screen: Arc<Screen>,
    /// Text in front of each line of stdout and of stderr; empty without `--tag`.
    tags: [Vec<u8>; 2],
    lines: [LineSplitter; 2],
}

impl LiveTap {
    pub(super) fn new(screen: Arc<Screen>, tag: Option<&OsStr>) -> LiveTap {
        let tagged = |stream: StdStream| match tag {
            None => Vec::new(),
            Some(tag) => {
                let mut text = name_in_a_line(tag);
                let stream_name = format!(" {} | ", stdio::short_name(stream));
                text.extend_from_slice(stream_name.as_bytes());
                text
            }
        };
        LiveTap {
            tags: StdStream::BOTH.map(tagged),
            lines: Default::default(),
            screen,
        }
    }

    fn show(
        &mut self,
        stream: StdStream,
        feed: impl FnOnce(&mut LineSplitter, &mut dyn FnMut(Line<'_>)),
    ) -> io::Result<()> {
        let index = stdio::index(stream);
        let tag = &self.tags[index];
        let mut text = Vec::new();
        feed(&mut self.lines[index], &mut |line| {
            text.extend_from_slice(tag);
            text.extend_from_slice(line.bytes);
            // Other commands write the next line.
            text.push(b'\n');
        });
        match text.is_empty() {
            true => Ok(()),
            false => self.screen.write(stream, &text),
        }
    }
}

impl LiveTap {
    /// # Errors
    /// Those of the write.
    pub(super) fn take(&mut self, stream: StdStream, bytes: &[u8]) -> io::Result<()> {
        self.show(stream, |lines, each| lines.feed(bytes, each))
    }

    /// Shows the last lines, which have no newline.
    ///
    /// # Errors
    /// Those of the write.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        for stream in StdStream::BOTH {
            self.show(stream, |lines, each| lines.finish(each))?;
        }
        Ok(())
    }
}

impl Tap for LiveTap {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        Ok(self.take(piece.stream, piece.bytes)?)
    }

    fn end(&mut self) -> Result<(), BoxError> {
        Ok(self.finish()?)
    }
}
