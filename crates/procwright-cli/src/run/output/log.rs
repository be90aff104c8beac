//! `--log`: both streams in a file, whatever becomes of the disk.
//!
//! A log that cannot be written is never the program's problem: the program goes on,
//! missing bytes are counted, and as soon as the file takes something again, a line
//! in it says how many are missing there.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use procwright::{BoxError, Piece, StdStream, Tap};
use procwright_os::sync::Mutex;

use super::log_file::{LogFile, Rotation};
use super::timestamp::TimestampFormat;
use crate::lines::{Line, LineSplitter};
use crate::message;
use crate::stdio;

/// Figures of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFigures {
    /// Path as it was given.
    pub(crate) path: PathBuf,
    /// Bytes of the program's output in the log and in those that were rotated away.
    pub(crate) bytes: u64,
    /// Bytes that are missing there.
    pub(crate) lost_bytes: u64,
    /// New files that were begun.
    pub(crate) rotations: u32,
}

/// The log of all runs of this command.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// True if each line begins with a time.
    has_times: bool,
    /// Locked during a write, which may last for ever: only the thread that writes
    /// locks this.
    writer: Mutex<LogWriter>,
    /// Never locked during a write.
    counts: Mutex<LogCounts>,
    /// True if a failed write was reported. Only the exchange matters: this flag and
    /// the next order nothing else.
    has_reported_loss: AtomicBool,
    has_reported_rotation: AtomicBool,
}

#[derive(Debug, Default)]
struct LogCounts {
    bytes: u64,
    lost: u64,
    rotations: u32,
    /// Number of the run. A thread that still writes for an earlier run counts
    /// nothing: the bytes of that run were given up.
    run: u64,
    /// Bytes of the run so far, written or lost.
    taken: u64,
}

#[derive(Debug)]
struct LogWriter {
    file: LogFile,
    /// Bytes that are missing at the present end of the file.
    gap: u64,
    /// Format of the times in marks, if lines have times.
    clock: Option<TimestampFormat>,
}

impl Log {
    /// Opens the file, so that a log which cannot be written is known before the
    /// program starts.
    ///
    /// # Errors
    /// In words, with a hint.
    pub(super) fn open(
        path: &Path,
        rotation: Option<Rotation>,
        has_times: bool,
    ) -> Result<Arc<Log>, String> {
        Ok(Arc::new(Log {
            path: path.to_owned(),
            has_times,
            writer: Mutex::new(LogWriter {
                file: LogFile::open(path, rotation)?,
                gap: 0,
                clock: has_times.then(TimestampFormat::local),
            }),
            counts: Mutex::default(),
            has_reported_loss: AtomicBool::new(false),
            has_reported_rotation: AtomicBool::new(false),
        }))
    }

    /// Begins a run, whose output the tap takes.
    pub(super) fn tap(self: &Arc<Log>) -> LogTap {
        let mut counts = self.counts.lock();
        counts.run += 1;
        counts.taken = 0;
        LogTap {
            log: Arc::clone(self),
            run: counts.run,
            clock: self.has_times.then(TimestampFormat::local),
            lines: Default::default(),
            batch: StampedLines::default(),
        }
    }

    /// Ends a run, of whose output `read` bytes were read. Bytes that were not
    /// written by now are lost: the run was stopped, and the disk too slow.
    pub(super) fn end_run(&self, read: u64) {
        let mut counts = self.counts.lock();
        counts.lost += read.saturating_sub(counts.taken);
        counts.run += 1;
    }

    pub(super) fn figures(&self) -> LogFigures {
        let counts = self.counts.lock();
        LogFigures {
            path: self.path.clone(),
            bytes: counts.bytes,
            lost_bytes: counts.lost,
            rotations: counts.rotations,
        }
    }

    fn count(&self, run: u64, bytes: u64, lost: u64, rotations: u32) {
        let mut counts = self.counts.lock();
        if counts.run == run {
            counts.bytes += bytes;
            counts.lost += lost;
            counts.rotations += rotations;
            counts.taken += bytes + lost;
        }
    }

