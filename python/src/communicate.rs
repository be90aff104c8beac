//! Writing stdin and reading all outputs at once, on one thread: the core's
//! `Communication`, with outputs that are `bytes`.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use bytes::Bytes;
use procwright::OutputCapture;
use procwright::memory::Memory;
use procwright::stream::{Chunk, Closed, Patience, Readiness};
use procwright::time::Deadline;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::attach::Attached;
use crate::bytes::BytesMemory;
use crate::child::Child;
use crate::errors::invalid;
use crate::patient::patiently;
use crate::pipeline_child::PipelineChild;
use crate::stream::{Reader, SharedReader, Writer, failed};
use crate::values::seconds;

/// The progress of one `communicate`, so that it can be taken up again.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Communication {
    stdin: Option<Py<Writer>>,
    /// Kept here as well, where it is dropped with the lock.
    _input: Bytes,
    talk: Mutex<procwright::Communication<Output>>,
}

/// What was read of an output, and the places where bytes were dropped.
type Taken = (Py<PyBytes>, Vec<usize>);

/// An output, and what was read of it.
struct Output {
    source: Arc<SharedReader>,
    memory: BytesMemory,
    /// The position at which this began.
    begun: u64,
}

/// Whose streams these are.
#[derive(FromPyObject)]
pub(crate) enum Started<'py> {
    Child(Bound<'py, Child>),
    Pipeline(Bound<'py, PipelineChild>),
}

/// Bytes read in one turn, so that the other streams have theirs soon.
const PIECE: usize = 256 * 1024;

#[pymethods]
impl Communication {
    #[new]
    fn new(
        started: Started<'_>,
        stdin: Option<Py<Writer>>,
        input: Option<PyBackedBytes>,
        outputs: Vec<Option<Bound<'_, Reader>>>,
    ) -> Communication {
        let output = |reader: Bound<'_, Reader>| {
            let source = Arc::clone(&reader.get().source);
            Output {
                begun: source.position(),
                source,
                memory: BytesMemory::new(),
            }
        };
        let outputs = outputs.into_iter().map(|reader| reader.map(output));
        let writer = stdin.as_ref().map(|stdin| stdin.get().writer.clone());
        let input = input.map_or_else(Bytes::new, |input| Bytes::from_owner(Attached::new(input)));
        let talk = match &started {
            Started::Child(child) => {
                let child = &child.get().child;
                child.communicate_with(writer, input.clone(), outputs)
            }
            Started::Pipeline(child) => {
                let child = &child.get().child;
                child.communicate_with(writer, input.clone(), outputs)
            }
        };
        Communication {
            stdin,
            _input: input,
            talk: Mutex::new(talk),
        }
    }

    /// Goes on until all is written and read; false if the timeout came first. On
    /// the main thread signal handlers run meanwhile, and what one raises is the error.
    fn go_on(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let deadline = timeout.starting(Instant::now());
        let mut guard = self.talk()?;
        let talk = &mut *guard;
        let stdin = self.stdin.as_ref().map(|stdin| stdin.get());
        let sources = talk.captures().flatten();
        let sources: Vec<_> = sources.map(|one| Arc::clone(&one.source)).collect();
        let done = patiently(py, deadline, |patience| {
            let _writing = stdin.map(|stdin| stdin.inside.enter());
            let reading = sources.iter().map(|source| source.inside.enter());
            let _reading: Vec<_> = reading.collect();
            proceed(talk, patience)
        })?;
        match done {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(refused(py, talk, &error)),
        }
    }

    /// Goes on with what needs no wait; whether all is written and read.
    pub(crate) fn go_on_now(&self, py: Python<'_>) -> PyResult<bool> {
        let mut guard = self.talk()?;
        let talk = &mut *guard;
        let at_once = Patience::until(Deadline::at(Instant::now()));
        match py.detach(|| proceed(talk, at_once)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(error) => Err(refused(py, talk, &error)),
        }
    }

    /// The descriptors of which one is readable when it can go on. They stay the streams'. None
    /// if it can go on at once: no descriptor tells of what a line was looked for in.
    fn sleep(&self, py: Python<'_>) -> PyResult<Option<Vec<RawFd>>> {
        let streams = self.open_streams(py)?;
        let numbers = |streams: Vec<Option<Readiness>>| {
            let open = streams.iter().flatten();
            open.map(AsRawFd::as_raw_fd).collect()
        };
        Ok(streams.map(numbers))
    }

    /// The bytes that were read of each output, and where in it bytes were dropped.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<Option<Taken>>> {
        let mut talk = self.talk()?;
        let taken = talk.captures_mut().map(|output| {
            let Some(output) = output else {
                return Ok(None);
            };
            let memory = std::mem::replace(&mut output.memory, BytesMemory::new());
            let gaps = output.source.gaps_since(output.begun);
            Ok(Some((memory.into_bytes(py)?, gaps)))
        });
        taken.collect()
    }

    /// The bytes that were read so far of each output.
    fn peek<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let talk = self.talk()?;
        let outputs = talk.captures();
        let read = outputs.map(|output| Some(PyBytes::new(py, output?.memory.as_bytes())));
        Ok(read.collect())
    }
}

