//! Consumers that may be slow: each has a thread and a queue of its own, so
//! that a callback that never returns holds up neither the drain nor a
//! deadline, and none of the other consumers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use super::tap::{Piece, Tap};
use crate::drain::OutputChunk;
use crate::error::BoxError;
use crate::spool::fifo::Fifo;
use crate::std_stream::{PerStream, StdStream};
use crate::stream::{Frame, Framing, LineCutter};
use procwright_os::fork::{self, ProcessOwned};
use procwright_os::wake::Wake;

/// A consumer that has no thread yet.
pub(crate) struct NewConsumer {
    pub(crate) kind: ConsumerKind,
    pub(crate) role: ConsumerRole,
}

impl NewConsumer {
    pub(crate) fn with_tap(tap: impl Tap + 'static, role: ConsumerRole) -> NewConsumer {
        NewConsumer {
            kind: ConsumerKind::Pieces(Box::new(tap)),
            role,
        }
    }
}

/// How a consumer takes a stream.
pub(crate) enum ConsumerKind {
    /// Piece by piece, as it was read.
    Pieces(Box<dyn Tap>),
    /// Line by line.
    Lines(LineCallback),
}

/// A consumer on its thread.
enum Consumer {
    Pieces(Box<dyn Tap>),
    Lines(Box<LineConsumer>),
}

/// The meaning of a consumer's error for the run, or for the child that a caller holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConsumerRole {
    /// The run is stopped and the error comes through. A child goes on without this copy, and the
    /// next wait for it has the error.
    Required,
    /// The consumer stands for the place where the streams would go without us. If
    /// that of one is gone, the program's pipe is closed; any other error is as a
    /// required one's.
    Relay,
    /// The consumer is left out from there on.
    Optional,
    /// The consumer is left out from there on, and the result says that the file of
    /// this path is not whole.
    FullFile(PathBuf),
}

/// A running consumer, as the run sees it.
#[derive(Debug)]
pub(crate) struct OutputConsumer {
    pub(crate) fifo: Arc<Fifo<OutputChunk>>,
    pub(crate) role: ConsumerRole,
    /// Streams that it gets.
    pub(crate) streams: PerStream<bool>,
    /// Streams that it was seen to take no more of.
    broken: PerStream<bool>,
    pub(crate) finished: bool,
    pub(crate) error: Option<BoxError>,
}

/// The thread of a consumer, as the one sees it who has started it: the queue that leads there.
#[derive(Debug)]
pub(crate) struct ConsumerThread {
    pub(crate) fifo: Arc<Fifo<OutputChunk>>,
    pub(crate) role: ConsumerRole,
    pub(crate) id: ThreadId,
}

impl ConsumerThread {
    /// Starts a thread that consumes so many streams. `at_end` is dropped when it is done, after
    /// its queue has said so; in a fork that a callback has made, never.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start(
        new: NewConsumer,
        streams: usize,
        wake: &Arc<Wake>,
        framing: &Framing,
        at_end: impl Send + 'static,
    ) -> io::Result<ConsumerThread> {
        let NewConsumer { kind, role } = new;
        let mut kind = match kind {
            ConsumerKind::Pieces(tap) => Consumer::Pieces(tap),
            ConsumerKind::Lines(callback) => {
                let frame = Frame::new(framing.clone()).map_err(io::Error::other)?;
                Consumer::Lines(Box::new(LineConsumer::new(callback, frame)))
            }
        };
        let fifo = Fifo::new(Arc::clone(wake), streams);
        let relays = role == ConsumerRole::Relay;
        let queue = Arc::clone(&fifo);
        let at_end = ProcessOwned::new(at_end);
        let thread = thread::Builder::new()
            .name("procwright-tap".into())
            .spawn(move || {
                // Dropped last, whatever happens.
                let _at_end = at_end;
                // Also when the tap panics: a run that waits for it must learn.
                let closing = ProcessOwned::new(CloseOnDrop(&queue));
                let result = consume(&queue, &mut kind, relays);
                if !closing.is_ours() {
                    // A callback has forked. What is left is the parent's, its lock as well.
                    return;
                }
                // The captures of a callback go before the run is told: what it holds
                // is free when `run` returns.
                drop(kind);
                std::mem::forget(closing);
                queue.close(result.err());
            })?;
        Ok(ConsumerThread {
            fifo,
            role,
            id: thread.thread().id(),
        })
    }
}

impl OutputConsumer {
    /// Starts a thread that consumes a stream or both.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start(
        new: NewConsumer,
        streams: PerStream<bool>,
        wake: &Arc<Wake>,
        framing: &Framing,
    ) -> io::Result<OutputConsumer> {
        let ConsumerThread { fifo, role, .. } =
            ConsumerThread::start(new, streams.chosen().count(), wake, framing, ())?;
        Ok(OutputConsumer {
            fifo,
            role,
            streams,
            broken: PerStream::default(),
            finished: false,
            error: None,
        })
    }

    /// Leaves it behind, since the run is over. A callback is not called again once
    /// `run` has returned; a copy to a file may still finish what it has. A relay may
    /// not, beyond what it is writing: that was counted as not delivered, and the next
    /// run has the same place.
    pub(crate) fn leave(&self) {
        if !self.finished && matches!(self.role, ConsumerRole::Required | ConsumerRole::Relay) {
            self.fifo.leave();
        }
    }

    /// Notes whether it has finished; true if it just has.
    pub(crate) fn just_finished(&mut self) -> bool {
        if self.finished {
            return false;
        }
        let (finished, error) = self.fifo.closed();
        self.finished = finished;
        self.error = error;
        finished
    }

    /// The streams that it takes no more of since this was last asked.
    pub(crate) fn newly_broken(&mut self) -> impl Iterator<Item = StdStream> + use<> {
        let now = self.fifo.broken();
        let before = std::mem::replace(&mut self.broken, now);
        now.zip(before).map(|(now, before)| now && !before).chosen()
    }
}

