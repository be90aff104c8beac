//! An elastic pipe stage: what `procwright buffer` is.
//!
//! Between a program that writes in bursts and one that reads slowly a pipe has
//! 64 KiB; when they are full the writer waits. A [`Buffer`] takes what comes as
//! fast as it comes and gives it on as fast as it is taken, in bounded memory.
//!
//! ```
//! use std::io::{Read, Write, pipe};
//! use procwright::Overflow;
//! use procwright::buffer::Buffer;
//!
//! let (from_stage, mut to_stage) = pipe()?;
//! let (mut out, into) = pipe()?;
//! let buffer = Buffer::new(Overflow::default())?;
//! let monitor = buffer.monitor();
//! let stage = std::thread::spawn(|| buffer.run(from_stage.into(), into.into()));
//!
//! // There is no reader yet, and a pipe would have been full long ago.
//! to_stage.write_all(&[7; 1 << 20])?;
//! drop(to_stage);
//! let mut copy = Vec::new();
//! out.read_to_end(&mut copy)?;
//! assert_eq!(copy.len(), 1 << 20);
//! let outcome = stage.join().expect("no panic")?;
//! assert_eq!(outcome.figures.bytes_out, 1 << 20);
//! assert_eq!(monitor.figures().lag_bytes, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod fan;
mod merge;
mod pipe_growth;
mod read_input;
mod write_output;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::spool::Overflow;
use crate::spool::elastic::{self, ElasticConsumer, ElasticProducer};
use procwright_os::fork::{CloseOnFork, OnceBox};
use procwright_os::thread;
use procwright_os::wake::Wake;
use procwright_os::{fd, file};

pub use crate::spool::elastic::{Event, Figures, Monitor};
pub use error::Error;
pub(crate) use fan::{Fan, FanFailure, WayView};
pub(crate) use merge::{LongLine, Merge};

use read_input::{Stopped, read_input};
use write_output::{OutputFailure, write_output};

type EventListener = Box<dyn Fn(&Event) + Send + Sync>;

/// A stage that takes from one descriptor and gives to another.
pub struct Buffer {
    producer: ElasticProducer,
    consumer: ElasticConsumer,
    monitor: Monitor,
    room: Arc<Wake>,
    listener: Arc<OnceBox<EventListener>>,
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("monitor", &self.monitor)
            .finish_non_exhaustive()
    }
}

/// The outcome of a stage that has ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The final figures.
    pub figures: Figures,
    /// The reader of the output went away before its end; what `figures.lag_bytes`
    /// counts was not delivered then.
    pub reader_gone: bool,
}

impl Buffer {
    /// A stage under this policy. Takes one descriptor.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `PROCWRIGHT_SPOOL_DIR` names what cannot be used,
    /// [`Error::Setup`] if no descriptor is left.
    pub fn new(overflow: Overflow) -> Result<Buffer, Error> {
        let room = Arc::new(Wake::new().map_err(Error::Setup)?);
        let listener: Arc<OnceBox<EventListener>> = Arc::default();
        let listening = Arc::clone(&listener);
        let hook = Box::new(move |event: &Event| {
            if let Some(listener) = listening.get() {
                listener(event);
            }
        });
        let (producer, consumer, monitor) = elastic::elastic(overflow, Arc::clone(&room), hook)?;
        Ok(Buffer {
            producer,
            consumer,
            monitor,
            room,
            listener,
        })
    }