impl Communication {
    /// The readiness of stdin, if it is written, and of the outputs that are not at their ends.
    /// None if it can go on at once.
    pub(crate) fn open_streams(&self, py: Python<'_>) -> PyResult<Option<Vec<Option<Readiness>>>> {
        let talk = self.talk()?;
        let stdin = self.stdin.as_ref().filter(|_| talk.is_writing());
        let stdin = stdin.map(|stdin| {
            let stdin = stdin.get();
            let readiness = stdin.writer.readiness();
            readiness.map_err(|error| failed(py, &error, &stdin.name))
        });
        let mut streams = vec![stdin.transpose()?];
        for (output, readiness) in talk.open_captures().zip(talk.open_readiness()) {
            let (Some(output), Some(readiness)) = (output, readiness) else {
                streams.push(None);
                continue;
            };
            if matches!(output.source.lines.held_bytes(), Ok(1..)) {
                return Ok(None);
            }
            let readiness = readiness.map_err(|error| failed(py, &error, &output.source.name));
            streams.push(Some(readiness?));
        }
        Ok(Some(streams))
    }

    /// Locks the progress, and does not wait for it: another user is a handler that runs
    /// within this very call, or another thread.
    fn talk(&self) -> PyResult<MutexGuard<'_, procwright::Communication<Output>>> {
        self.talk
            .try_lock()
            .map_err(|_| PyRuntimeError::new_err("somebody communicates with this child already"))
    }
}

fn refused(py: Python<'_>, talk: &procwright::Communication<Output>, error: &io::Error) -> PyErr {
    let closed = talk.closed_output();
    let name = closed.map_or("a stream", |output| &output.source.name);
    failed(py, error, name)
}

/// Goes on. An output that another thread closes before its end is an error, of each call;
/// stdin may be closed.
fn proceed(talk: &mut procwright::Communication<Output>, patience: Patience<'_>) -> io::Result<()> {
    loop {
        if talk.closed_output().is_some() {
            return Err(io::Error::other(Closed));
        }
        match talk.proceed(patience) {
            // Told once of each stream, so this does not go on for ever.
            Err(error) if Closed::is(&error) => {}
            done => return done,
        }
    }
}

impl OutputCapture for Output {
    fn read_some(&mut self, patience: Patience<'_>) -> io::Result<bool> {
        let source = &self.source;
        let chunk = self.memory.fill(PIECE, |room| {
            let chunk = source.lines.read_with(room, patience)?;
            let n = if let Chunk::Bytes(n) = chunk { n } else { 0 };
            Ok((n, chunk))
        })?;
        match chunk {
            Chunk::Bytes(_) => {}
            Chunk::Gap(n) => drop(source.gap(n)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn readiness(&self) -> io::Result<Readiness> {
        self.source.lines.reader().readiness()
    }
}
