//! [`MergedReader`]: both streams of a child as one, line by line.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::chunk::Chunk;
use super::lines::{AfterBuffer, Available, Frame, Framing, LineBuffer, is_transient};
use super::reader::Reader;
use super::readiness::Readiness;
use crate::drain::RecordHeader;
use crate::spool::elastic::Figures;
use crate::std_stream::{PerStream, StdStream};
use procwright_os::Invalid;
use procwright_os::fork;
use procwright_os::handle::{InterruptibleGuard, InterruptibleLock, Patience};
use procwright_os::sync::{Mutex, MutexGuard};

/// A line of one of two streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedLine {
    stream: StdStream,
    at: SystemTime,
    ambiguous: bool,
    bytes: Vec<u8>,
    text: usize,
}

impl MergedLine {
    /// The stream that it was written to.
    pub fn stream(&self) -> StdStream {
        self.stream
    }

    /// The time at which its end was read out of the pipe, not at which it was read here.
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// True if it may have been written before lines of the other stream that were given
    /// before: both streams had bytes to read, and nobody knows which was first. If
    /// not, all lines that were given before were written before it. The place of a line
    /// is that of its last byte.
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// The line with its separator, if that has come.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The line without its separator.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.text]
    }
}

/// The next item of two streams that are read as one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergedItem {
    /// A line. One without its separator is the last of its stream or before a
    /// gap, or a piece of one that is too long.
    Line(MergedLine),
    /// The number of bytes that were dropped here, of one stream or of both, as
    /// [`Overflow`](crate::Overflow) says. Lines that were not complete have come
    /// before; no rest of them follows.
    Gap(u64),
}

/// Reads both streams of a child as one, in the order in which they came: what
/// [`Command::merged`](crate::Command::merged) and a spawn give.
///
/// The order is that in which the two pipes were read, within moments of when they
/// were written; of two writes that meet in the pipes before either is read nobody knows
/// which was first, and [`MergedLine::is_ambiguous`] says so. A line is never mixed with
/// one of the other stream. Any number of
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
    /// The stream of records.
    reader: Reader,
    frame: Frame,
    turn: InterruptibleLock,
    records: Mutex<Records>,
    /// The bytes of all headers: those that came, and those that were read.
    headers: [Arc<AtomicU64>; 2],
    generation: u32,
}

/// The records of the stream, taken apart into two.
#[derive(Debug)]
struct Records {
    header: [u8; RecordHeader::SIZE],
    /// Bytes of the header that are here.
    known: usize,
    /// The record that is being read, and how many of its bytes are still to come.
    current: Option<(RecordHeader, usize)>,
    streams: PerStream<LineBuffer>,
    /// When the latest bytes of each came.
    latest: PerStream<Arrival>,
    /// Pauses so far.
    pauses: u64,
    /// Pauses before the latest record of each, when its latest line was given.
    given: PerStream<Option<u64>>,
    /// The state of both streams behind the lines that are held.
    after: Option<AfterBuffer>,
    read_headers: Arc<AtomicU64>,
    /// Whether it is unknown where the next record begins.
    lost: bool,
}

/// When the bytes that are held of a stream came.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// When the latest record came.
    at: SystemTime,
    /// The number of pauses before the latest record: moments at which both pipes were empty.
    pauses: u64,
    /// The number of pauses before the first byte that is held.
    oldest: u64,
    /// The number of bytes that the latest record has brought.
    latest: usize,
}

impl Arrival {
    /// The number of pauses before the last byte of a line, behind which so many bytes are
    /// held. A line may end in front of the latest record, if another framing cuts what is
    /// held than the one by which it was read. Of such a line no more is known than when the
    /// first byte came, at the latest; so it may be told as ambiguous where it is not.
    fn take_line(&mut self, rest: usize) -> u64 {
        let is_of_latest = rest < self.latest;
        let pauses = match is_of_latest {
            true => self.pauses,
            false => self.oldest,
        };
        if rest <= self.latest {
            self.oldest = self.pauses;
            self.latest = rest;
        }
        pauses
    }
}

