//! A function of the caller's in the place of the pipe between two runs.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use rustix::io::Errno;

use super::next_pipe::{NextPipe, RingOnDrop};
use crate::child::Unstarted;
use crate::error::{BoxError, SpawnError, Step};
use crate::stream::{FunctionFlags, Reader, WeakReader, WeakWriter, Writer};
use procwright_os::fork::{CloseOnFork, ProcessOwned};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::signal::without_sigpipe;
use procwright_os::sync::Mutex;
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// A function of the caller's that stands between two programs.
pub(crate) type StageFunction =
    Box<dyn FnOnce(&mut StageInput, &mut StageOutput) -> Result<(), BoxError> + Send>;

/// The error of a function that has panicked; the panic hook has told why.
const PANICKED: &str = "the function panicked";

/// What became of a function between two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FunctionEnd {
    /// It returned `Ok`.
    Returned,
    /// It returned the error of a write that nobody reads any more.
    BrokenPipe,
    /// It returned another error, or panicked, and all were stopped for it.
    Failed,
    /// It returned since all were stopped.
    Cancelled,
    /// It has not returned although its streams were cut: its thread goes on.
    Running,
}

impl FunctionEnd {
    /// The name that stands in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            FunctionEnd::Returned => "returned",
            FunctionEnd::BrokenPipe => "broken_pipe",
            FunctionEnd::Failed => "failed",
            FunctionEnd::Cancelled => "cancelled",
            FunctionEnd::Running => "running",
        }
    }
}

/// What a function between two programs reads: the stdout of the one before.
///
/// A read waits for bytes. It fails with `ECANCELED` once the pipeline is stopped and its programs
/// are gone, and in the place of an end that comes of that stop: what was read until then is a
/// part and not all.
///
/// A clone is another handle on the same pipe. A program that writes learns that nobody reads any
/// more when the last of them is gone.
#[derive(Clone, Debug)]
pub struct StageInput {
    fd: Arc<CloseOnFork>,
    control: Arc<Control>,
}

/// What a function between two programs writes to: the stdin of the next one.
///
/// A write waits for room. It fails with [`BrokenPipe`](io::ErrorKind::BrokenPipe) once nobody
/// reads any more, and with `ECANCELED` once the pipeline is stopped and its programs are gone.
/// Nothing is buffered.
///
/// A clone is another handle on the same pipe. The next program sees the end of its input when the
/// last of them is gone, and the function has returned.
#[derive(Clone, Debug)]
pub struct StageOutput {
    fd: Arc<CloseOnFork>,
    control: Arc<Control>,
}

/// What the function's streams and the loop of the pipeline have together.
#[derive(Debug)]
struct Control {
    /// Rung when the function is to come out.
    cut: Wake,
    flags: Arc<FunctionFlags>,
    lent: Mutex<Lent>,
}

/// The readers and writers that the function was given, and has not dropped: each has a descriptor.
#[derive(Debug, Default)]
struct Lent {
    /// The function has returned, or is to come out: those that are made later are closed.
    is_over: bool,
    readers: Vec<WeakReader>,
    writers: Vec<WeakWriter>,
}

impl Lent {
    /// Adds a reader, or closes it.
    fn add_reader(&mut self, reader: &Reader) {
        if self.is_over {
            reader.close();
        } else {
            self.readers.retain(|other| other.upgrade().is_some());
            self.readers.push(reader.downgrade());
        }
    }

    /// Adds a writer, or closes it.
    fn add_writer(&mut self, writer: &Writer) {
        if self.is_over {
            writer.close();
        } else {
            self.writers.retain(|other| other.upgrade().is_some());
            self.writers.push(writer.downgrade());
        }
    }
}

impl Control {
    fn close_lent(&self) {
        let mut lent = self.lent.lock();
        lent.is_over = true;
        let readers = std::mem::take(&mut lent.readers);
        for reader in readers.iter().filter_map(WeakReader::upgrade) {
            reader.close();
        }
        let writers = std::mem::take(&mut lent.writers);
        for writer in writers.iter().filter_map(WeakWriter::upgrade) {
            writer.close();
        }
    }

