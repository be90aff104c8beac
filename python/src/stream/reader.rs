//! The binary stream out of a child.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use procwright::buffer;
use procwright::memory::Memory;
use procwright::stream::{self, Framing, Item, Patience, Separator, TooLong};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::{Given, Next, Source, failed};
use crate::bytes::{Area, BytesMemory};
use crate::child::Child;
use crate::errors::invalid;

/// Reads of one stream before the caller looks at others, and at the clock.
const READS: usize = 16;

/// Bytes and lines out of a child.
#[pyclass(module = "procwright._core", frozen, subclass, weakref)]
pub(crate) struct Reader {
    pub(crate) source: Arc<Source>,
}

#[pymethods]
impl Reader {
    /// Takes the stream out of `child`, of which it is number 1 or 2.
    #[new]
    fn new(py: Python<'_>, child: &Bound<'_, Child>, number: u8) -> PyResult<Reader> {
        let source = child.get().take_output(py, number)?;
        Ok(Reader { source })
    }

    fn __iter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().alive(slf.py())?;
        Ok(slf)
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Next<'py, PyBytes> {
        self.line(py, usize::MAX)
    }

    #[pyo3(signature = (size=-1, /), text_signature = "($self, size=-1, /)")]
    fn readline<'py>(&self, py: Python<'py>, size: Option<i64>) -> PyResult<Bound<'py, PyBytes>> {
        let line = match usize::try_from(size.unwrap_or(-1)) {
            Ok(0) => {
                self.alive(py)?;
                None
            }
            Ok(size) => self.line(py, size)?,
            Err(_) => self.line(py, usize::MAX)?,
        };
        Ok(line.unwrap_or_else(|| PyBytes::new(py, b"")))
    }

    #[pyo3(signature = (size=-1, /), text_signature = "($self, size=-1, /)")]
    fn read<'py>(&self, py: Python<'py>, size: Option<i64>) -> PyResult<Bound<'py, PyBytes>> {
        let most = usize::try_from(size.unwrap_or(-1)).ok();
        if let Some(most) = most
            && let Some(bytes) = self.held(py, most)?
        {
            return Ok(bytes);
        }
        let mut memory = BytesMemory::new();
        self.source
            .gather(py, &mut memory, most.unwrap_or(usize::MAX))?;
        Ok(memory.into_bytes(py)?.into_bound(py))
    }

    #[pyo3(signature = (size=-1, /), text_signature = "($self, size=-1, /)")]
    fn read1<'py>(&self, py: Python<'py>, size: Option<i64>) -> PyResult<Bound<'py, PyBytes>> {
        let most = usize::try_from(size.unwrap_or(-1)).unwrap_or(usize::MAX);
        self.some(py, most, true)
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
    fn peek<'py>(&self, py: Python<'py>, size: i64) -> PyResult<Bound<'py, PyBytes>> {
        // As in `io`: the size is a hint that nobody follows.
        let _ = size;
        self.some(py, usize::MAX, false)
    }

    /// The next line, gap (as its offset and length) or, at the end, None.
    #[pyo3(name = "_next_in")]
    fn next_in<'py>(&self, py: Python<'py>, frame: &Bound<'_, Frame>) -> Next<'py, PyAny> {
        let frame = frame.get();
        loop {
            let tried = self
                .source
                .lines
                .try_line_as(&frame.frame, usize::MAX, |item| {
                    Given::of(item, |line| PyBytes::new(py, frame.cut(line)))
                });
            let tried = tried.map_err(|error| failed(py, &error, &self.source.name))?;
            match tried {
                Some(Given::It(line)) => return Ok(Some(line.into_any())),
                Some(Given::Gap(n)) => {
                    let gap = (self.source.gap(n), n);
                    return Ok(Some(gap.into_pyobject(py)?.into_any()));
                }
                Some(Given::End) => return Ok(None),
                None => self.source.wait(py, |lines, patience| {
                    lines.await_line_as(&frame.frame, usize::MAX, patience)
                })?,
            }
        }
    }

    /// What is here, without waiting: "line" and the next line, "part" and the
    /// beginning of one if it is longer than `looked_at`, or "end".
    #[pyo3(name = "_look")]
    fn look<'py>(
        &self,
        py: Python<'py>,
        looked_at: usize,
    ) -> PyResult<(&'static str, Option<Bound<'py, PyBytes>>)> {
        let source = &self.source;
        let refused = |error: io::Error| failed(py, &error, &source.name);
        let mut reads = 0;
        loop {
            let tried = source.lines.try_line(usize::MAX, |item| {
                Given::of(item, |line| PyBytes::new(py, line))
            });
            match tried.map_err(refused)? {
                Some(Given::It(line)) => return Ok(("line", Some(line))),
                Some(Given::Gap(n)) => drop(source.gap(n)),
                Some(Given::End) => return Ok(("end", None)),
                // A line that never ends must not have the caller to itself.
                // What was read is given all the same: the caller will sleep until more
                // comes, which it may not.
                None if reads == READS => break,
                None => {
                    reads += 1;
                    let held = source.lines.try_held(|held, _| (held.len(), 0));
                    let more = held.map_err(refused)?.unwrap_or(0) + 1;
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

    /// For how long at most the child could not write so far, because its pipe was
    /// full. None in a fork.
    #[getter]
    fn blocked_s(&self) -> Option<f64> {
        let blocked = self.source.lines.reader().blocked()?;
        Some(blocked.as_secs_f64())
    }

    /// A descriptor that is readable once there is something to read, at the end and
    /// once the stream is closed. It stays this object's.
    ///
    /// For event loops, which then call `read1`: of what that leaves, and of what
    /// lines leave that were read one by one, it says nothing.
    fn readiness_fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        let fd = self.source.readiness();
        fd.map_err(|error| failed(py, &error, &self.source.name))
    }

    /// Whether something was read already that nobody has taken.
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

    #[pyo3(name = "_pipe")]
    fn pipe(&self, py: Python<'_>) -> PyResult<Option<RawFd>> {
        let number = self.source.lines.reader().lend_pipe();
        number.map_err(|error| failed(py, &error, &self.source.name))
    }

    /// Closes it, from any thread, any number of times. Returns at once: whoever is
    /// blocked in it gets `StreamClosed`, in that call. With `wait`, returns when nobody
    /// is inside any more.
    #[pyo3(signature = (wait=false))]
    fn close(&self, py: Python<'_>, wait: bool) {
        let source = &self.source;
        // With the interpreter lock: whoever is woken waits for it, and not the closer
        // for him. Nobody waits for it who holds one of the locks that a close takes.
        source.lines.close();
        if wait {
            py.detach(|| source.inside.wait_empty());
        }
    }

    #[getter]
    fn closed(&self) -> bool {
        self.source.lines.is_closed()
    }

    /// As errors call it.
    #[getter]
    fn label(&self) -> &str {
        &self.source.name
    }
}

impl Reader {
    /// The next line, at most `most` bytes of it; none at the end.
    fn line<'py>(&self, py: Python<'py>, most: usize) -> Next<'py, PyBytes> {
        let source = &self.source;
        loop {
            let tried = source
                .lines
                .try_line(most, |item| Given::of(item, |line| PyBytes::new(py, line)));
            match tried.map_err(|error| failed(py, &error, &source.name))? {
                Some(Given::It(line)) => return Ok(Some(line)),
                Some(Given::Gap(n)) => drop(source.gap(n)),
                Some(Given::End) => return Ok(None),
                None => source.wait(py, |lines, patience| lines.await_line(most, patience))?,
            }
        }
    }

    fn into(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>, fills: bool) -> PyResult<usize> {
        let mut area = Area::of(buffer)?;
        let area = area.bytes();
        if area.is_empty() {
            self.alive(py)?;
        }
        self.source.read_into(py, area, fills)
    }

    /// So many bytes, if they are here already.
    fn held<'py>(&self, py: Python<'py>, most: usize) -> Next<'py, PyBytes> {
        let source = &self.source;
        let tried = source.lines.try_held(|held, _| match held.get(..most) {
            Some(bytes) => (Some(PyBytes::new(py, bytes)), most),
            None => (None, 0),
        });
        Ok(tried
            .map_err(|error| failed(py, &error, &source.name))?
            .flatten())
    }

    /// What is here, and waits only if nothing is.
    fn some<'py>(&self, py: Python<'py>, most: usize, take: bool) -> PyResult<Bound<'py, PyBytes>> {
        let source = &self.source;
        loop {
            let tried = source.lines.try_bytes(most, |item| match item {
                Item::Line(bytes) => {
                    let taken = if take { bytes.len() } else { 0 };
                    (Given::It(PyBytes::new(py, bytes)), taken)
                }
                Item::Gap(n) => (Given::Gap(n), 1),
                _ => (Given::End, 0),
            });
            match tried.map_err(|error| failed(py, &error, &source.name))? {
                Some(Given::It(bytes)) => return Ok(bytes),
                Some(Given::Gap(n)) => drop(source.gap(n)),
                Some(Given::End) => return Ok(PyBytes::new(py, b"")),
                None => source.wait(py, |lines, patience| lines.await_bytes(patience))?,
            }
        }
    }
}

