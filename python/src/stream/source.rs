//! What the objects of one stream share.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use procwright::error::Invalid;
use procwright::memory::Memory;
use procwright::stream::{
    Broken, Chunk, Closed, Framing, LineReader, LineTooLong, Patience, Readiness, Stalled,
};
use procwright::time::Deadline;
use pyo3::prelude::*;

use super::patiently;
use crate::bytes::BytesMemory;
use crate::errors::{STREAMS, system, typed};

/// One reading end. The binary stream and the text stream over it have no state of
/// their own: what one has taken the other does not see, and nothing is between.
pub(crate) struct Source {
    pub(crate) lines: LineReader,
    /// As errors call it.
    pub(crate) name: String,
    pub(crate) inside: Inside,
    gaps: Mutex<Vec<(u64, u64)>>,
    readiness: OnceLock<Readiness>,
}

/// How much is read at once into an object that grows.
const PIECE: usize = 256 * 1024;

impl Source {
    /// # Errors
    /// None: the framing can be used.
    pub(crate) fn new(
        reader: procwright::stream::Reader,
        name: String,
    ) -> Result<Arc<Source>, Invalid> {
        Ok(Arc::new(Source {
            lines: LineReader::new(reader, Framing::default())?,
            name,
            inside: Inside::default(),
            gaps: Mutex::default(),
            readiness: OnceLock::new(),
        }))
    }

    /// The number of its readiness, kept for as long as this is.
    pub(crate) fn readiness(&self) -> io::Result<RawFd> {
        if let Some(readiness) = self.readiness.get() {
            return Ok(readiness.as_raw_fd());
        }
        let readiness = self.lines.reader().readiness()?;
        Ok(self.readiness.get_or_init(|| readiness).as_raw_fd())
    }

    /// So many were dropped here. Where that is.
    pub(crate) fn gap(&self, n: u64) -> u64 {
        // It has been passed.
        let at = self.position().saturating_sub(n);
        self.lock_gaps().push((at, n));
        at
    }

    /// Offset and length of each that was met.
    pub(crate) fn gaps(&self) -> Vec<(u64, u64)> {
        self.lock_gaps().clone()
    }

    fn lock_gaps(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for something; the exception of a handler, or why it will not come.
    pub(crate) fn wait(
        &self,
        py: Python<'_>,
        operation: impl Fn(&LineReader, Patience<'_>) -> io::Result<()> + Send + Sync,
    ) -> PyResult<()> {
        let waited = patiently(py, Deadline::NEVER, |patience| {
            let _inside = self.inside.enter();
            operation(&self.lines, patience)
        })?;
        waited.map_err(|error| failed(py, &error, &self.name))
    }

    /// Reads into `memory` until it has `most` bytes or the stream ends. When a
    /// handler raises, what was read goes back to where it came from.
    pub(crate) fn gather(
        &self,
        py: Python<'_>,
        memory: &mut BytesMemory,
        most: usize,
    ) -> PyResult<()> {
        let read = patiently(py, Deadline::NEVER, |patience| {
            let _inside = self.inside.enter();
            let mut paced = patience.paced();
            loop {
                let left = most - memory.as_bytes().len();
                if left == 0 {
                    return Ok(());
                }
                paced.step()?;
                let chunk = memory.fill(left.min(PIECE), |room| {
                    let chunk = self.lines.read_with(room, patience)?;
                    let n = if let Chunk::Bytes(n) = chunk { n } else { 0 };
                    Ok((n, chunk))
                })?;
                match chunk {
                    Chunk::Bytes(_) => {}
                    Chunk::Gap(n) => drop(self.gap(n)),
                    _ => return Ok(()),
                }
            }
        });
        self.all_or_nothing(py, read, memory.as_bytes())
    }

    /// As [`gather`](Source::gather), into memory of a fixed size; or what is there,
    /// unless it `fills` it. How many bytes.
    pub(crate) fn read_into(
        &self,
        py: Python<'_>,
        area: &mut [u8],
        fills: bool,
    ) -> PyResult<usize> {
        let mut length = 0;
        let read = patiently(py, Deadline::NEVER, |patience| {
            let _inside = self.inside.enter();
            let mut paced = patience.paced();
            while length < area.len() {
                paced.step()?;
                match self.lines.read_with(&mut area[length..], patience)? {
                    Chunk::Bytes(n) => length += n,
                    Chunk::Gap(n) => {
                        self.gap(n);
                        continue;
                    }
                    _ => break,
                }
                if !fills {
                    break;
                }
            }
            Ok(())
        });
        self.all_or_nothing(py, read, &area[..length])?;
        Ok(length)
    }

    /// What comes of a read that was to give these bytes.
    fn all_or_nothing(
        &self,
        py: Python<'_>,
        read: PyResult<io::Result<()>>,
        bytes: &[u8],
    ) -> PyResult<()> {
        let refused = match read {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => failed(py, &error, &self.name),
            Err(raised) => raised,
        };
        self.give_back(py, bytes);
        Err(refused)
    }

    /// So that these bytes are the next that are read.
    pub(crate) fn give_back(&self, py: Python<'_>, bytes: &[u8]) {
        // Without memory for it, it is lost, and so is all else.
        if !bytes.is_empty() {
            let _ = py.detach(|| self.lines.put_back(bytes));
        }
    }

    pub(crate) fn position(&self) -> u64 {
        self.lines.position()
    }

    /// Where gaps stand in what was read since the position was `begun`.
    pub(crate) fn gaps_since(&self, begun: u64) -> Vec<usize> {
        let mut dropped = 0;
        let gaps = self.lock_gaps();
        let since = gaps.iter().filter(|(at, _)| *at >= begun);
        since
            .map(|(at, n)| {
                let edge = at - begun - dropped;
                dropped += n;
                usize::try_from(edge).unwrap_or(usize::MAX)
            })
            .collect()
    }
}

/// Counts the operations that may block, in the process that it was made in: in a fork
/// nobody is inside, whatever was counted, and nobody leaves the lock that he held.
pub(crate) struct Inside {
    count: Mutex<Count>,
    left: Condvar,
    process: u32,
}

#[derive(Default)]
struct Count {
    inside: usize,
    /// Those who wait until nobody is inside: to tell nobody is a system call, too.
    waiting: usize,
}

impl Default for Inside {
    fn default() -> Inside {
        Inside {
            count: Mutex::default(),
            left: Condvar::new(),
            process: std::process::id(),
        }
    }
}

/// None in a fork.
pub(crate) struct Visit<'a>(Option<&'a Inside>);

impl Inside {
    pub(crate) fn enter(&self) -> Visit<'_> {
        if self.is_forked() {
            return Visit(None);
        }
        self.lock().inside += 1;
        Visit(Some(self))
    }

    fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// Until nobody is inside. Not for who waits: a handler that closes runs while
    /// its thread is outside.
    pub(crate) fn wait_empty(&self) {
        if self.is_forked() {
            return;
        }
        let mut count = self.lock();
        count.waiting += 1;
        while count.inside > 0 {
            count = self
                .left
                .wait(count)
                .unwrap_or_else(PoisonError::into_inner);
        }
        count.waiting -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let Some(inside) = self.0 else { return };
        let mut count = inside.lock();
        count.inside -= 1;
        if count.inside == 0 && count.waiting > 0 {
            inside.left.notify_all();
        }
    }
}

/// The exception for what a stream answers. `name` says which it is.
pub(crate) fn failed(py: Python<'_>, error: &io::Error, name: &str) -> PyErr {
    let inner = error.get_ref();
    if let Some(error) = Stalled::of(error) {
        return stalled(py, error);
    }
    if Closed::is(error) {
        return typed(py, STREAMS, "_stream_closed", (name,));
    }
    if error.kind() == io::ErrorKind::Unsupported {
        return typed(py, STREAMS, "_stream_forked", (name,));
    }
    if let Some(long) = inner.and_then(|inner| inner.downcast_ref::<LineTooLong>()) {
        return typed(py, STREAMS, "_line_too_long", (name, long.max_length));
    }
    match inner.and_then(|inner| inner.downcast_ref::<Broken>()) {
        Some(Broken::Overflowed { offset }) => typed(py, STREAMS, "_overflowed", (name, *offset)),
        Some(Broken::Lost {
            offset,
            length,
            source,
        }) => typed(
            py,
            STREAMS,
            "_lost",
            (
                name,
                *offset,
                *length,
                source.raw_os_error(),
                source.to_string(),
            ),
        ),
        _ => system(error, format!("{name}: {error}")),
    }
}

pub(crate) fn stalled(py: Python<'_>, error: &Stalled) -> PyErr {
    let streams: Vec<_> = error
        .streams
        .iter()
        .map(|one| (one.name, one.memory_bytes, one.disk_bytes))
        .collect();
    let after = error.after.as_secs_f64();
    let parts = (&error.command, streams, after, error.writing);
    typed(py, STREAMS, "_stalled", parts)
}