impl MergedReader {
    /// Reads a stream of records, as lines that end with a newline. `headers` counts
    /// the bytes of their headers as they come.
    pub(crate) fn new(reader: Reader, headers: Arc<AtomicU64>) -> Result<MergedReader, Invalid> {
        let read_headers = Arc::<AtomicU64>::default();
        Ok(MergedReader {
            reader,
            frame: Frame::new(Framing::default())?,
            turn: InterruptibleLock::new(),
            records: Mutex::new(Records {
                header: [0; RecordHeader::SIZE],
                known: 0,
                current: None,
                streams: PerStream::default(),
                latest: PerStream::from_fn(|_| Arrival {
                    at: SystemTime::UNIX_EPOCH,
                    pauses: 0,
                    oldest: 0,
                    latest: 0,
                }),
                pauses: 0,
                given: PerStream::default(),
                after: None,
                read_headers: Arc::clone(&read_headers),
                lost: false,
            }),
            headers: [headers, read_headers],
            generation: fork::generation(),
        })
    }

    /// Cuts lines by another rule, from here on.
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

    /// The next item, as [`next_line`](MergedReader::next_line) gives it, with another
    /// framing for this line.
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
        for buffer in records.streams.values_mut() {
            buffer.reframe(frame);
        }
        let mut paced = patience.paced();
        loop {
            if let Some(line) = records.line(frame)? {
                return Ok(Some(MergedItem::Line(line)));
            }
            match records.after.take() {
                Some(AfterBuffer::Gap(n)) => return Ok(Some(MergedItem::Gap(n))),
                Some(AfterBuffer::Failed(error)) => return Err(error),
                Some(AfterBuffer::End) => {
                    records.after = Some(AfterBuffer::End);
                    return Ok(None);
                }
                Some(AfterBuffer::More) | None => {
                    paced.step()?;
                    records.read(&self.reader, patience)?;
                }
            }
        }
    }

    /// Whether the next item is here already, or the end, of which [`readiness`] says nothing. An
    /// unfinished line is none. False while another call reads, and in a fork.
    ///
    /// [`readiness`]: MergedReader::readiness
    pub fn is_held(&self) -> bool {
        let records = match self.generation == fork::generation() {
            true => self.records.try_lock(),
            false => None,
        };
        records.is_some_and(|mut records| records.has_item(&self.frame))
    }

    /// The readiness of the stream, as [`Reader::readiness`]. It says nothing of lines that were
    /// read already: [`is_held`](MergedReader::is_held) does.
    ///
    /// # Errors
    /// As there.
    pub fn readiness(&self) -> io::Result<Readiness> {
        self.reader.readiness()
    }

    /// The figures of both streams together, as [`Reader::figures`]. What is kept to tell them
    /// apart, 16 bytes for each read, counts as memory and disk only.
    pub fn figures(&self) -> Option<Figures> {
        let mut figures = self.reader.figures()?;
        // Relaxed: two counts by themselves. One may be a read ahead of the other, which
        // the subtractions below bear.
        let [came, went] = [0, 1].map(|at| self.headers[at].load(Ordering::Relaxed));
        figures.bytes_in = figures.bytes_in.saturating_sub(came);
        figures.bytes_out = figures.bytes_out.saturating_sub(went);
        figures.lag_bytes = figures.lag_bytes.saturating_sub(came.saturating_sub(went));
        Some(figures)
    }

    /// The time for which either stream could not be written, as [`Reader::blocked`].
    pub fn blocked(&self) -> Option<Duration> {
        self.reader.blocked()
    }

    /// Closes both streams, as [`Reader::close`].
    pub fn close(&self) -> bool {
        self.reader.close()
    }

    /// Whether they are closed, as [`Reader::is_closed`].
    pub fn is_closed(&self) -> bool {
        self.reader.is_closed()
    }

    fn wait_turn(
        &self,
        patience: Patience<'_>,
    ) -> io::Result<(InterruptibleGuard<'_>, MutexGuard<'_, Records>)> {
        if self.generation != fork::generation() {
            return Err(fork::used_in_fork());
        }
        let mine = self.turn.take(patience, || self.reader.is_closed())?;
        let records = self.records.lock();
        Ok((mine, records))
    }
}