/// Under the names of `Figures`.
pub(super) fn figures<'py>(
    py: Python<'py>,
    found: &buffer::Figures,
    blocked: Option<Duration>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes_in", found.bytes_in)?;
    dict.set_item("bytes_out", found.bytes_out)?;
    dict.set_item("lag_bytes", found.lag_bytes)?;
    dict.set_item("lag_s", found.lag.as_secs_f64())?;
    dict.set_item("peak_bytes", found.peak_bytes)?;
    dict.set_item("memory_bytes", found.memory_bytes)?;
    dict.set_item("memory_peak_bytes", found.memory_peak_bytes)?;
    dict.set_item("disk_bytes", found.disk_bytes)?;
    dict.set_item("disk_peak_bytes", found.disk_peak_bytes)?;
    dict.set_item("spilled_bytes", found.spilled_bytes)?;
    dict.set_item("dropped_bytes", found.dropped_bytes)?;
    dict.set_item("lost_bytes", found.lost_bytes)?;
    dict.set_item("blocked_s", blocked.map(|blocked| blocked.as_secs_f64()))?;
    Ok(dict)
}

/// How `lines()` cuts a stream.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Frame {
    pub(super) frame: stream::Frame,
    keep_ends: bool,
}

#[pymethods]
impl Frame {
    /// A separator of None is a newline or a carriage return.
    #[new]
    fn new(
        py: Python<'_>,
        separator: Option<Vec<u8>>,
        max_length: Option<usize>,
        fails: bool,
        keep_ends: bool,
    ) -> PyResult<Frame> {
        let separator = match separator {
            None => Separator::NewlineOrReturn,
            Some(bytes) if bytes == b"\n" => Separator::Newline,
            Some(bytes) => Separator::Bytes(bytes),
        };
        let framing = Framing {
            separator,
            max_length,
            too_long: match fails {
                true => TooLong::Fail,
                false => TooLong::Split,
            },
        };
        let frame = stream::Frame::new(framing).map_err(|error| invalid(py, &error))?;
        Ok(Frame { frame, keep_ends })
    }
}

impl Frame {
    /// The line without its separator, unless that is wanted.
    pub(super) fn cut<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        match self.keep_ends {
            true => line,
            false => self.frame.strip(line),
        }
    }
}
