//! [`Writer`]: the writing end of a child's stdin.

use std::io::{self, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::function_flags::{FunctionFlags, closed_error};
use super::pty_master::PtyMaster;
use super::readiness::Readiness;
use super::stall_watch::{StallCheck, StallWatch};
use crate::drain::TerminalInput;
use procwright_os::fork;
use procwright_os::handle::{Handle, HandleError, Patience};
use procwright_os::poll::Flags;
use procwright_os::pty;
use procwright_os::ready::Interest;
use procwright_os::signal::without_sigpipe;
use procwright_os::sync::{Mutex, MutexGuard};
use procwright_os::thread;
use procwright_os::time::{Deadline, Timeout};

/// The writing end of a child's stdin.
///
/// Writes block while the pipe is full, and no longer than until the writer is
/// closed. Nothing is buffered: what `write` took is in the pipe. A child that reads
/// no more makes them fail with `BrokenPipe`; no SIGPIPE is sent,
/// whatever its disposition is. All clones are one: closing one closes all, and
/// so does dropping the last.
///
/// For a child on a terminal ([`Command::pty`](crate::Command::pty)) the writer is the
/// keyboard: what is written is typed. Closing it types the key that means the
/// end of the input, and closing the reader of the terminal closes it too.
#[doc(alias = "std::process::ChildStdin")]
#[derive(Clone, Debug)]
pub struct Writer(Arc<WriterShared>);

/// A [`Writer`] that does not keep its stream open.
#[derive(Clone, Debug)]
pub(crate) struct WeakWriter(Weak<WriterShared>);

impl WeakWriter {
    /// The writer, none once all others are gone.
    pub(crate) fn upgrade(&self) -> Option<Writer> {
        self.0.upgrade().map(Writer)
    }
}

/// The part of a writer that its clones share.
#[derive(Debug)]
struct WriterShared {
    handle: Arc<Handle>,
    watch: Arc<StallWatch>,
    /// Those of the other stages of a pipeline: it takes no more if one of them cannot go on.
    others: Vec<Arc<StallWatch>>,
    /// The keyboard, if it is a terminal.
    keyboard: Option<Keyboard>,
    /// Those of the function between two programs that writes, if one does.
    function: Option<Arc<FunctionFlags>>,
}

/// The input of a terminal.
#[derive(Debug)]
struct Keyboard {
    pty_master: Arc<PtyMaster>,
    keys: Mutex<TerminalInput>,
    /// Whether the end of the input was typed.
    ended: AtomicBool,
}

impl Keyboard {
    fn keys(&self) -> MutexGuard<'_, TerminalInput> {
        self.keys.lock()
    }

    /// Types the end of the input. A terminal that takes no keys now gets it as
    /// soon as there is room, from a thread, unless it is hung up before.
    fn end(&self, handle: &Handle) {
        // A fork types nothing, and a lock may be held there for ever. SeqCst only because
        // this is no hot path: the swap alone decides which of two closes types the end.
        if handle.is_forked() || self.ended.swap(true, Ordering::SeqCst) {
            return;
        }
        let mut keys = std::mem::take(&mut *self.keys());
        let left = handle.with_fd(|fd| {
            keys.end(fd)?;
            match keys.write(fd) {
                Err(e) if e.kind() != io::ErrorKind::WouldBlock => return Err(e),
                _ if keys.is_empty() => return Ok(None),
                _ => {}
            }
            Handle::new(fd.try_clone_to_owned()?).map(|handle| Some(Arc::new(handle)))
        });
        if let Some(Ok(Some(handle))) = left {
            self.pty_master.add_writer(&handle);
            let finish = move || {
                while !keys.is_empty() {
                    let typed =
                        handle.operate(Flags::OUT, Patience::NEVER_ENDING, |fd| keys.write(fd));
                    if typed.is_err() {
                        return;
                    }
                }
            };
            // Without a thread the program is not told, and goes on as if more could be
            // typed.
            let _ = thread::spawn_quiet("procwright-stdin", finish);
        }
    }
}

