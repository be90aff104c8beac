//! The binary stream out of a child.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use procwright::memory::Memory;
use procwright::stream::{Item, LineReader, Patience};
use procwright::time::{Deadline, Timeout};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use super::converted::{Converted, NextItem};
use super::errors::{failed, read_timeout};
use super::figures::figures;
use super::{Frame, SharedReader, UntakenStreams};
use crate::arguments::{limit_of, size};
use crate::bytes::{BytesMemory, WritableBuffer};

/// Reads of one stream before the caller looks at others, and at the clock.
const READS: usize = 16;

/// Bytes and lines out of a child.
#[pyclass(module = "procwright._core", frozen, subclass, weakref)]
pub(crate) struct Reader {
    pub(crate) source: Arc<SharedReader>,
}

#[pymethods]
impl Reader {
    /// Takes the stream with that number, 1 or 2.
    #[new]
    fn new(py: Python<'_>, streams: &Bound<'_, UntakenStreams>, number: u8) -> PyResult<Reader> {
        let source = streams.get().take_output(py, number)?;
        Ok(Reader { source })
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().alive(slf.py())?;
        Ok(slf)
    }

    fn __next__<'py>(&self, py: Python<'py>) -> NextItem<'py, PyBytes> {
        self.line(py, usize::MAX)
    }

    #[pyo3(signature = (size=-1, /), text_signature = "($self, size=-1, /)")]
    fn readline<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = size)] size: i64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let line = match usize::try_from(size) {
            Ok(0) => {
                self.alive(py)?;
                None
            }
            Ok(size) => self.line(py, size)?,
            Err(_) => self.line(py, usize::MAX)?,
        };
        Ok(line.unwrap_or_else(|| PyBytes::new(py, b"")))
    }

    /// Reads so many bytes, less at the end of all; with -1 or None to the end.
    ///
    /// With a timeout it raises `WaitTimeout` if they have not come by then; what has stays, and
    /// the call may be made again.
    // A half in Python could lose what it has just got to a handler of a signal that raises.
    #[pyo3(
        signature = (size=-1, /, *, timeout=None),
        text_signature = "($self, size=-1, /, *, timeout=None)"
    )]
    fn read<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        #[pyo3(from_py_with = size)] size: i64,
        timeout: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let this = slf.get();
        let limit = time_limit(timeout.as_ref())?;
        let most = usize::try_from(size).ok();
        if let Some(most) = most
            && let Some(bytes) = this.held(py, most)?
        {
            return Ok(bytes);
        }
        let mut memory = BytesMemory::new();
        let wanted = most.unwrap_or(usize::MAX);
        let until = limit.starting(Instant::now());
        if !this.source.gather(py, &mut memory, wanted, until)? {
            let what = match most {
                Some(most) => format!("{most} bytes from {}", this.source.name),
                None => format!("end of {}", this.source.name),
            };
            return Err(read_timeout(slf, &what, timeout));
        }
        Ok(memory.into_bytes(py)?.into_bound(py))
    }

    /// Reads what has come, and waits only for the first byte; b"" at the end.
    ///
    /// With a timeout it raises `WaitTimeout` if nothing has come by then.
    #[pyo3(
        signature = (size=-1, /, *, timeout=None),
        text_signature = "($self, size=-1, /, *, timeout=None)"
    )]
    fn read1<'py>(
        slf: &Bound<'py, Self>,
        py: Python<'py>,
        #[pyo3(from_py_with = size)] size: i64,
        timeout: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let this = slf.get();
        let most = usize::try_from(size).unwrap_or(usize::MAX);
        let until = time_limit(timeout.as_ref())?.starting(Instant::now());
        match this.some(py, most, true, until)? {
            Some(bytes) => Ok(bytes),
            None => {
                let what = format!("bytes from {}", this.source.name);
                Err(read_timeout(slf, &what, timeout))
            }
        }
    }

    /// Reads until `buffer` is full or the stream ends. How many bytes.
    #[pyo3(signature = (buffer, /))]
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.into(py, buffer, true)
    }

    /// Reads what is there, and waits only for the first byte. How many bytes.
    #[pyo3(signature = (buffer, /))]
    fn readinto1(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.into(py, buffer, false)
    }

    #[pyo3(signature = (size=0, /))]
    fn peek<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = size)] size: i64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        // The size is a hint, which `io` does not follow either.
        let _ = size;
        let some = self.some(py, usize::MAX, false, Deadline::NEVER)?;
        Ok(some.unwrap_or_else(|| PyBytes::new(py, b"")))
    }

    /// The next line, gap (as its offset and length) or, at the end, None.
    #[pyo3(name = "_next_in")]
    fn next_in<'py>(&self, py: Python<'py>, frame: &Bound<'_, Frame>) -> NextItem<'py, PyAny> {
        loop {
            if let Some(item) = self.try_in(py, frame.get())? {
                return Ok(item);
            }
            let frame = frame.get();
            self.source.wait(py, |lines, patience| {
                lines.await_line_as(&frame.frame, usize::MAX, patience)
            })?;
        }
    }

    /// What `_next_in` gives, in a tuple; None if that would wait.
    #[pyo3(name = "_next_now")]
    #[allow(clippy::type_complexity)]
    fn next_now<'py>(
        &self,
        py: Python<'py>,
        frame: &Bound<'_, Frame>,
    ) -> PyResult<Option<(Option<Bound<'py, PyAny>>,)>> {
        let frame = frame.get();
        if let Some(item) = self.try_in(py, frame)? {
            return Ok(Some((item,)));
        }
        // What one step brings: a line that never ends must not have the event loop to itself.
        self.step(py, |lines, at_once| {
            lines.await_line_as(&frame.frame, usize::MAX, at_once)
        })?;
        Ok(self.try_in(py, frame)?.map(|item| (item,)))
    }

    /// At most `most` bytes of what is here, b"" at the end; None if there is nothing yet.
    #[pyo3(name = "_read_now")]
    fn read_now<'py>(&self, py: Python<'py>, most: usize) -> NextItem<'py, PyBytes> {
        loop {
            if let Some(bytes) = self.try_some(py, most, true)? {
                return Ok(Some(bytes));
            }
            if !self.step(py, |lines, at_once| lines.await_bytes(at_once))? {
                return Ok(None);
            }
        }
    }

    /// Makes these bytes the next that are read.
    #[pyo3(name = "_put_back")]
    fn put_back(&self, py: Python<'_>, bytes: PyBackedBytes) {
        self.source.give_back(py, &bytes);
    }

    /// Passes over the end of a line if that comes next: what was read last was the line.
    #[pyo3(name = "_expect_end")]
    fn expect_end(&self, py: Python<'_>) -> PyResult<()> {
        let expected = self.source.lines.expect_end();
        expected.map_err(|error| failed(py, &error, &self.source.name))
    }

    /// Looks without waiting: "line" and the next line, "part" and the beginning of one if
    /// it is longer than `looked_at`, or "end".
    #[pyo3(name = "_peek_line")]
    fn peek_line<'py>(
        &self,
        py: Python<'py>,
        looked_at: usize,
    ) -> PyResult<(&'static str, Option<Bound<'py, PyBytes>>)> {
        let source = &self.source;
        let refused = |error: io::Error| failed(py, &error, &source.name);
        let mut reads = 0;
        loop {
            let tried = source.lines.try_line(usize::MAX, |item| {
                Converted::from_item(item, |line| PyBytes::new(py, line))
            });
            match tried.map_err(refused)? {
                Some(Converted::Line(line)) => return Ok(("line", Some(line))),
                Some(Converted::Gap(n)) => drop(source.gap(n)),
                Some(Converted::End) => return Ok(("end", None)),
                // A line that never ends must not have the caller to itself.
                // What was read is given all the same: the caller will sleep until more
                // comes, which it may not.
                None if reads == READS => break,
                None => {
                    reads += 1;
                    let more = source.lines.held_bytes().map_err(refused)? + 1;
                    let at_once = Patience::from(Duration::ZERO);
                    match py.detach(|| source.lines.await_line(more, at_once)) {
                        Ok(()) => {}
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                        Err(error) => return Err(refused(error)),
                    }
                }
            }
        }
        let part = source.lines.try_held(|held, _| {
            let part = (held.len() > looked_at).then(|| PyBytes::new(py, held));
            (part, 0)
        });
        Ok(("part", part.map_err(refused)?.flatten()))
    }

    #[pyo3(name = "_gaps")]
    fn gaps(&self) -> Vec<(u64, u64)> {
        self.source.gaps()
    }

    #[pyo3(name = "_figures")]
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let reader = self.source.lines.reader();
        let found = reader.figures();
        found
            .map(|found| figures(py, &found, reader.blocked()))
            .transpose()
    }

    /// The longest that the child can have been unable to write so far, because its pipe was
    /// full. None in a fork.
    #[getter]
    fn blocked_s(&self) -> Option<f64> {
        let blocked = self.source.lines.reader().blocked()?;
        Some(blocked.as_secs_f64())
    }

    /// A descriptor that is readable once there is something to read, at the end and
    /// once the stream is closed. It stays this object's.
    ///
    /// Event loops call `read1` then. The descriptor says nothing of what that leaves, or what
    /// is left behind lines that were read one by one.
    fn readiness_fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        let fd = self.source.readiness();
        fd.map_err(|error| failed(py, &error, &self.source.name))
    }

    /// True if something was read out of the pipe already, and not taken.
    #[pyo3(name = "_is_held")]
    fn is_held(&self) -> bool {
        let looked = self
            .source
            .lines
            .try_held(|held, last| (last || !held.is_empty(), 0));
        !matches!(looked, Ok(Some(false) | None))
    }

    /// Refuses in a fork and when it is closed.
    #[pyo3(name = "_alive")]
    pub(super) fn alive(&self, py: Python<'_>) -> PyResult<()> {
        let looked = self.source.lines.try_held(|_, _| ((), 0));
        looked.map_or_else(
            |error| Err(failed(py, &error, &self.source.name)),
            |_| Ok(()),
        )
    }

    /// The number of the bare pipe, None where a queue stands between; and how many bytes of it
    /// were read already and not taken, with which no number is given.
    #[pyo3(name = "_pipe")]
    fn pipe(&self, py: Python<'_>) -> PyResult<(Option<RawFd>, usize)> {
        let lines = &self.source.lines;
        let refused = |error: io::Error| failed(py, &error, &self.source.name);
        let reader = lines.reader();
        // A queue has figures.
        if reader.figures().is_none() {
            let held = lines.held_bytes().map_err(refused)?;
            if held > 0 {
                return Ok((None, held));
            }
        }
        Ok((reader.lend_pipe().map_err(refused)?, 0))
    }

    /// Closes it, from any thread, any number of times. Returns at once: a thread
    /// that is blocked in it gets `StreamClosed`, in that call. With `wait`, returns when no
    /// thread is inside any more.
    #[pyo3(signature = (wait=false))]
    fn close(&self, py: Python<'_>, wait: bool) {
        let source = &self.source;
        // The interpreter lock is kept, so that the threads that are woken wait for it, and
        // not this one for them. No thread waits for it with a lock that a close takes.
        source.lines.close();
        if wait {
            py.detach(|| source.inside.wait_empty());
        }
    }

    #[getter]
    fn closed(&self) -> bool {
        self.source.lines.is_closed()
    }

    /// The name in errors.
    #[getter]
    fn label(&self) -> &str {
        &self.source.name
    }
}