impl Records {
    /// Whether an item is here, a line as this framing cuts it.
    fn has_item(&mut self, frame: &Frame) -> bool {
        let is_over = |after: &AfterBuffer| !matches!(after, AfterBuffer::More);
        self.after.as_ref().is_some_and(is_over)
            || self.streams.values_mut().any(|buffer| {
                buffer.reframe(frame);
                matches!(
                    buffer.available(frame, usize::MAX),
                    Some(Available::Line(_))
                )
            })
    }

    /// A line that is here. Lines of the record that was read last come before the next
    /// record is looked at; those that are left over at a gap or the end come in the
    /// order in which they were read.
    fn line(&mut self, frame: &Frame) -> io::Result<Option<MergedLine>> {
        let mut order = StdStream::BOTH;
        order.sort_by_key(|&stream| self.latest[stream].at);
        for stream in order {
            let buffer = &mut self.streams[stream];
            match buffer.available(frame, usize::MAX) {
                Some(Available::Line(cut)) => {
                    let bytes = buffer.bytes()[..cut.length].to_vec();
                    buffer.take_cut(frame, cut);
                    let arrival = &mut self.latest[stream];
                    let pauses = arrival.take_line(buffer.bytes().len());
                    self.given[stream] = Some(arrival.pauses);
                    // A line that had no end until now may be older than what was given.
                    let other = self.given[stream.other()];
                    return Ok(Some(MergedLine {
                        stream,
                        at: arrival.at,
                        ambiguous: other.is_some_and(|other| other >= pauses),
                        text: frame.framing.separator.strip(&bytes).len(),
                        bytes,
                    }));
                }
                Some(Available::TooLong) => return Err(frame.too_long()),
                // The state of one stream is a mark; `self.after` says what follows.
                Some(Available::AfterBuffer) => drop(buffer.take_after()),
                None => {}
            }
        }
        Ok(None)
    }

    /// Reads more: of a header, or of the bytes behind it.
    fn read(&mut self, reader: &Reader, patience: Patience<'_>) -> io::Result<()> {
        if self.lost {
            self.end_lines(AfterBuffer::End);
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
                            self.latest[header.stream].latest += n;
                            Ok(Chunk::Bytes(n))
                        }
                        // A gap, an end or an error is of both streams: see below.
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
            Ok(Chunk::Bytes(n)) if self.current.is_none() => self.add_header_bytes(n),
            Ok(Chunk::Bytes(_)) => {}
            Ok(Chunk::Gap(n)) => self.end_lines(AfterBuffer::Gap(n)),
            Ok(Chunk::End) => self.end_lines(AfterBuffer::End),
            Err(error) if is_transient(&error) => return Err(error),
            Err(error) => {
                self.lost = true;
                self.end_lines(AfterBuffer::Failed(error));
            }
        }
        if matches!(self.current, Some((_, 0))) {
            self.current = None;
        }
        Ok(())
    }

    /// Notes `n` more bytes of a header, and takes it apart once it is whole.
    fn add_header_bytes(&mut self, n: usize) {
        self.known += n;
        if self.known == RecordHeader::SIZE {
            self.known = 0;
            let size = RecordHeader::SIZE as u64;
            self.read_headers.fetch_add(size, Ordering::Relaxed);
            let header = RecordHeader::from_bytes(self.header);
            self.pauses += u64::from(header.after_pause);
            let before = &self.latest[header.stream];
            let oldest = match self.streams[header.stream].bytes().is_empty() {
                true => self.pauses,
                false => before.oldest,
            };
            self.latest[header.stream] = Arrival {
                at: header.at,
                pauses: self.pauses,
                oldest,
                latest: 0,
            };
            self.current = Some((header, header.length));
        }
    }

    /// Ends the lines that are held, complete or not; `after` comes behind them.
    fn end_lines(&mut self, after: AfterBuffer) {
        for buffer in self.streams.values_mut() {
            buffer.after = AfterBuffer::Gap(0);
        }
        self.after = Some(after);
    }
}

#[cfg(test)]
#[path = "merged_tests.rs"]
mod tests;
