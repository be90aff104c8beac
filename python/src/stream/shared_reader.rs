//! A reading end, which the binary and the text stream over it share.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use procwright::error::Invalid;
use procwright::memory::Memory;
use procwright::stream::{Chunk, Framing, LineReader, Patience, Readiness};
use procwright::time::Deadline;
use procwright_os::fork::OnceBox;
use pyo3::prelude::*;

use super::errors::failed;
use super::inside::OperationCount;
use crate::bytes::BytesMemory;
use crate::patient::patiently;
use procwright_os::sync::Mutex;

/// One reading end. The binary stream and the text stream over it have no state of their
/// own, so that either continues where the other has stopped.
pub(crate) struct SharedReader {
    pub(crate) lines: LineReader,
    /// The name in errors.
    pub(crate) name: String,
    pub(crate) inside: OperationCount,
    /// Offset and length of each gap that was met.
    gaps: Mutex<Vec<(u64, u64)>>,
    readiness: OnceBox<Readiness>,
}

/// Bytes read at once into an object that grows.
const PIECE: usize = 256 * 1024;

impl SharedReader {
    /// # Errors
    /// Never: the framing is one that can be used.
    pub(crate) fn new(
        reader: procwright::stream::Reader,
        name: String,
    ) -> Result<Arc<SharedReader>, Invalid> {
        Ok(Arc::new(SharedReader {
            lines: LineReader::new(reader, Framing::default())?,
            name,
            inside: OperationCount::default(),
            gaps: Mutex::default(),
            readiness: OnceBox::new(),
        }))
    }

    /// The number of the descriptor that tells of data, which is kept for as long as this is.
    pub(crate) fn readiness(&self) -> io::Result<RawFd> {
        if let Some(readiness) = self.readiness.get() {
            return Ok(readiness.as_raw_fd());
        }
        let readiness = self.lines.reader().readiness()?;
        Ok(self.readiness.get_or_insert(readiness).as_raw_fd())
    }

    /// Notes a gap of so many bytes, which was just read over; its offset.
    pub(crate) fn gap(&self, n: u64) -> u64 {
        let at = self.position().saturating_sub(n);
        self.gaps.lock().push((at, n));
        at
    }

    /// Offset and length of each gap that was met.
    pub(crate) fn gaps(&self) -> Vec<(u64, u64)> {
        self.gaps.lock().clone()
    }

    /// Waits until `operation` is done.
    ///
    /// # Errors
    /// The stream's, and what a signal handler raises.
    pub(crate) fn wait(
        &self,
        py: Python<'_>,
        operation: impl Fn(&LineReader, Patience<'_>) -> io::Result<()> + Send + Sync,
    ) -> PyResult<()> {
        self.wait_until(py, Deadline::NEVER, operation).map(drop)
    }

    /// So waits until then; false if the time comes first.
    ///
    /// # Errors
    /// As those of [`wait`](Self::wait).
    pub(crate) fn wait_until(
        &self,
        py: Python<'_>,
        until: Deadline,
        operation: impl Fn(&LineReader, Patience<'_>) -> io::Result<()> + Send + Sync,
    ) -> PyResult<bool> {
        let waited = patiently(py, until, |patience| {
            let _inside = self.inside.enter();
            operation(&self.lines, patience)
        })?;
        match waited {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(failed(py, &error, &self.name)),
        }
    }

    /// Reads into `memory` until it has `most` bytes or the stream ends; false if the time comes
    /// first. Then, and when a handler raises, what was read goes back to where it came from.
    pub(crate) fn gather(
        &self,
        py: Python<'_>,
        memory: &mut BytesMemory,
        most: usize,
        until: Deadline,
    ) -> PyResult<bool> {
        let read = patiently(py, until, |patience| {
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
        if matches!(&read, Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut) {
            self.give_back(py, memory.as_bytes());
            return Ok(false);
        }
        self.all_or_nothing(py, read, memory.as_bytes())?;
        Ok(true)
    }

    /// Reads into memory of a fixed size until that is full, or unless it `fills` it, what is
    /// there; how many bytes. When a handler raises, what was read goes back.
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

    /// Gives `bytes` back unless the read that brought them has succeeded.
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

    /// Makes these bytes the next that are read.
    pub(crate) fn give_back(&self, py: Python<'_>, bytes: &[u8]) {
        // An error means that there is no memory: then they are lost, and so is all else.
        if !bytes.is_empty() {
            let _ = py.detach(|| self.lines.put_back(bytes));
        }
    }

    pub(crate) fn position(&self) -> u64 {
        self.lines.position()
    }

    /// The places of gaps in what was read since the position was `begun`.
    pub(crate) fn gaps_since(&self, begun: u64) -> Vec<usize> {
        let mut dropped = 0;
        let gaps = self.gaps.lock();
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
