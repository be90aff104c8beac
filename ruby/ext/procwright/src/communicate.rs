//! Writing stdin and reading both outputs at once, on one thread.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use magnus::{
    Class, Error, IntoValue, Module, Object, RArray, RModule, RString, Ruby, function, method,
};
use procwright::stream::{Closed, Patience, Readiness, Writer as Stdin};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::errors::{guarded, invalid, stream};
use crate::patient::{heard, now, patiently};
use crate::reader::{Filling, Reader, Source};
use crate::string::{adopted, bytes};
use crate::values::seconds;
use crate::writer::Writer;

pub(crate) fn define(ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    let class = native.define_class("Communication", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_singleton_method("new", function!(Communication::new, 4))?;
    class.define_method("go_on", method!(Communication::go_on, 1))?;
    class.define_method("take", method!(Communication::take, 0))
}

/// What one `communicate` has done so far, so that it can be taken up again.
///
/// Ruby's lock is let go of in the middle of `go_on`. That another thread comes to it then
/// is refused, by a flag that is looked at with the lock held.
#[magnus::wrap(class = "Procwright::Native::Communication", free_immediately)]
struct Communication(RefCell<Option<State>>);

struct State {
    stdin: Option<(Stdin, String)>,
    input: Bytes,
    outputs: [Option<Output>; 2],
}

struct Output {
    source: Arc<Source>,
    data: Filling,
    is_over: bool,
}

/// How much is read in one turn, so that nobody waits long for his.
const PIECE: usize = 256 * 1024;

impl Communication {
    fn new(
        stdin: Option<&Writer>,
        input: RString,
        stdout: Option<&Reader>,
        stderr: Option<&Reader>,
    ) -> Communication {
        let outputs = [stdout, stderr].map(|reader| {
            reader.map(|reader| Output {
                source: reader.source(),
                data: Filling::default(),
                is_over: false,
            })
        });
        Communication(RefCell::new(Some(State {
            stdin: stdin.map(|stdin| (stdin.writer.clone(), stdin.name.clone())),
            input: Bytes::from(bytes(input)),
            outputs,
        })))
    }

    /// Goes on until all is written and read; false if the timeout came first.
    fn go_on(&self, timeout: Option<f64>) -> Result<bool, Error> {
        guarded(|| {
            let deadline = seconds("timeout", timeout)?.starting(Instant::now());
            let mut lent = Lent(&self.0, self.taken()?);
            let state = &mut lent.1;
            let done = patiently(deadline, |patience| state.run(patience))?;
            match done {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
                Err(error) => Err(stream(&error, state.at(), true)),
            }
        })
    }

    /// What was read of both. It is over then.
    fn take(ruby: &Ruby, this: &Communication) -> Result<RArray, Error> {
        guarded(|| {
            let state = this.taken()?;
            let array = ruby.ary_new();
            for output in state.outputs {
                let data = output.map(|output| adopted(output.data.done()));
                array.push(data.transpose()?.into_value_with(ruby))?;
            }
            Ok(array)
        })
    }

    fn taken(&self) -> Result<State, Error> {
        let busy = || {
            let problem = "is busy with another call";
            let hint = "wait for that, or close the streams";
            invalid(&procwright::error::Invalid::new(
                "communicate",
                problem,
                hint,
            ))
        };
        self.0.borrow_mut().take().ok_or_else(busy)
    }
}

/// Goes back to where it was, also when something is thrown.
struct Lent<'a>(&'a RefCell<Option<State>>, State);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let empty = State {
            stdin: None,
            input: Bytes::new(),
            outputs: [None, None],
        };
        let state = std::mem::replace(&mut self.1, empty);
        self.0.replace(Some(state));
    }
}

impl State {
    fn run(&mut self, patience: Patience<'_>) -> io::Result<()> {
        loop {
            let mut moved = self.write()?;
            for output in self.outputs.iter_mut().flatten() {
                moved |= output.read()?;
            }
            let open = self.outputs.iter().flatten().any(|one| !one.is_over);
            if self.stdin.is_none() && !open {
                return Ok(());
            }
            if !moved {
                self.sleep(patience)?;
            } else if patience.deadline().reached(Instant::now()) {
                // What does not end gets no more time than was asked for.
                return Err(io::ErrorKind::TimedOut.into());
            }
            heard(patience)?;
        }
    }

    fn write(&mut self) -> io::Result<bool> {
        let Some((stdin, _)) = &self.stdin else {
            return Ok(false);
        };
        let written = match self.input.is_empty() {
            true => Ok(0),
            false => stdin.write_with(&self.input, now()),
        };
        match written {
            Ok(n) => drop(self.input.split_to(n)),
            Err(error) if is_empty(&error) => return Ok(false),
            // It reads no more, which is no concern of who wants its output; or
            // somebody has closed it.
            Err(error) if is_over(&error) => self.input.clear(),
            Err(error) => return Err(error),
        }
        if self.input.is_empty() {
            stdin.close();
            self.stdin = None;
        }
        Ok(true)
    }

    /// Until one of them can go on.
    fn sleep(&self, patience: Patience<'_>) -> io::Result<()> {
        let mut ready: Vec<Readiness> = Vec::with_capacity(3);
        for output in self.outputs.iter().flatten().filter(|one| !one.is_over) {
            ready.push(output.source.lines.reader().readiness()?);
        }
        if let Some((stdin, _)) = &self.stdin {
            ready.push(stdin.readiness()?);
        }
        let fds = ready.iter().map(|one| PollFd::new(one, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = fds.collect();
        let interrupt = patience.interrupt();
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

    /// What to call the stream that has failed.
    fn at(&self) -> &str {
        let mut outputs = self.outputs.iter().flatten();
        let closed = outputs.find(|output| output.source.lines.is_closed());
        closed.map_or("a stream", |output| &output.source.name)
    }
}

impl Output {
    /// Whether there was anything.
    fn read(&mut self) -> io::Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        match self.source.fill(&mut self.data, PIECE, now()) {
            Ok(more) => self.is_over = !more,
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
