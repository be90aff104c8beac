//! The part of a reader that a [`Communication`](crate::communicate) uses as well.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use procwright_os::fork::OnceBox;
use procwright_os::sync::Mutex;

use magnus::{Error, RArray, RString};
use procwright::stream::{Chunk, Framing, Item, LineReader, Patience, Readiness};
use procwright::time::Deadline;

use crate::errors::{invalid_error, stream_error};
use crate::fiber;
use crate::interruptible::{block_without_gvl, nonblocking};
use crate::read_buffer::ReadBuffer;
use crate::string::{Encoding, binary_string, string_in};

/// Bytes and lines out of a child.
pub(crate) struct SharedReader {
    pub(crate) lines: LineReader,
    /// The stream's name in errors.
    pub(crate) name: String,
    /// Offset and length of each gap that was met.
    gaps: Mutex<Vec<(u64, u64)>>,
    /// The descriptor, made at its first use.
    readiness: OnceBox<Readiness>,
}

/// The result of a look at the bytes that are here.
pub(crate) enum Found<T> {
    Data(T),
    Gap(u64),
    End,
}

/// Notes in `taken` the bytes of `whole`, of which the string has the beginning.
pub(crate) fn noted(
    taken: Option<RArray>,
    whole: &[u8],
    string: Result<RString, Error>,
) -> Result<RString, Error> {
    let string = string?;
    if let Some(taken) = taken {
        taken.push(string)?;
        let end = &whole[string.len()..];
        if !end.is_empty() {
            taken.push(binary_string(end)?)?;
        }
    }
    Ok(string)
}

impl SharedReader {
    pub(crate) fn new(
        reader: procwright::stream::Reader,
        name: String,
    ) -> Result<SharedReader, Error> {
        let lines = LineReader::new(reader, Framing::default());
        Ok(SharedReader {
            lines: lines.map_err(|error| invalid_error(&error))?,
            name,
            gaps: Mutex::default(),
            readiness: OnceBox::new(),
        })
    }

    /// Reads one piece. False at the end.
    pub(crate) fn fill(
        &self,
        buffer: &mut ReadBuffer,
        piece: usize,
        patience: Patience<'_>,
    ) -> io::Result<bool> {
        match self.lines.read_with(buffer.room(piece)?, patience)? {
            Chunk::Bytes(n) => buffer.filled += n,
            Chunk::Gap(n) => self.add_gap(n),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The next line in full, in this encoding; none at the end.
    pub(crate) fn line(
        &self,
        frame: &procwright::stream::Frame,
        chomp: bool,
        encoding: Encoding,
        taken: Option<RArray>,
    ) -> Result<Option<RString>, Error> {
        let mut waited = false;
        loop {
            let tried = self.lines.try_line_as(frame, usize::MAX, |item| {
                let whole = match item {
                    Item::Line(line) => line,
                    Item::Gap(n) => return Found::Gap(n),
                    _ => return Found::End,
                };
                let line = if chomp { frame.strip(whole) } else { whole };
                Found::Data(noted(taken, whole, string_in(line, encoding)))
            });
            match tried.map_err(|error| stream_error(&error, &self.name, waited))? {
                Some(Found::Data(line)) => return line.map(Some),
                Some(Found::Gap(n)) => self.add_gap(n),
                Some(Found::End) => return Ok(None),
                None => self.wait(&mut waited, |patience| {
                    self.lines.await_line_as(frame, usize::MAX, patience)
                })?,
            }
        }
    }

    /// Waits until `operation` is done. Under a Fiber scheduler only this fiber waits, and an
    /// exception that is raised in it is the outer error.
    pub(crate) fn block<T>(
        &self,
        mut operation: impl FnMut(Patience<'_>) -> io::Result<T>,
    ) -> Result<io::Result<T>, Error> {
        if !fiber::is_scheduled() {
            return block_without_gvl(Deadline::NEVER, operation);
        }
        loop {
            match operation(nonblocking()) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                done => return Ok(done),
            }
            match self.readiness_fd() {
                Ok(fd) => fiber::await_readable(fd)?,
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// [`block`](Self::block), after a try with the lock.
    pub(crate) fn try_then_block<T>(
        &self,
        mut operation: impl FnMut(Patience<'_>) -> io::Result<T>,
    ) -> Result<io::Result<T>, Error> {
        match operation(nonblocking()) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => self.block(operation),
            done => Ok(done),
        }
    }

    /// A descriptor that is readable once there is something to read, at the end, and once
    /// the stream is closed.
    pub(crate) fn readiness_fd(&self) -> io::Result<RawFd> {
        if let Some(readiness) = self.readiness.get() {
            return Ok(readiness.as_raw_fd());
        }
        let readiness = self.lines.reader().readiness()?;
        Ok(self.readiness.get_or_insert(readiness).as_raw_fd())
    }

    /// [`try_then_block`](Self::try_then_block) with one error for both: what an interrupt
    /// throws, and why the stream fails. Sets `waited`.
    pub(crate) fn wait(
        &self,
        waited: &mut bool,
        mut operation: impl FnMut(Patience<'_>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let done = self.try_then_block(|patience| {
            let done = operation(patience);
            // A call that was inside has another error of a close than a later one.
            *waited = true;
            done
        })?;
        done.map_err(|error| stream_error(&error, &self.name, *waited))
    }

    /// Notes that so many bytes were dropped here.
    pub(crate) fn add_gap(&self, n: u64) {
        let at = self.lines.position().saturating_sub(n);
        let mut gaps = self.gaps.lock();
        gaps.push((at, n));
    }

    /// Makes these bytes the next that are read.
    pub(crate) fn put_back(&self, bytes: &[u8]) {
        // Without memory for the bytes they are lost. The caller has an error to raise already.
        if !bytes.is_empty() {
            let _ = self.lines.put_back(bytes);
        }
    }

    /// Offset and length of each gap that was met.
    pub(crate) fn gaps(&self) -> Vec<(u64, u64)> {
        let gaps = self.gaps.lock();
        gaps.clone()
    }
}