    /// Writes `bytes` of a run. `payload_behind` tells how many bytes behind an
    /// offset are the program's.
    fn write(&self, run: u64, bytes: &[u8], payload_behind: impl Fn(usize) -> u64) {
        let mut writer = self.writer.lock();
        let all = payload_behind(0);
        if !writer.mark_gap() {
            writer.gap += all;
            self.count(run, 0, all, 0);
            return;
        }
        let outcome = writer.file.write(bytes);
        let lost = payload_behind(outcome.written);
        writer.gap += lost;
        drop(writer);
        self.count(run, all - lost, lost, outcome.rotations);
        let path = self.path.display();
        if let Some(error) = outcome.write_error
            && !self.has_reported_loss.swap(true, Ordering::Relaxed)
        {
            message::post(format_args!(
                "cannot write the log {path:?}: {error}\n  \
                 the program goes on, and what is missing there is counted"
            ));
        }
        if let Some(error) = outcome.rotation_error
            && !self.has_reported_rotation.swap(true, Ordering::Relaxed)
        {
            message::post(format_args!(
                "cannot begin a new log after {path:?}: {error}\n  \
                 the old one grows, and it is tried again"
            ));
        }
    }

    /// Marks the gap at the end of the file, if there is one and the file takes the
    /// mark.
    fn mark_gap_at_end(&self) {
        let _ = self.writer.lock().mark_gap();
    }
}

impl LogWriter {
    /// Writes a line about the bytes that are missing at this place. Returns false if
    /// the file takes nothing.
    fn mark_gap(&mut self) -> bool {
        if !self.file.finish() {
            return false;
        }
        if self.gap == 0 {
            // The file may be another program's log, and end in the middle of a line.
            let must_begin = self.clock.is_some() && !self.file.is_at_line_start();
            return !must_begin || self.file.begin(b"\n");
        }
        let mut mark = Vec::new();
        if !self.file.is_at_line_start() {
            mark.push(b'\n');
        }
        if let Some(clock) = &mut self.clock {
            clock.push_rfc3339(SystemTime::now(), &mut mark);
            mark.extend_from_slice(b" log ");
        }
        let text = format!("procwright: {} bytes are missing here\n", self.gap);
        mark.extend_from_slice(text.as_bytes());
        if !self.file.begin(&mark) {
            return false;
        }
        self.gap = 0;
        self.file.finish()
    }
}

/// Writes the output of one run.
#[derive(Debug)]
pub(super) struct LogTap {
    log: Arc<Log>,
    run: u64,
    clock: Option<TimestampFormat>,
    lines: [LineSplitter; 2],
    batch: StampedLines,
}

impl LogTap {
    fn write_batch(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if !batch.bytes.is_empty() {
            self.log
                .write(self.run, &batch.bytes, |from| batch.payload_behind(from));
            self.batch = batch.emptied();
        }
    }
}

impl Tap for LogTap {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let Some(clock) = &mut self.clock else {
            let all = piece.bytes.len();
            self.log
                .write(self.run, piece.bytes, |from| (all - from) as u64);
            return Ok(());
        };
        let (batch, at) = (&mut self.batch, piece.read_at);
        let stream = piece.stream;
        let lines = &mut self.lines[stdio::index(stream)];
        lines.feed(piece.bytes, |line| batch.push(stream, line, at, clock));
        self.write_batch();
        Ok(())
    }

    fn end(&mut self) -> Result<(), BoxError> {
        if let Some(clock) = &mut self.clock {
            let (batch, at) = (&mut self.batch, SystemTime::now());
            for (lines, stream) in self.lines.iter_mut().zip(StdStream::BOTH) {
                lines.finish(|line| batch.push(stream, line, at, clock));
            }
            self.write_batch();
        }
        self.log.mark_gap_at_end();
        Ok(())
    }
}

/// Lines with their times.
#[derive(Debug, Default)]
struct StampedLines {
    bytes: Vec<u8>,
    /// Ranges of `bytes` that the program wrote.
    payload: Vec<Range<usize>>,
}

impl StampedLines {
    fn push(
        &mut self,
        stream: StdStream,
        line: Line<'_>,
        at: SystemTime,
        clock: &mut TimestampFormat,
    ) {
        clock.push_rfc3339(at, &mut self.bytes);
        let name: &[u8] = match (stream, line.continues) {
            (StdStream::Stdout, false) => b" out ",
            (StdStream::Stdout, true) => b" out+ ",
            (StdStream::Stderr, false) => b" err ",
            (StdStream::Stderr, true) => b" err+ ",
        };
        self.bytes.extend_from_slice(name);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(line.bytes);
        self.bytes.push(b'\n');
        let end = self.bytes.len() - usize::from(!line.is_ended);
        self.payload.push(start..end);
    }

    /// Bytes of the program behind an offset.
    fn payload_behind(&self, from: usize) -> u64 {
        let behind = |range: &Range<usize>| range.end.saturating_sub(range.start.max(from));
        self.payload.iter().map(|range| behind(range) as u64).sum()
    }

    /// Keeps the memory and drops the lines, for the next batch.
    fn emptied(mut self) -> StampedLines {
        self.bytes.clear();
        self.payload.clear();
        self
    }
}