impl WriterShared {
    /// Closes the handle. On a terminal the end of the input is typed first.
    fn close(&self) -> bool {
        if let Some(keyboard) = &self.keyboard {
            keyboard.end(&self.handle);
        }
        self.handle.close()
    }
}

impl Drop for WriterShared {
    fn drop(&mut self) {
        self.close();
    }
}

/// The number of bytes that `poll` promises room for.
const ATOMIC: usize = rustix::pipe::PIPE_BUF;

impl Writer {
    /// A handle to this writer that does not keep the stream open.
    pub(crate) fn downgrade(&self) -> WeakWriter {
        WeakWriter(Arc::downgrade(&self.0))
    }

    /// `watch` tells when the child does not go on.
    pub(crate) fn new(fd: OwnedFd, watch: Arc<StallWatch>) -> io::Result<Writer> {
        Writer::of_pipeline(fd, watch, Vec::new())
    }

    /// Writes to a pipeline: `watch` and `others` tell when its stages do not go on.
    pub(crate) fn of_pipeline(
        fd: OwnedFd,
        watch: Arc<StallWatch>,
        others: Vec<Arc<StallWatch>>,
    ) -> io::Result<Writer> {
        let handle = Arc::new(Handle::new(fd)?);
        Ok(Writer(Arc::new(WriterShared {
            handle,
            watch,
            others,
            keyboard: None,
            function: None,
        })))
    }

    /// Writes for a function between two programs.
    pub(crate) fn of_function(fd: OwnedFd, flags: Arc<FunctionFlags>) -> io::Result<Writer> {
        let handle = Arc::new(Handle::new(fd)?);
        Ok(Writer(Arc::new(WriterShared {
            handle,
            watch: StallWatch::none(),
            others: Vec::new(),
            keyboard: None,
            function: Some(flags),
        })))
    }

    /// Writes to the terminal of `pty_master`.
    pub(crate) fn of_terminal(
        fd: OwnedFd,
        watch: Arc<StallWatch>,
        pty_master: Arc<PtyMaster>,
    ) -> io::Result<Writer> {
        let handle = Arc::new(Handle::new(fd)?);
        pty_master.add_writer(&handle);
        let keyboard = Keyboard {
            pty_master,
            keys: Mutex::default(),
            ended: AtomicBool::new(false),
        };
        Ok(Writer(Arc::new(WriterShared {
            handle,
            watch,
            others: Vec::new(),
            keyboard: Some(keyboard),
            function: None,
        })))
    }

    /// Writes some of `data`, and says how much.
    ///
    /// # Errors
    /// `BrokenPipe` if the child reads no more, [`Closed`](super::Closed) if it is
    /// closed, `TimedOut` if there was no room in time. [`Stalled`](super::Stalled)
    /// if there was none for as long as [`Command::stall_after`] says because the
    /// child waits for its output to be read; the write may be made again.
    ///
    /// [`Command::stall_after`]: crate::Command::stall_after
    pub fn write_for(&self, data: &[u8], timeout: impl Into<Timeout>) -> io::Result<usize> {
        self.write_with(data, Patience::from(timeout))
    }