    /// Waits until one of `flags` is so.
    fn wait(&self, fd: BorrowedFd<'_>, flags: Flags) -> io::Result<()> {
        loop {
            let mut fds = [
                Fd::from_borrowed_fd(fd, flags),
                Fd::new(&self.cut, Flags::IN),
            ];
            match poll::poll(&mut fds, Deadline::NEVER) {
                Ok(_) if !fds[1].revents().is_empty() => return Err(Errno::CANCELED.into()),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl StageInput {
    /// A [`Reader`] of the same pipe, which any thread may close, whose reads may have a patience,
    /// and which can be read by lines. What was told of reads holds for its own. It is closed when
    /// the function returns.
    ///
    /// ```
    /// use procwright::Command;
    /// use procwright::stream::{Framing, LineItem, LineReader};
    /// use std::io::Write;
    ///
    /// let output = Command::new("printf").arg("pear\\napple\\n")
    ///     .pipe_fn(|input, output| {
    ///         let input = LineReader::new(input.reader()?, Framing::default())?;
    ///         for item in input.lines() {
    ///             if let LineItem::Line(line) = item? {
    ///                 writeln!(output, "{}", line.len())?;
    ///             }
    ///         }
    ///         Ok(())
    ///     })
    ///     .pipe(Command::new("sort"))
    ///     .run()?;
    /// assert_eq!(output.stdout, b"4\n5\n");
    /// # Ok::<(), procwright::pipeline::Error>(())
    /// ```
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn reader(&self) -> io::Result<Reader> {
        let fd = self.fd.get()?.try_clone_to_owned()?;
        let reader = Reader::of_function(fd, Arc::clone(&self.control.flags))?;
        self.control.lent.lock().add_reader(&reader);
        Ok(reader)
    }
}

impl StageOutput {
    /// A [`Writer`] to the same pipe, which any thread may close, and whose writes may have a
    /// patience. What was told of writes holds for its own. It is closed when the function returns;
    /// the next program does not see an end of its input before.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn writer(&self) -> io::Result<Writer> {
        let fd = self.fd.get()?.try_clone_to_owned()?;
        let writer = Writer::of_function(fd, Arc::clone(&self.control.flags))?;
        self.control.lent.lock().add_writer(&writer);
        Ok(writer)
    }
}

impl Read for StageInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let fd = self.fd.get()?;
        loop {
            self.control.wait(fd, Flags::IN)?;
            match rustix::io::read(fd, &mut *buffer) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                // The stop is noted before its first signal, and so before the end that this makes.
                Ok(0) if self.control.flags.is_stopping() => {
                    return Err(Errno::CANCELED.into());
                }
                read => return Ok(read?),
            }
        }
    }
}

