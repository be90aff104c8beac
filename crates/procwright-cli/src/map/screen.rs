//! Where the outputs of the commands and the line of progress go.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use procwright::StdStream;
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::wake::Wake;

use crate::message::{self, StatusLine};
use crate::stdio::{self, StandardStreams};
use crate::{poll, tty};

/// Shortest time from one drawing of the line to the next behind output: without a limit it
/// would be most of what a flooded terminal gets.
const REDRAW_AFTER: Duration = Duration::from_millis(100);

/// This command's stdout and stderr, which the commands share.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) streams: StandardStreams,
    has_line: bool,
    /// One for each stream; where both go to one place, or a line is drawn, the first is both's.
    places: [Mutex<Place>; 2],
    /// Rung when nobody reads stdout any more.
    broken: Wake,
}

/// A place that bytes are written to, and the line on it.
#[derive(Debug, Default)]
struct Place {
    /// Text of the line; empty where there is none.
    line: String,
    is_drawn: bool,
    /// False if output has begun a line and not ended it.
    is_inside_line: bool,
    drawn_at: Option<Instant>,
}

impl Screen {
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(wants_progress: bool) -> io::Result<Arc<Screen>> {
        let has_line = wants_progress && tty::can_redraw();
        let screen = Arc::new(Screen {
            streams: StandardStreams::inspect(),
            has_line,
            places: Default::default(),
            broken: Wake::new()?,
        });
        if has_line {
            message::set_status_line(&screen);
        }
        Ok(screen)
    }

    /// Returns whether a line is drawn at all.
    pub(super) fn has_line(&self) -> bool {
        self.has_line
    }

    /// Readable when nobody reads stdout any more.
    pub(super) fn broken(&self) -> BorrowedFd<'_> {
        self.broken.as_fd()
    }

    /// Returns whether nobody reads stdout any more.
    pub(super) fn is_broken(&self) -> bool {
        poll::is_readable(self.broken())
    }

    fn place(&self, stream: StdStream) -> MutexGuard<'_, Place> {
        let is_one = self.streams.is_shared() || self.has_line;
        let index = if is_one { 0 } else { stdio::index(stream) };
        self.places[index].lock()
    }

    /// Writes output of a command, which no other comes into.
    ///
    /// # Errors
    /// Those of the write.
    pub(super) fn write(&self, stream: StdStream, bytes: &[u8]) -> io::Result<()> {
        let mut place = self.place(stream);
        place.erase();
        let written = stdio::write_all(stream, bytes);
        place.is_inside_line = bytes.last().is_some_and(|last| *last != b'\n');
        place.draw_again();
        drop(place);
        if let Err(error) = &written
            && error.kind() == io::ErrorKind::BrokenPipe
            && stream == StdStream::Stdout
        {
            self.broken.ring();
        }
        written
    }

    /// Draws the line of progress with a new text; an empty one erases it. Never blocks.
    pub(super) fn draw(&self, text: String) {
        // Whoever has it locked is in a write, which draws what it finds.
        let Some(mut place) = self.places[0].try_lock() else {
            return;
        };
        if !poll::is_writable(io::stderr()) || tty::in_background(None) {
            return;
        }
        place.line = text;
        match place.line.is_empty() {
            true => place.erase(),
            false if place.is_inside_line => {}
            false => place.draw(),
        }
    }
}

impl Place {
    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = stdio::write_all(StdStream::Stderr, tty::ERASE_LINE.as_bytes());
        }
    }

    fn draw(&mut self) {
        let fitting: String = self.line.chars().take(tty::columns() - 1).collect();
        let text = tty::drawn(&fitting);
        self.is_drawn = stdio::write_all(StdStream::Stderr, text.as_bytes()).is_ok();
        self.drawn_at = Some(Instant::now());
    }

    /// Draws the line again behind output, if it may be drawn now.
    fn draw_again(&mut self) {
        let is_due = self
            .drawn_at
            .is_none_or(|drawn| drawn.elapsed() >= REDRAW_AFTER);
        if !self.line.is_empty() && !self.is_inside_line && is_due && !tty::in_background(None) {
            self.draw();
        }
    }

    fn with_line_erased(&mut self, write: &mut dyn FnMut()) {
        self.erase();
        write();
        // Every message ends its line.
        self.is_inside_line = false;
        self.draw_again();
    }
}

impl StatusLine for Screen {
    fn with_line_erased(&self, write: &mut dyn FnMut()) {
        self.places[0].lock().with_line_erased(write);
    }

    fn try_with_line_erased(&self, write: &mut dyn FnMut()) -> bool {
        let place = self.places[0].try_lock();
        place
            .map(|mut place| place.with_line_erased(write))
            .is_some()
    }
}