impl Reader {
    /// The next line, at most `most` bytes of it; none at the end.
    fn line<'py>(&self, py: Python<'py>, most: usize) -> NextItem<'py, PyBytes> {
        let source = &self.source;
        loop {
            let tried = source.lines.try_line(most, |item| {
                Converted::from_item(item, |line| PyBytes::new(py, line))
            });
            match tried.map_err(|error| failed(py, &error, &source.name))? {
                Some(Converted::Line(line)) => return Ok(Some(line)),
                Some(Converted::Gap(n)) => drop(source.gap(n)),
                Some(Converted::End) => return Ok(None),
                None => source.wait(py, |lines, patience| lines.await_line(most, patience))?,
            }
        }
    }

    fn into(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, fills: bool) -> PyResult<usize> {
        let mut area = WritableBuffer::new(buffer)?;
        let area = area.bytes();
        if area.is_empty() {
            self.alive(py)?;
        }
        self.source.read_into(py, area, fills)
    }

    /// The next `most` bytes, if all are here already.
    fn held<'py>(&self, py: Python<'py>, most: usize) -> NextItem<'py, PyBytes> {
        let source = &self.source;
        let tried = source.lines.try_held(|held, _| match held.get(..most) {
            Some(bytes) => (Some(PyBytes::new(py, bytes)), most),
            None => (None, 0),
        });
        Ok(tried
            .map_err(|error| failed(py, &error, &source.name))?
            .flatten())
    }

    /// The bytes that are here. Waits only if there are none; None if the time is up.
    fn some<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        take: bool,
        until: Deadline,
    ) -> NextItem<'py, PyBytes> {
        loop {
            if let Some(bytes) = self.try_some(py, most, take)? {
                return Ok(Some(bytes));
            }
            let waited = self
                .source
                .wait_until(py, until, |lines, patience| lines.await_bytes(patience))?;
            if !waited {
                return Ok(None);
            }
        }
    }

    /// The bytes that are here, b"" at the end; None if there are none yet.
    fn try_some<'py>(&self, py: Python<'py>, most: usize, take: bool) -> NextItem<'py, PyBytes> {
        let source = &self.source;
        loop {
            let tried = source.lines.try_bytes(most, |item| match item {
                Item::Line(bytes) => {
                    let taken = if take { bytes.len() } else { 0 };
                    (Converted::Line(PyBytes::new(py, bytes)), taken)
                }
                Item::Gap(n) => (Converted::Gap(n), 1),
                _ => (Converted::End, 0),
            });
            match tried.map_err(|error| failed(py, &error, &source.name))? {
                Some(Converted::Line(bytes)) => return Ok(Some(bytes)),
                Some(Converted::Gap(n)) => drop(source.gap(n)),
                Some(Converted::End) => return Ok(Some(PyBytes::new(py, b""))),
                None => return Ok(None),
            }
        }
    }

    /// The next line or gap, or none at the end; nothing if there is no whole one yet.
    fn try_in<'py>(
        &self,
        py: Python<'py>,
        frame: &Frame,
    ) -> PyResult<Option<Option<Bound<'py, PyAny>>>> {
        let lines = &self.source.lines;
        let tried = lines.try_line_as(&frame.frame, usize::MAX, |item| {
            Converted::from_item(item, |line| PyBytes::new(py, frame.cut(line)))
        });
        let tried = tried.map_err(|error| failed(py, &error, &self.source.name))?;
        Ok(match tried {
            Some(Converted::Line(line)) => Some(Some(line.into_any())),
            Some(Converted::Gap(n)) => {
                let gap = (self.source.gap(n), n);
                Some(Some(gap.into_pyobject(py)?.into_any()))
            }
            Some(Converted::End) => Some(None),
            None => None,
        })
    }

    /// Does what `operation` can without waiting. False if nothing has come.
    fn step(
        &self,
        py: Python<'_>,
        operation: impl Fn(&LineReader, Patience<'_>) -> io::Result<()> + Sync,
    ) -> PyResult<bool> {
        let source = &self.source;
        let at_once = Patience::from(Duration::ZERO);
        let done = py.detach(|| {
            let _inside = source.inside.enter();
            operation(&source.lines, at_once)
        });
        match done {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(failed(py, &error, &source.name)),
        }
    }
}

/// The time that a read may take.
fn time_limit(given: Option<&Bound<'_, PyAny>>) -> PyResult<Timeout> {
    let limit = given.map(|given| limit_of("timeout", given)).transpose()?;
    Ok(limit.unwrap_or(Timeout::NEVER))
}
