//! Writing stdin and reading both outputs at once, on one thread.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use procwright::memory::Memory;
use procwright::stream::{Chunk, Closed, Patience, Readiness};
use procwright::time::Deadline;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::bytes::BytesMemory;
use crate::errors::invalid;
use crate::stream::{Reader, Source, Writer, failed, patiently};
use crate::values::seconds;

/// What one `communicate` has done so far, so that it can be taken up again.
#[pyclass(module = "procwright._core", frozen)]
pub(crate) struct Communication {
    stdin: Option<Py<Writer>>,
    state: Mutex<State>,
}

struct State {
    input: Option<PyBackedBytes>,
    written: usize,
    outputs: [Option<Output>; 2],
}

struct Output {
    source: Arc<Source>,
    memory: BytesMemory,
    is_over: bool,
    begun: u64,
}

/// How much is read in one turn, so that nobody waits long for his.
const PIECE: usize = 256 * 1024;

#[pymethods]
impl Communication {
    #[new]
    fn new(
        stdin: Option<Py<Writer>>,
        input: Option<PyBackedBytes>,
        stdout: Option<&Bound<'_, Reader>>,
        stderr: Option<&Bound<'_, Reader>>,
    ) -> Communication {
        let output = |reader: Option<&Bound<'_, Reader>>| {
            reader.map(|reader| {
                let source = Arc::clone(&reader.get().source);
                Output {
                    begun: source.position(),
                    source,
                    memory: BytesMemory::new(),
                    is_over: false,
                }
            })
        };
        let outputs = [output(stdout), output(stderr)];
        Communication {
            stdin,
            state: Mutex::new(State {
                input,
                written: 0,
                outputs,
            }),
        }
    }

    /// Goes on until all is written and read; false if the timeout came first. On
    /// the main thread signal handlers run meanwhile, and what one raises is the error.
    fn go_on(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
        let deadline = timeout.starting(Instant::now());
        let mut guard = self.state()?;
        let state = &mut *guard;
        let stdin = self.stdin.as_ref().map(|stdin| stdin.get());
        let outputs = [0, 1].map(|i| {
            let output = state.outputs[i].as_ref()?;
            Some(Arc::clone(&output.source))
        });
        let mut at = "";
        let done = patiently(py, deadline, |patience| {
            let _writing = stdin.map(|stdin| stdin.inside.enter());
            let sources = outputs.each_ref().map(Option::as_ref);
            let _reading = sources.map(|source| source.map(|source| source.inside.enter()));
            state.run(stdin, patience)
        })?;
        match done {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
            Err(error) => {
                for output in state.outputs.iter().flatten() {
                    if output.source.lines.is_closed() {
                        at = &output.source.name;
                    }
                }
                let name = if at.is_empty() { "a stream" } else { at };
                Err(failed(py, &error, name))
            }
        }
    }

    /// What was read of both, and where in each bytes were dropped.
    #[allow(clippy::type_complexity)]
    fn take(&self, py: Python<'_>) -> PyResult<[Option<(Py<PyBytes>, Vec<usize>)>; 2]> {
        let mut state = self.state()?;
        let mut taken = [None, None];
        for (place, output) in taken.iter_mut().zip(&mut state.outputs) {
            let Some(output) = output else { continue };
            let memory = std::mem::replace(&mut output.memory, BytesMemory::new());
            let gaps = output.source.gaps_since(output.begun);
            *place = Some((memory.into_bytes(py)?, gaps));
        }
        Ok(taken)
    }

    /// What was read so far.
    fn peek<'py>(&self, py: Python<'py>) -> PyResult<[Option<Bound<'py, PyBytes>>; 2]> {
        let state = self.state()?;
        Ok([0, 1].map(|i| {
            let output = state.outputs[i].as_ref()?;
            Some(PyBytes::new(py, output.memory.as_bytes()))
        }))
    }
}

impl Communication {
    /// Never waited for: who finds it taken is in a handler of the very call, or on
    /// another thread.
    fn state(&self) -> PyResult<MutexGuard<'_, State>> {
        self.state
            .try_lock()
            .map_err(|_| PyRuntimeError::new_err("somebody communicates with this child already"))
    }
}

impl State {
    fn run(&mut self, stdin: Option<&Writer>, patience: Patience<'_>) -> io::Result<()> {
        loop {
            let now = Patience::until(Deadline::at(Instant::now()));
            let mut moved = self.write(stdin, now)?;
            for output in self.outputs.iter_mut().flatten() {
                moved |= output.read(now)?;
            }
            let is_written = stdin.is_none_or(|stdin| stdin.writer.is_closed());
            if is_written && self.outputs.iter().flatten().all(|output| output.is_over) {
                return Ok(());
            }
            match moved {
                false => self.sleep(stdin, patience)?,
                // What does not end gets no more time than was asked for.
                true => patience.check()?,
            }
        }
    }

    fn write(&mut self, stdin: Option<&Writer>, now: Patience<'_>) -> io::Result<bool> {
        let Some(stdin) = stdin.filter(|stdin| !stdin.writer.is_closed()) else {
            return Ok(false);
        };
        let input: &[u8] = self.input.as_deref().unwrap_or_default();
        let rest = &input[self.written..];
        let written = match rest.is_empty() {
            true => Ok(0),
            false => stdin.writer.write_with(rest, now),
        };
        match written {
            Ok(n) => self.written += n,
            Err(error) if is_empty(&error) => return Ok(false),
            // It reads no more, which is no concern of who wants its output; or
            // somebody has closed it.
            Err(error) if is_over(&error) => self.written = input.len(),
            Err(error) => return Err(error),
        }
        if self.written == input.len() {
            stdin.writer.close();
        }
        Ok(true)
    }

    /// Until one of them can go on.
    fn sleep(&self, stdin: Option<&Writer>, patience: Patience<'_>) -> io::Result<()> {
        let mut ready: Vec<Readiness> = Vec::with_capacity(3);
        for output in self.outputs.iter().flatten().filter(|one| !one.is_over) {
            ready.push(output.source.lines.reader().readiness()?);
        }
        if let Some(stdin) = stdin.filter(|stdin| !stdin.writer.is_closed()) {
            ready.push(stdin.writer.readiness()?);
        }
        let mut fds: Vec<PollFd<'_>> = ready
            .iter()
            .map(|ready| PollFd::new(ready, PollFlags::IN))
            .collect();
        let interrupt: Option<BorrowedFd<'_>> = patience.interrupt();
        fds.extend(interrupt.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let left = patience.deadline().remaining(Instant::now());
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) if fds[..ready.len()].iter().all(|fd| fd.revents().is_empty()) => {
                Err(io::ErrorKind::Interrupted.into())
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Output {
    /// Whether there was anything.
    fn read(&mut self, now: Patience<'_>) -> io::Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        let source = &self.source;
        let read = self.memory.fill(PIECE, |room| {
            let chunk = source.lines.read_with(room, now)?;
            let n = if let Chunk::Bytes(n) = chunk { n } else { 0 };
            Ok((n, chunk))
        });
        match read {
            Ok(Chunk::Bytes(_)) => {}
            Ok(Chunk::Gap(n)) => drop(source.gap(n)),
            Ok(_) => self.is_over = true,
            Err(error) if is_empty(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

fn is_empty(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

fn is_over(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || Closed::is(error)
}