/// The run may have been left before its end, by its caller or by a panic: no drain
/// will tell of an end then.
impl Drop for OutputConsumer {
    fn drop(&mut self) {
        self.leave();
        self.fifo.end_all();
    }
}

struct CloseOnDrop<'a>(&'a Fifo<OutputChunk>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(Some("the callback panicked".into()));
    }
}

/// Takes all that comes, or until an error. A fork that was made meanwhile, by a callback on
/// this thread, gets one at once, and touches the queue no more.
fn consume(queue: &Fifo<OutputChunk>, kind: &mut Consumer, relays: bool) -> Result<(), BoxError> {
    let process = fork::generation();
    while let Some(chunk) = queue.take() {
        let taken = match kind {
            Consumer::Pieces(tap) => {
                tap.piece(Piece::new(chunk.stream, chunk.read_at, &chunk.bytes))
            }
            Consumer::Lines(lines) => lines.chunk(&chunk, queue),
        };
        not_forked_since(process)?;
        match taken {
            // One stream is gone: the other may go elsewhere.
            Err(error) if relays && is_broken_pipe(&error) => queue.break_off(chunk.stream),
            taken => taken?,
        }
    }
    if queue.was_left() {
        return Ok(());
    }
    match kind {
        Consumer::Pieces(tap) => match tap.end() {
            Err(error) if relays && is_broken_pipe(&error) => Ok(()),
            ended => ended,
        },
        Consumer::Lines(lines) => lines.end(queue),
    }
}

/// # Errors
/// In a fork of the process whose generation that is.
fn not_forked_since(process: u32) -> Result<(), BoxError> {
    match fork::generation() == process {
        true => Ok(()),
        false => Err("the callback has forked".into()),
    }
}

fn is_broken_pipe(error: &BoxError) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Called with a line and its end; the last one may have none.
pub(crate) type LineCallback = Box<dyn FnMut(&[u8]) -> Result<(), BoxError> + Send>;

/// Calls back for each line.
struct LineConsumer {
    callback: LineCallback,
    cutter: LineCutter,
    /// The stream that it gets, and how many bytes of a line were held of it.
    held: (StdStream, usize),
}

impl LineConsumer {
    fn new(callback: LineCallback, frame: Frame) -> LineConsumer {
        LineConsumer {
            callback,
            cutter: LineCutter::new(frame),
            held: (StdStream::Stdout, 0),
        }
    }

    fn chunk(&mut self, chunk: &OutputChunk, queue: &Fifo<OutputChunk>) -> Result<(), BoxError> {
        self.held.0 = chunk.stream;
        let mut bytes = &chunk.bytes[..];
        while !bytes.is_empty() && !queue.was_left() {
            bytes = self.cutter.take_in(bytes)?;
            self.call_back(queue)?;
        }
        self.note_held(queue);
        Ok(())
    }

    fn end(&mut self, queue: &Fifo<OutputChunk>) -> Result<(), BoxError> {
        self.cutter.end()?;
        self.call_back(queue)?;
        self.note_held(queue);
        Ok(())
    }

    /// Stops between two lines once the run is over: a chunk can hold thousands.
    fn call_back(&mut self, queue: &Fifo<OutputChunk>) -> Result<(), BoxError> {
        let process = fork::generation();
        while !queue.was_left()
            && let Some(line) = self.cutter.next()?
        {
            (self.callback)(line)?;
            not_forked_since(process)?;
        }
        Ok(())
    }

    /// The beginning of a line has not been delivered.
    fn note_held(&mut self, queue: &Fifo<OutputChunk>) {
        let (stream, before) = self.held;
        let now = self.cutter.held();
        if now != before {
            self.held.1 = now;
            queue.keep(stream, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::SystemTime;

    use super::*;
    use bytes::Bytes;
    use test_support::forked::panic_in_fork;

    #[test]
    fn a_panic_in_a_fork_of_a_callback_waits_for_no_lock() {
        let (give, given) = mpsc::channel::<Arc<Fifo<OutputChunk>>>();
        let (tell, told) = mpsc::channel();
        let kind = ConsumerKind::Lines(Box::new(move |_| {
            tell.send(panic_in_fork(given.recv()?.hold()))?;
            Ok(())
        }));
        let role = ConsumerRole::Required;
        let wake = Arc::new(Wake::new().unwrap());
        let streams = PerStream::new(true, false);
        let framing = Framing::default();
        let consumer =
            OutputConsumer::start(NewConsumer { kind, role }, streams, &wake, &framing).unwrap();
        consumer.fifo.offer(OutputChunk {
            stream: StdStream::Stdout,
            read_at: SystemTime::now(),
            bytes: Bytes::from_static(b"a line\n"),
        });
        give.send(Arc::clone(&consumer.fifo)).unwrap();
        assert_eq!(told.recv(), Ok(0));
    }
}
