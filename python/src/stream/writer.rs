//! The binary stream into a child.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use procwright::stream::Readiness;
use procwright::time::Deadline;
use procwright_os::fork::OnceBox;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::UntakenStreams;
use super::errors::failed;
use super::inside::OperationCount;
use crate::patient::patiently;

/// Bytes into a child.
#[pyclass(module = "procwright._core", frozen, subclass, weakref)]
pub(crate) struct Writer {
    pub(crate) writer: procwright::stream::Writer,
    pub(crate) name: String,
    pub(crate) inside: OperationCount,
    written: AtomicU64,
    readiness: OnceBox<Readiness>,
}

#[pymethods]
impl Writer {
    /// Takes the child's stdin.
    #[new]
    fn new(streams: &Bound<'_, UntakenStreams>) -> PyResult<Writer> {
        let (writer, name) = streams.get().take_stdin()?;
        Ok(Writer {
            writer,
            name,
            inside: OperationCount::default(),
            written: AtomicU64::new(0),
            readiness: OnceBox::new(),
        })
    }

    /// Writes all of it.
    #[pyo3(name = "_write_all")]
    fn write_all(&self, py: Python<'_>, data: PyBackedBytes) -> PyResult<usize> {
        let data: &[u8] = &data;
        // The number of bytes written, kept over interruptions.
        let done = AtomicUsize::new(0);
        let written = patiently(py, Deadline::NEVER, |patience| {
            let _inside = self.inside.enter();
            let mut paced = patience.paced();
            loop {
                let at = done.load(Ordering::Relaxed);
                if at == data.len() {
                    return Ok(());
                }
                paced.step()?;
                let n = self.writer.write_with(&data[at..], patience)?;
                done.fetch_add(n, Ordering::Relaxed);
                self.written.fetch_add(n as u64, Ordering::Relaxed);
            }
        })?;
        written.map_err(|error| failed(py, &error, &self.name))?;
        Ok(data.len())
    }

    /// Writes of `data` from `offset` on what there is room for. How many bytes, 0 for no room.
    #[pyo3(name = "_write_now")]
    fn write_now(&self, py: Python<'_>, data: PyBackedBytes, offset: usize) -> PyResult<usize> {
        let data = data.get(offset..).unwrap_or_default();
        let written = py.detach(|| {
            let _inside = self.inside.enter();
            self.writer.write_for(data, Duration::ZERO)
        });
        match written {
            Ok(n) => {
                self.written.fetch_add(n as u64, Ordering::Relaxed);
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(0),
            Err(error) => Err(failed(py, &error, &self.name)),
        }
    }

    /// Refuses at once in a fork and when it is closed, without waiting for another thread's
    /// write.
    #[pyo3(name = "_alive")]
    fn alive(&self, py: Python<'_>) -> PyResult<()> {
        let checked = self.writer.check();
        checked.map_err(|error| failed(py, &error, &self.name))
    }

    /// How many bytes have gone into the pipe.
    #[getter]
    fn bytes_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// A descriptor that is readable once there is room to write, once the child reads
    /// no more and once the stream is closed. It stays this object's.
    pub(crate) fn readiness_fd(&self, py: Python<'_>) -> PyResult<RawFd> {
        let fd = match self.readiness.get() {
            Some(readiness) => Ok(readiness.as_raw_fd()),
            None => self
                .writer
                .readiness()
                .map(|fd| self.readiness.get_or_insert(fd).as_raw_fd()),
        };
        fd.map_err(|error| failed(py, &error, &self.name))
    }

    #[pyo3(name = "_pipe")]
    fn pipe(&self, py: Python<'_>) -> PyResult<RawFd> {
        let number = self.writer.lend_pipe();
        number.map_err(|error| failed(py, &error, &self.name))
    }

    /// Closes it, so that the child comes to the end of its input. From any thread: as
    /// that of a `Reader`.
    #[pyo3(signature = (wait=false))]
    fn close(&self, py: Python<'_>, wait: bool) {
        self.writer.close();
        if wait {
            py.detach(|| self.inside.wait_empty());
        }
    }

    #[getter]
    fn closed(&self) -> bool {
        self.writer.is_closed()
    }

    /// The name in errors.
    #[getter]
    fn label(&self) -> &str {
        &self.name
    }
}
