//! The two streams out of a child as one.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use procwright::stream::{MergedItem, MergedReader, Patience, Readiness};
use procwright::time::Deadline;
use procwright_os::fork::OnceBox;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::errors::failed;
use super::figures::figures;
use super::inside::OperationCount;
use super::{Frame, UntakenStreams};
use crate::patient::patiently;

/// Number of the stream (1, 2; 0 for a gap), seconds since 1970, the line or how much was
/// dropped, and whether its place is ambiguous.
type Item<'py> = (i32, f64, Bound<'py, PyAny>, bool);

/// Lines of both streams of a child.
#[pyclass(module = "procwright._core", frozen, subclass, weakref)]
pub(crate) struct Merged {
    reader: Arc<MergedReader>,
    name: String,
    inside: OperationCount,
    readiness: OnceBox<Readiness>,
}

#[pymethods]
impl Merged {
    /// Takes the child's stdout and stderr.
    #[new]
    fn new(streams: &Bound<'_, UntakenStreams>) -> PyResult<Merged> {
        let (reader, name) = streams.get().take_merged()?;
        Ok(Merged {
            reader,
            name,
            inside: OperationCount::default(),
            readiness: OnceBox::new(),
        })
    }

    /// The next line or gap; None at the end. Whole lines if no `frame` is given.
    #[pyo3(name = "_next", signature = (frame=None))]
    fn next<'py>(
        &self,
        py: Python<'py>,
        frame: Option<&Bound<'_, Frame>>,
    ) -> PyResult<Option<Item<'py>>> {
        let frame = frame.map(Bound::get);
        let read = patiently(py, Deadline::NEVER, |patience| {
            let _inside = self.inside.enter();
            match frame {
                None => self.reader.next_line(patience),
                Some(frame) => self.reader.next_line_as(&frame.frame, patience),
            }
        })?;
        let item = read.map_err(|error| failed(py, &error, &self.name))?;
        raw(py, item, frame)
    }

    /// What `_next` gives, in a tuple; None if that would wait.
    #[pyo3(name = "_next_now", signature = (frame=None))]
    fn next_now<'py>(
        &self,
        py: Python<'py>,
        frame: Option<&Bound<'_, Frame>>,
    ) -> PyResult<Option<(Option<Item<'py>>,)>> {
        let frame = frame.map(Bound::get);
        let at_once = Patience::from(Duration::ZERO);
        let read = py.detach(|| {
            let _inside = self.inside.enter();
            match frame {
                None => self.reader.next_line(at_once),
                Some(frame) => self.reader.next_line_as(&frame.frame, at_once),
            }
        });
        match read {
            Ok(item) => Ok(Some((raw(py, item, frame)?,))),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            Err(error) => Err(failed(py, &error, &self.name)),
        }
    }

    /// True if the next line is here already, or the end, of which `readiness_fd` says nothing.
    #[pyo3(name = "_is_held")]
    fn is_held(&self) -> bool {
        self.reader.is_held()
    }

    #[pyo3(name = "_figures")]
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.reader.figures();
        found
            .map(|found| figures(py, &found, self.reader.blocked()))
            .transpose()
    }

    /// A descriptor that is readable once there is something to read, at the end and
    /// once the stream is closed. It stays this object's.
    fn readiness_fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        let fd = match self.readiness.get() {
            Some(readiness) => Ok(readiness.as_raw_fd()),
            None => self
                .reader
                .readiness()
                .map(|fd| self.readiness.get_or_insert(fd).as_raw_fd()),
        };
        fd.map_err(|error| failed(py, &error, &self.name))
    }

    /// Closes both streams, from any thread: see `Reader.close`.
    #[pyo3(signature = (wait=false))]
    fn close(&self, py: Python<'_>, wait: bool) {
        py.detach(|| {
            self.reader.close();
            if wait {
                self.inside.wait_empty();
            }
        });
    }

    #[getter]
    fn closed(&self) -> bool {
        self.reader.is_closed()
    }

    /// The name in errors.
    #[getter]
    fn label(&self) -> &str {
        &self.name
    }
}

/// An item as Python gets it, none at the end.
fn raw<'py>(
    py: Python<'py>,
    item: Option<MergedItem>,
    frame: Option<&Frame>,
) -> PyResult<Option<Item<'py>>> {
    Ok(match item {
        Some(MergedItem::Line(line)) => {
            let at = line.at().duration_since(UNIX_EPOCH).unwrap_or_default();
            let bytes = frame.map_or(line.bytes(), |frame| frame.cut(line.bytes()));
            let bytes = PyBytes::new(py, bytes).into_any();
            Some((
                line.stream().fd(),
                at.as_secs_f64(),
                bytes,
                line.is_ambiguous(),
            ))
        }
        Some(MergedItem::Gap(n)) => Some((0, 0.0, n.into_pyobject(py)?.into_any(), false)),
        _ => None,
    })
}
