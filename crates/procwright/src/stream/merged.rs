//! Both streams of a child as one, line by line.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::lines::{Ready, State, Then, pass, passes};
use super::{Chunk, Frame, Framing, Patience, Reader, Readiness};
use crate::drain::Header;
use crate::error::Invalid;
use crate::handle::{Mine, Turn};
use crate::spool::elastic::Figures;
use crate::sys::fork;

/// Which of a program's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StdStream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}

const BOTH: [StdStream; 2] = [StdStream::Stdout, StdStream::Stderr];

/// A line of one of two streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedLine {
    stream: StdStream,
    at: SystemTime,
    bytes: Vec<u8>,
    text: usize,
}

impl MergedLine {
    /// Which stream it was written to.
    pub fn stream(&self) -> StdStream {
        self.stream
    }

    /// When its end was read out of the pipe, not when it was read here.
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// The line with what separates it from the next, if that has come.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The line without it.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.text]
    }
}

/// What comes next in two streams that are read as one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergedItem {
    /// A line. One without its separator is the last of its stream or before a
    /// gap, or a piece of one that is too long.
    Line(MergedLine),
    /// So many bytes were dropped here, of one stream or of both, as
    /// [`Overflow`](crate::Overflow) says. Lines that were not complete have come
    /// before, and what follows are no rests of them.
    Gap(u64),
}

/// Reads both streams of a child as one, in the order in which they came: what
/// [`Command::merged`](crate::Command::merged) and a spawn give.
///
/// The order is that in which the two pipes were read, within moments of when they
/// were written; two writes that meet in the pipes before anybody reads may change
/// places, a line is never mixed with one of the other stream. Any number of
/// threads may use it; each line goes to one of them.
///
/// ```
/// use procwright::Command;
/// use procwright::stream::{MergedItem, Patience};
///
/// let mut child = Command::new("sh")
///     .args(["-c", "echo out; echo err >&2"])
///     .merged()
///     .spawn()?;
/// let merged = child.merged.take().unwrap();
/// while let Some(item) = merged.next_line(Patience::NEVER_ENDING)? {
///     if let MergedItem::Line(line) = item {
///         println!("{:?} {:?} {:?}", line.at(), line.stream(), line.text());
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MergedReader {
    /// Of records.
    reader: Reader,
    frame: Frame,
    turn: Turn,
    records: Mutex<Records>,
    /// The bytes of all headers: of those that came, and of those that were read.
    headers: [Arc<AtomicU64>; 2],
    generation: u32,
}

/// Records that are taken apart.
#[derive(Debug)]
struct Records {
    header: [u8; Header::SIZE],
    /// So much of it is here.
    known: usize,
    /// The record that is being read, and what of it was not.
    current: Option<(Header, usize)>,
    streams: [State; 2],
    /// When the latest bytes of each came.
    latest: [SystemTime; 2],
    /// What comes once nothing is held any more.
    then: Option<Then>,
    read_headers: Arc<AtomicU64>,
    /// Nobody knows where the next record begins.
    lost: bool,
}

impl MergedReader {
    /// Of a stream of records, with lines that end with a newline. The bytes of
    /// their headers are counted as they come.
    pub(crate) fn new(reader: Reader, headers: Arc<AtomicU64>) -> Result<MergedReader, Invalid> {
        let read_headers = Arc::<AtomicU64>::default();
        Ok(MergedReader {
            reader,
            frame: Frame::new(Framing::default())?,
            turn: Turn::new(),
            records: Mutex::new(Records {
                header: [0; Header::SIZE],
                known: 0,
                current: None,
                streams: [State::default(), State::default()],
                latest: [SystemTime::UNIX_EPOCH; 2],
                then: None,
                read_headers: Arc::clone(&read_headers),
                lost: false,
            }),
            headers: [headers, read_headers],
            generation: fork::generation(),
        })
    }

    /// The same with other lines, from here on.
    ///
    /// # Errors
    /// As [`LineReader::new`](super::LineReader::new).
    pub fn with_framing(mut self, framing: Framing) -> Result<MergedReader, Invalid> {
        self.frame = Frame::new(framing)?;
        Ok(self)
    }

    /// The next line of either stream, or gap; none when both have ended.
    ///
    /// # Errors
    /// [`Closed`](super::Closed), `TimedOut`, `Interrupted`,
    /// [`LineTooLong`](super::LineTooLong); `Unsupported` in a fork; why the
    /// streams failed. Where bytes were lost on disk nothing more can be told
    /// apart, and that is the end.
    ///
    /// # Blocking
    /// Until there is one, or until the reader is closed.
    pub fn next_line(&self, patience: Patience<'_>) -> io::Result<Option<MergedItem>> {
        self.next_line_as(&self.frame, patience)
    }

    /// As [`next_line`](MergedReader::next_line), with another framing for this line.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Blocking
    /// As there.
    pub fn next_line_as(
        &self,
        frame: &Frame,
        patience: Patience<'_>,
    ) -> io::Result<Option<MergedItem>> {
        let (_mine, mut records) = self.wait_turn(patience)?;
        for state in &mut records.streams {
            state.reframe(frame);
        }
        let mut paced = patience.paced();
        loop {
            if let Some(line) = records.line(frame)? {
                return Ok(Some(MergedItem::Line(line)));
            }
            match records.then.take() {
                Some(Then::Gap(n)) => return Ok(Some(MergedItem::Gap(n))),
                Some(Then::Failed(error)) => return Err(error),
                Some(Then::End) => {
                    records.then = Some(Then::End);
                    return Ok(None);
                }
                Some(Then::More) | None => {
                    paced.step()?;
                    records.read(&self.reader, patience)?;
                }
            }
        }
    }