    /// Calls `listener` for what is worth knowing, on the thread on which it
    /// happens, which waits meanwhile.
    #[must_use]
    pub fn on_event(self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Buffer {
        self.listener.get_or_insert(Box::new(listener));
        self
    }

    /// A view of its figures for other threads.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Passes on what comes until the end of the input, or until the output has no
    /// reader. Neither descriptor is switched to non-blocking: they may be shared with
    /// others. No other thread or process may read the input meanwhile.
    ///
    /// `input` is closed as soon as no more is wanted of it, so that its writer learns
    /// of it.
    ///
    /// # Blocking
    /// Until then. Starts a thread for the output.
    ///
    /// # Errors
    /// Whatever kept a byte from being passed on.
    pub fn run(self, input: OwnedFd, output: OwnedFd) -> Result<Outcome, Error> {
        self.begin(output, None)?.read(input)
    }

    /// Starts the thread for the output. It gives up when `cut` rings, but for a write that
    /// waits: `output` does not block then.
    ///
    /// # Errors
    /// No thread is left.
    pub(crate) fn begin(
        self,
        output: OwnedFd,
        cut: Option<Arc<Wake>>,
    ) -> Result<BegunBuffer, Error> {
        let Buffer {
            producer,
            consumer,
            monitor,
            room,
            ..
        } = self;
        let output = Arc::new(CloseOnFork::new(output));
        let theirs = Arc::clone(&output);
        let write = move || {
            let output = theirs.get().map_err(OutputFailure::Write)?;
            write_output(consumer, output, cut.as_deref())
        };
        let writer = thread::spawn_quiet("procwright-out", write).map_err(Error::Setup)?;
        Ok(BegunBuffer {
            producer,
            monitor,
            room,
            output,
            writer,
        })
    }

    /// Passes on, as [`Buffer::run`] does, from the standard input of this process to its
    /// standard output. Both are `/dev/null` for all other code from now on.
    ///
    /// # Blocking
    /// As `run`.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_stdio(self) -> Result<Outcome, Error> {
        let (input, output) = fd::take_standard().map_err(Error::Setup)?;
        self.run(input, output)
    }
}

/// A stage that has the thread for its output, and reads nothing yet.
#[derive(Debug)]
pub(crate) struct BegunBuffer {
    producer: ElasticProducer,
    monitor: Monitor,
    room: Arc<Wake>,
    output: Arc<CloseOnFork>,
    writer: JoinHandle<Result<(), OutputFailure>>,
}

impl BegunBuffer {
    /// The output, which whoever keeps this keeps open.
    pub(crate) fn output(&self) -> Arc<CloseOnFork> {
        Arc::clone(&self.output)
    }

    /// Passes on what comes, as [`Buffer::run`] says.
    ///
    /// # Errors
    /// Whatever kept a byte from being passed on.
    pub(crate) fn read(self, input: OwnedFd) -> Result<Outcome, Error> {
        let BegunBuffer {
            mut producer,
            monitor,
            room,
            output,
            writer,
        } = self;
        let input = CloseOnFork::new(input);
        let stopped = input.get().and_then(|input| {
            let output = output.get()?;
            let reader = file::is_anonymous_pipe(output).then_some(output);
            read_input(&mut producer, input, reader, &room)
        });
        drop(input);
        let came = monitor.figures().bytes_in;
        match stopped {
            Ok(Stopped::ReaderGone) => producer.leave(),
            Ok(Stopped::End | Stopped::Closed | Stopped::Overflowed(_)) | Err(_) => producer.end(),
        }
        let written = match writer.join() {
            Ok(written) => written,
            Err(_) => Err(OutputFailure::Write(io::Error::other(
                "the thread panicked",
            ))),
        };
        let figures = monitor.figures();
        match written {
            Ok(()) | Err(OutputFailure::ReaderGone) => {}
            Err(OutputFailure::Write(source)) => {
                let offset = figures.bytes_out;
                return Err(Error::Write { offset, source });
            }
            Err(OutputFailure::Lost(error)) => return Err(error),
        }
        match stopped {
            Ok(Stopped::Overflowed(offset)) => Err(Error::Overflowed { offset }),
            Err(source) => Err(Error::Read {
                offset: came,
                source,
            }),
            Ok(stopped) => Ok(Outcome {
                figures,
                reader_gone: written.is_err() || matches!(stopped, Stopped::ReaderGone),
            }),
        }
    }
}
