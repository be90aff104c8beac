//! Input that is written to a child in the background.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::shared_child::SharedChild;
use crate::error::BoxError;
use crate::stream::{Stalled, Writer};
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

/// Feeds `input` to the child through `stdin`, and closes that. Input that fits the
/// pipe is there when this returns; for more there is a thread, until all is written
/// or read no more. The thread does not keep the child: one that is dropped is reaped
/// like any other, and gets the rest of its input all the same.
///
/// # Errors
/// When no thread can be had.
pub(super) fn start(stdin: Writer, input: StdinSource, child: &Arc<SharedChild>) -> io::Result<()> {
    match input {
        StdinSource::Bytes(mut bytes) => {
            if !bytes.is_empty() {
                // One write only: a child that reads as fast as this writes would keep the
                // caller for all of it.
                match stdin.write_for(&bytes, Duration::ZERO) {
                    Ok(n) => bytes.advance(n),
                    Err(e) if e.kind() == io::ErrorKind::TimedOut => {}
                    // The child reads no more, and may well have all that it needs.
                    Err(_) => return Ok(()),
                }
            }
            if !bytes.is_empty() {
                thread::spawn_quiet(NAME, move || write(&stdin, &bytes))?;
            }
        }
        StdinSource::Producer(producer) => {
            let (child, process) = (Arc::downgrade(child), child.process.clone());
            // A quiet thread blocks all signals, and this one runs code of the host.
            std::thread::Builder::new()
                .name(NAME.into())
                .spawn(move || produce(producer, stdin, &child, &process))?;
        }
    }
    Ok(())
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

fn produce(
    mut producer: StdinProducer,
    stdin: Writer,
    child: &Weak<SharedChild>,
    process: &Process,
) {
    let error = loop {
        match catch_unwind(AssertUnwindSafe(&mut producer)) {
            Ok(Some(Ok(chunk))) => {
                if !write(&stdin, &chunk) {
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
    match child.upgrade() {
        Some(child) => child.stop_for_input(error),
        // The child was dropped: no wait is left that could tell the error.
        None => drop(process.stop(procwright_process::Stop::default())),
    }
    drop(stdin);
}
