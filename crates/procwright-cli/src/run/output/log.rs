//! `--log`: both streams in a file, whatever becomes of the disk.
//!
//! A log that cannot be written is never the program's problem: it goes on, what
//! is missing is counted to the byte, and as soon as the file takes something
//! again, a line in it says how much is missing there.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use procwright::{BoxError, Piece, Tap};

use super::lines::{Line, Lines};
use super::log_file::{LogFile, Rotation};
use super::stamp::Clock;
use crate::message::say_in_run as say;

/// What became of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFigures {
    /// As it was given.
    pub(crate) path: PathBuf,
    /// How many bytes of the program's output are in it and in the old ones.
    pub(crate) bytes: u64,
    /// How many are not, and should be.
    pub(crate) lost_bytes: u64,
    /// How often a new file was begun.
    pub(crate) rotations: u32,
}

/// The log of all that this command runs.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Whether each line begins with one.
    times: bool,
    /// Held while a write goes on, which may be for ever: only the thread that
    /// writes takes it.
    writing: Mutex<Writing>,
    /// Never held while something is written.
    counts: Mutex<Counts>,
    told_lost: AtomicBool,
    told_stuck: AtomicBool,
}

#[derive(Debug, Default)]
struct Counts {
    bytes: u64,
    lost: u64,
    rotations: u32,
    /// Counts the runs. Who still writes for one that is over counts no more: its
    /// bytes were given up.
    run: u64,
    /// What came of the run so far, written or lost.
    taken: u64,
}

#[derive(Debug)]
struct Writing {
    file: LogFile,
    /// Bytes that are missing at the place where the file ends now.
    gap: u64,
    /// For the marks, if lines have times.
    times: Option<Clock>,
}

impl Log {
    /// Opens the file, so that a log which cannot be written is known before
    /// anything is run.
    ///
    /// # Errors
    /// In words, with a hint.
    pub(super) fn open(
        path: &Path,
        rotation: Option<Rotation>,
        times: bool,
    ) -> Result<Arc<Log>, String> {
        Ok(Arc::new(Log {
            path: path.to_owned(),
            times,
            writing: Mutex::new(Writing {
                file: LogFile::open(path, rotation)?,
                gap: 0,
                times: times.then(Clock::local),
            }),
            counts: Mutex::default(),
            told_lost: AtomicBool::new(false),
            told_stuck: AtomicBool::new(false),
        }))
    }

    /// What gets the output of one run.
    pub(super) fn tap(self: &Arc<Log>) -> LogTap {
        let mut counts = self.counts();
        counts.run += 1;
        counts.taken = 0;
        LogTap {
            log: Arc::clone(self),
            run: counts.run,
            times: self.times.then(Clock::local),
            lines: Default::default(),
            batch: Batch::default(),
        }
    }

    /// A run is over, of which so many bytes were read. Those that never came to
    /// be written are lost: it was stopped, and the disk too slow.
    pub(super) fn close(&self, read: u64) {
        let mut counts = self.counts();
        counts.lost += read.saturating_sub(counts.taken);
        counts.run += 1;
    }

    pub(super) fn figures(&self) -> LogFigures {
        let counts = self.counts();
        LogFigures {
            path: self.path.clone(),
            bytes: counts.bytes,
            lost_bytes: counts.lost,
            rotations: counts.rotations,
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, run: u64, bytes: u64, lost: u64, rotations: u32) {
        let mut counts = self.counts();
        if counts.run == run {
            counts.bytes += bytes;
            counts.lost += lost;
            counts.rotations += rotations;
            counts.taken += bytes + lost;
        }
    }

    /// Writes `bytes` of a run; `payload` tells how much of what stands behind a
    /// place in them is the program's.
    fn write(&self, run: u64, bytes: &[u8], payload: impl Fn(usize) -> u64) {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let all = payload(0);
        if !writing.heal() {
            writing.gap += all;
            self.count(run, 0, all, 0);
            return;
        }
        let wrote = writing.file.write(bytes);
        let lost = payload(wrote.bytes);
        writing.gap += lost;
        drop(writing);
        self.count(run, all - lost, lost, wrote.rotations);
        let path = self.path.display();
        if let Some(error) = wrote.failed
            && !self.told_lost.swap(true, Ordering::SeqCst)
        {
            say(format_args!(
                "cannot write the log {path:?}: {error}\n  \
                 the program goes on, and what is missing there is counted"
            ));
        }
        if let Some(error) = wrote.stuck
            && !self.told_stuck.swap(true, Ordering::SeqCst)
        {
            say(format_args!(
                "cannot begin a new log after {path:?}: {error}\n  \
                 the old one grows, and it is tried again"
            ));
        }
    }

    /// At the end of a run: the place that is not whole is marked if it can be.
    fn settle(&self) {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writing.heal();
    }
}

impl Writing {
    /// Says in the file what is missing at this place. False if the file takes
    /// nothing.
    fn heal(&mut self) -> bool {
        if !self.file.finish() {
            return false;
        }
        if self.gap == 0 {
            // Somebody else's log may end in the middle of a line.
            let must_begin = self.times.is_some() && !self.file.is_at_line_start();
            return !must_begin || self.file.begin(b"\n");
        }
        let mut mark = Vec::new();
        if !self.file.is_at_line_start() {
            mark.push(b'\n');
        }
        if let Some(clock) = &mut self.times {
            clock.rfc3339(SystemTime::now(), &mut mark);
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
    times: Option<Clock>,
    lines: [Lines; 2],
    batch: Batch,
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
        let Some(clock) = &mut self.times else {
            let all = piece.bytes.len();
            self.log
                .write(self.run, piece.bytes, |from| (all - from) as u64);
            return Ok(());
        };
        let (batch, at) = (&mut self.batch, piece.read_at);
        let lines = &mut self.lines[usize::from(piece.stream == 2)];
        lines.feed(piece.bytes, |line| batch.add(piece.stream, line, at, clock));
        self.write_batch();
        Ok(())
    }

    fn end(&mut self) -> Result<(), BoxError> {
        if let Some(clock) = &mut self.times {
            let (batch, at) = (&mut self.batch, SystemTime::now());
            for (lines, stream) in self.lines.iter_mut().zip([1, 2]) {
                lines.end(|line| batch.add(stream, line, at, clock));
            }
            self.write_batch();
        }
        self.log.settle();
        Ok(())
    }
}

/// Lines with their times, and where in them is what the program wrote.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    payload: Vec<std::ops::Range<usize>>,
}

impl Batch {
    fn add(&mut self, stream: u8, line: Line<'_>, at: SystemTime, clock: &mut Clock) {
        clock.rfc3339(at, &mut self.bytes);
        let name: &[u8] = match (stream, line.continues) {
            (1, false) => b" out ",
            (1, true) => b" out+ ",
            (_, false) => b" err ",
            (_, true) => b" err+ ",
        };
        self.bytes.extend_from_slice(name);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(line.bytes);
        self.bytes.push(b'\n');
        let end = self.bytes.len() - usize::from(!line.is_ended);
        self.payload.push(start..end);
    }

    fn payload_behind(&self, from: usize) -> u64 {
        let behind =
            |range: &std::ops::Range<usize>| range.end.saturating_sub(range.start.max(from));
        self.payload.iter().map(|range| behind(range) as u64).sum()
    }

    /// The memory of it, for the next one.
    fn emptied(mut self) -> Batch {
        self.bytes.clear();
        self.payload.clear();
        self
    }
}
