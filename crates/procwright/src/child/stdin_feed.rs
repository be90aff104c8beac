//! Input that is written to a child in the background.

use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};

use bytes::{Buf, Bytes};

use super::shared_child::SharedChild;
use crate::error::{BoxError, SpawnError, Step};
use crate::stream::{Stalled, Writer};
use procwright_os::fork::ProcessOwned;
use procwright_os::thread;
use procwright_process::Process;

/// The next piece of stdin, none at its end.
pub(crate) type StdinProducer = Box<dyn FnMut() -> Option<Result<Bytes, BoxError>> + Send>;

/// The source of a child's input.
pub(super) enum StdinSource {
    Bytes(Bytes),
    Producer(StdinProducer),
}

const NAME: &str = "procwright-stdin";

/// The feed of a child that has not started yet: what fits the pipe is in it, and for more
/// there is a thread, which waits for the child.
///
/// The thread does not keep the child: one that is dropped is reaped like any other, and
/// gets the rest of its input all the same. If the program does not start, this is dropped,
/// and the thread ends without having asked for any input.
pub(super) struct PreparedFeed(Option<Sender<FeedTarget>>);

/// The child that is fed.
struct FeedTarget {
    stdin: Writer,
    child: Weak<SharedChild>,
    process: Process,
}

impl PreparedFeed {
    /// Prepares to feed `input` through the pipe `stdin`, whose other end is open and which
    /// does not block.
    ///
    /// # Errors
    /// When no thread can be had.
    pub(super) fn new(
        stdin: BorrowedFd<'_>,
        input: StdinSource,
    ) -> Result<PreparedFeed, SpawnError> {
        let (target, targets) = channel::<FeedTarget>();
        let thread =
            match input {
                StdinSource::Bytes(mut bytes) => {
                    // A write that is refused is made again by the thread, and told there.
                    let written = rustix::io::write(stdin, &bytes).unwrap_or(0);
                    bytes.advance(written);
                    if bytes.is_empty() {
                        return Ok(PreparedFeed(None));
                    }
                    thread::spawn_quiet(NAME, move || {
                        if let Ok(to) = targets.recv() {
                            write(&to.stdin, &bytes);
                        }
                    })
                }
                // A quiet thread blocks all signals, and this one runs code of the host.
                StdinSource::Producer(producer) => std::thread::Builder::new()
                    .name(NAME.into())
                    .spawn(move || {
                        if let Ok(to) = targets.recv() {
                            produce(producer, to);
                        }
                    }),
            };
        thread.map_err(|error| SpawnError::new(Step::Thread, "", error))?;
        Ok(PreparedFeed(Some(target)))
    }

    /// Feeds the child.
    pub(super) fn begin(self, stdin: Writer, child: &Arc<SharedChild>) {
        let target = FeedTarget {
            stdin,
            child: Arc::downgrade(child),
            process: child.process(),
        };
        if let Some(to) = self.0 {
            // The thread waits for it.
            let _ = to.send(target);
        }
    }
}

/// Writes all of it; false if the child reads no more.
fn write(stdin: &Writer, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match stdin.write_for(bytes, None) {
            Ok(n) => bytes = &bytes[n..],
            // A wait for the child tells of a stall; the feed may take its time.
            Err(error) if Stalled::of(&error).is_some() => {}
            Err(_) => return false,
        }
    }
    true
}

fn produce(mut producer: StdinProducer, to: FeedTarget) {
    let to = ProcessOwned::new(to);
    let error = loop {
        let next = catch_unwind(AssertUnwindSafe(&mut producer));
        if !to.is_ours() {
            // The producer has forked. The child is the parent's: it gets its input from
            // there, and no error of a fork stops it.
            return;
        }
        match next {
            Ok(Some(Ok(chunk))) => {
                if !write(&to.stdin, &chunk) {
                    return;
                }
            }
            Ok(None) => return,
            Ok(Some(Err(error))) => break error,
            Err(_) => break "the producer of stdin panicked".into(),
        }
    };
    // The child must not take half of its input for all of it. So its stdin is closed
    // only once it is stopped.
    match to.child.upgrade() {
        Some(child) => child.stop_for_input(error),
        // The child was dropped: no wait is left that could tell the error.
        None => drop(to.process.stop(procwright_process::Stop::default())),
    }
}