    /// As [`Reader::readiness`]; lines that were read already are told of by
    /// nothing but [`next_line`](MergedReader::next_line).
    ///
    /// # Errors
    /// As there.
    pub fn readiness(&self) -> io::Result<Readiness> {
        self.reader.readiness()
    }

    /// As [`Reader::figures`], of both streams together. What is kept to tell them
    /// apart, 16 bytes for each read, counts as memory and disk only.
    pub fn figures(&self) -> Option<Figures> {
        let mut figures = self.reader.figures()?;
        let [came, went] = [0, 1].map(|at| self.headers[at].load(Ordering::Relaxed));
        figures.bytes_in = figures.bytes_in.saturating_sub(came);
        figures.bytes_out = figures.bytes_out.saturating_sub(went);
        figures.lag_bytes = figures.lag_bytes.saturating_sub(came.saturating_sub(went));
        Some(figures)
    }

    /// As [`Reader::blocked`], of both streams together.
    pub fn blocked(&self) -> Option<Duration> {
        self.reader.blocked()
    }

    /// As [`Reader::close`]: both streams.
    pub fn close(&self) -> bool {
        self.reader.close()
    }

    /// As [`Reader::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    fn wait_turn(&self, patience: Patience<'_>) -> io::Result<(Mine<'_>, MutexGuard<'_, Records>)> {
        if self.generation != fork::generation() {
            return Err(fork::not_ours());
        }
        let mine = self.turn.take(patience, || self.reader.is_closed())?;
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((mine, records))
    }
}

impl Records {
    /// A line that is here. Those of the record that was read last come before
    /// the next record is looked at; what is left over at a gap or the end comes in
    /// the order in which it was read.
    fn line(&mut self, frame: &Frame) -> io::Result<Option<MergedLine>> {
        let mut order = [0, 1];
        order.sort_by_key(|&stream| self.latest[stream]);
        for stream in order {
            let state = &mut self.streams[stream];
            match state.ready(frame, usize::MAX) {
                Some(Ready::Line(cut)) => {
                    let bytes = state.bytes()[..cut.length].to_vec();
                    state.give(frame, cut);
                    return Ok(Some(MergedLine {
                        stream: BOTH[stream],
                        at: self.latest[stream],
                        text: frame.framing.separator.strip(&bytes).len(),
                        bytes,
                    }));
                }
                Some(Ready::TooLong) => return Err(frame.too_long()),
                // Only a mark: `then` says what it is.
                Some(Ready::Then) => drop(pass(state)),
                None => {}
            }
        }
        Ok(None)
    }

    /// Reads more: of a header, or of what is behind it.
    fn read(&mut self, reader: &Reader, patience: Patience<'_>) -> io::Result<()> {
        if self.lost {
            self.part(Then::End);
            return Ok(());
        }
        let chunk = match &mut self.current {
            None => reader.read_with(&mut self.header[self.known..], patience),
            Some((header, left)) => {
                let mut failed = None;
                let filled = self.streams[header.stream].fill(|room| {
                    let most = room.len().min(*left);
                    match reader.read_with(&mut room[..most], patience) {
                        Ok(Chunk::Bytes(n)) => {
                            *left -= n;
                            Ok(Chunk::Bytes(n))
                        }
                        // It is both streams' and told of below.
                        other => {
                            failed = Some(other);
                            Ok(Chunk::Bytes(0))
                        }
                    }
                });
                filled?;
                failed.unwrap_or(Ok(Chunk::Bytes(0)))
            }
        };
        match chunk {
            Ok(Chunk::Bytes(n)) if self.current.is_none() => self.heard(n),
            Ok(Chunk::Bytes(_)) => {}
            Ok(Chunk::Gap(n)) => self.part(Then::Gap(n)),
            Ok(Chunk::End) => self.part(Then::End),
            Err(error) if passes(&error) => return Err(error),
            Err(error) => {
                self.lost = true;
                self.part(Then::Failed(error));
            }
        }
        if matches!(self.current, Some((_, 0))) {
            self.current = None;
        }
        Ok(())
    }

    /// `n` more bytes of a header.
    fn heard(&mut self, n: usize) {
        self.known += n;
        if self.known == Header::SIZE {
            self.known = 0;
            let size = Header::SIZE as u64;
            self.read_headers.fetch_add(size, Ordering::Relaxed);
            let header = Header::from_bytes(self.header);
            self.latest[header.stream] = header.at;
            self.current = Some((header, header.length));
        }
    }

    /// What is held is complete, whatever it looks like, and then comes this.
    fn part(&mut self, then: Then) {
        for state in &mut self.streams {
            state.then = Then::Gap(0);
        }
        self.then = Some(then);
    }
}

#[cfg(test)]
#[path = "merged_tests.rs"]
mod tests;