    /// Writes some of `data`, and says how much.
    ///
    /// # Errors
    /// As [`write_for`](Writer::write_for); `Interrupted` when the patience says
    /// so, and then nothing was written.
    pub fn write_with(&self, data: &[u8], patience: Patience<'_>) -> io::Result<usize> {
        // A pipe that was lent blocks. One that poll says has room takes this much at once.
        let most = match self.0.handle.is_exposed() {
            true => data.len().min(ATOMIC),
            false => data.len(),
        };
        let data = &data[..most];
        let began = Instant::now();
        let mut stall = StallCheck::writing(&self.0.watch, began);
        let others = self.0.others.iter();
        // Of a child that is none, and takes no memory.
        let mut others: Vec<StallCheck> = others
            .map(|watch| StallCheck::writing(watch, began))
            .collect();
        let first = others.iter().map(StallCheck::first_check);
        let mut next = first.fold(stall.first_check(), Deadline::min);
        loop {
            let until = patience.no_later_than(next);
            let written = self.0.handle.operate(Flags::OUT, until, |fd| {
                match without_sigpipe(|| Ok(rustix::io::write(fd, data)?)) {
                    Ok(n) => {
                        if let Some(keyboard) = &self.0.keyboard {
                            keyboard.keys().note_written(&data[..n]);
                        }
                        Ok(n)
                    }
                    // The end of a terminal, in the words of a pipe.
                    Err(e) if self.0.keyboard.is_some() && pty::is_end(&e) => {
                        Err(io::ErrorKind::BrokenPipe.into())
                    }
                    Err(e) => {
                        let broken = e.kind() == io::ErrorKind::BrokenPipe;
                        if let Some(flags) = self.0.function.as_ref().filter(|_| broken) {
                            flags.note_no_reader();
                        }
                        Err(e)
                    }
                }
            });
            let now = Instant::now();
            match written {
                Err(HandleError::TimedOut) if !patience.deadline().reached(now) => {
                    next = stall.check(now).map_err(io::Error::other)?.at;
                    for other in &mut others {
                        next = next.min(other.check(now).map_err(io::Error::other)?.at);
                    }
                }
                Err(HandleError::Interrupted) => {
                    stall.interrupted(now);
                    others.into_iter().for_each(|other| other.interrupted(now));
                    return Err(HandleError::Interrupted.into());
                }
                Err(HandleError::Closed) => return Err(self.closed_error()),
                written => return Ok(written?),
            }
        }
    }

    /// Writes all of `data`. On an error some of it may have been written.
    ///
    /// # Errors
    /// As [`write_for`](Writer::write_for).
    pub fn write_all_for(&self, mut data: &[u8], timeout: impl Into<Timeout>) -> io::Result<()> {
        let patience = Patience::from(timeout);
        while !data.is_empty() {
            let n = self.write_with(data, patience)?;
            data = &data[n..];
        }
        Ok(())
    }

    /// Whether something can be written at all.
    ///
    /// # Errors
    /// [`Closed`](super::Closed); `Unsupported` in a fork.
    pub fn check(&self) -> io::Result<()> {
        if self.0.handle.is_forked() {
            return Err(fork::used_in_fork());
        }
        match self.0.handle.is_closed() {
            true => Err(self.closed_error()),
            false => Ok(()),
        }
    }

    fn closed_error(&self) -> io::Error {
        closed_error(self.0.function.as_deref())
    }

    /// The number of the pipe, to be handed on: see
    /// [`Reader::lend_pipe`](super::Reader::lend_pipe).
    ///
    /// # Errors
    /// As there; `Unsupported` for a terminal, whose two directions block or do not
    /// block together.
    pub fn lend_pipe(&self) -> io::Result<RawFd> {
        if self.0.keyboard.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a terminal cannot be handed on: its output is read through the same descriptor",
            ));
        }
        Ok(self.0.handle.expose_fd()?)
    }

    /// A descriptor that is readable once there is room to write, once the child reads no
    /// more, and once the writer is closed. Takes two descriptors.
    ///
    /// # Errors
    /// When no descriptor is left; `Unsupported` in a fork.
    pub fn readiness(&self) -> io::Result<Readiness> {
        Ok(Readiness::of_handle(
            self.0.handle.readiness(Interest::Write)?,
        ))
    }

    /// Closes it, so that the child comes to the end of its input; false if it
    /// was closed before. Returns at once. A write that is blocked meanwhile fails with
    /// [`Closed`](super::Closed).
    pub fn close(&self) -> bool {
        self.0.close()
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.0.handle.is_closed()
    }
}

impl Write for &Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.write_with(data, Patience::NEVER_ENDING)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.write_with(data, Patience::NEVER_ENDING)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