impl Write for StageOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let fd = self.fd.get()?;
        loop {
            self.control.wait(fd, Flags::OUT)?;
            match without_sigpipe(|| Ok(rustix::io::write(fd, bytes)?)) {
                Ok(n) => return Ok(n),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {}
                    io::ErrorKind::BrokenPipe => {
                        self.control.flags.note_no_reader();
                        return Err(error);
                    }
                    _ => return Err(error),
                },
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A function with the thread that it is called on.
///
/// The thread is there before the programs are, as it may be refused, and calls the function when
/// these have been started.
pub(super) struct FunctionJoint {
    control: Arc<Control>,
    /// Rung when the function has returned.
    done: Arc<Wake>,
    /// Has the thread call the function; dropped before, the thread ends without.
    begin: Option<Sender<()>>,
    /// What the function returns; none once that was seen, or is waited for no more. The thread
    /// is not joined: what it does after that (destructors of the caller's) is its own affair.
    returned: Option<Receiver<Result<(), BoxError>>>,
    /// The end to write of the pipe to the run behind, until the function has done its work: who
    /// reads must not take a part for all of it, and is stopped before it sees an end.
    output: Option<Arc<CloseOnFork>>,
    next: NextPipe,
    end: FunctionEnd,
    /// True if it had something to read and room to write when all were stopped.
    held_up: bool,
}

impl FunctionJoint {
    /// A function that reads `input`. Returns the pipe to be read by the run behind, too.
    ///
    /// # Errors
    /// No descriptor or thread is left.
    pub(super) fn new(
        function: StageFunction,
        input: OwnedFd,
    ) -> Result<(FunctionJoint, OwnedFd), Unstarted> {
        let no_descriptor = |error| SpawnError::new(Step::Pipe, "", error);
        let (next, read, write) = NextPipe::new().map_err(no_descriptor)?;
        let control = Arc::new(Control {
            cut: Wake::new().map_err(no_descriptor)?,
            flags: Arc::default(),
            lent: Mutex::default(),
        });
        let done = Arc::new(Wake::new().map_err(no_descriptor)?);
        let output = Arc::new(CloseOnFork::new(write));
        let mut input = StageInput {
            fd: Arc::new(CloseOnFork::new(input)),
            control: Arc::clone(&control),
        };
        let mut stage_output = StageOutput {
            fd: Arc::clone(&output),
            control: Arc::clone(&control),
        };
        let rung_at_end = RingOnDrop(Arc::clone(&done));
        let (begin, begun) = channel();
        let (tell, told) = channel();
        let lender = Arc::clone(&control);
        let call = move || {
            let rung_at_end = ProcessOwned::new(rung_at_end);
            if begun.recv().is_err() {
                return;
            }
            let called = AssertUnwindSafe(|| function(&mut input, &mut stage_output));
            let returned = catch_unwind(called);
            if !rung_at_end.is_ours() {
                // The function has forked. The pipeline is the parent's, and so is its error.
                return;
            }
            lender.close_lent();
            drop((input, stage_output));
            let _ = tell.send(returned.unwrap_or_else(|_| Err(PANICKED.into())));
        };
        // Signals are not blocked: what the function starts would inherit that.
        let thread = Builder::new().name("procwright-fn".into()).spawn(call);
        thread.map_err(|error| SpawnError::new(Step::Thread, "", error))?;
        let joint = FunctionJoint {
            control,
            done,
            begin: Some(begin),
            returned: Some(told),
            output: Some(output),
            next,
            end: FunctionEnd::Running,
            held_up: false,
        };
        Ok((joint, read))
    }

    /// Has the function called.
    pub(super) fn begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            // The thread waits for it.
            let _ = begin.send(());
        }
    }

    /// Readable once the function has returned; none when that was seen.
    pub(super) fn awaited_fd(&self) -> Option<BorrowedFd<'_>> {
        self.returned.as_ref().map(|_| self.done.as_fd())
    }

    /// The pipe to the run behind.
    pub(super) fn next(&self) -> &NextPipe {
        &self.next
    }

    /// Takes note of its end.
    ///
    /// # Errors
    /// Its own error, unless this comes of a stop, or of a reader that has left.
    pub(super) fn note_end(&mut self) -> Result<(), BoxError> {
        let Some(returned) = self.returned.take() else {
            return Ok(());
        };
        let returned = returned.try_recv();
        let returned = returned.unwrap_or_else(|_| Err(PANICKED.into()));
        let is_stopping = self.control.flags.is_stopping();
        let has_no_reader = self.control.flags.has_no_reader();
        let (end, failure) = match returned {
            Ok(()) => (FunctionEnd::Returned, None),
            Err(error) if has_no_reader && is_broken_pipe(&error) => {
                (FunctionEnd::BrokenPipe, None)
            }
            Err(_) if is_stopping => (FunctionEnd::Cancelled, None),
            Err(error) => (FunctionEnd::Failed, Some(error)),
        };
        self.end = end;
        if failure.is_none() && !is_stopping {
            self.output = None;
        }
        failure.map_or(Ok(()), Err)
    }

    /// Notes that all are being stopped. `has_input` says that a read does not wait.
    pub(super) fn note_stop(&mut self, has_input: bool) {
        let has_room = self.next.look().is_some_and(|ends| !ends.is_full);
        self.held_up = self.returned.is_some() && has_input && has_room;
        self.control.flags.note_stop();
    }

    /// Has its reads and writes fail from now on.
    pub(super) fn cut(&self) {
        self.control.cut.ring();
        self.control.close_lent();
    }

    /// Waits for it no more.
    pub(super) fn give_up(&mut self) {
        self.returned = None;
    }

    pub(super) fn end(&self) -> FunctionEnd {
        self.end
    }

    pub(super) fn held_up(&self) -> bool {
        self.held_up
    }
}

impl Drop for FunctionJoint {
    fn drop(&mut self) {
        self.cut();
    }
}

/// True of an error that is that of a write which nobody reads any more, or wraps it.
fn is_broken_pipe(error: &BoxError) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
    while let Some(one) = cause {
        let io = one.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return true;
        }
        cause = one.source();
    }
    false
}
