//! Input that a child gets in the background.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{Buf, Bytes};

use super::core::Core;
use crate::process::Process;
use crate::spool::fifo::BoxError;
use crate::stream::{Stalled, Writer};
use crate::sys::thread;

/// The next piece of stdin, none at its end.
pub(crate) type Producer = Box<dyn FnMut() -> Option<Result<Bytes, BoxError>> + Send>;

/// Where it comes from.
pub(super) enum Input {
    Bytes(Bytes),
    Producer(Producer),
}

const NAME: &str = "procwright-stdin";

/// Feeds `input` to the child through `stdin`, and closes that. What fits the
/// pipe is there when this returns; for more there is a thread until all is
/// written or nobody reads it. It does not keep the child: dropped, that is reaped
/// like any other, and gets the rest of its input all the same.
///
/// # Errors
/// When no thread can be had.
pub(super) fn start(stdin: Writer, input: Input, core: &Arc<Core>) -> io::Result<()> {
    match input {
        Input::Bytes(mut bytes) => {
            if !bytes.is_empty() {
                // Once: a child that reads as fast as this writes would keep its
                // caller for all of it.
                match stdin.write_for(&bytes, Duration::ZERO) {
                    Ok(n) => bytes.advance(n),
                    Err(e) if e.kind() == io::ErrorKind::TimedOut => {}
                    // It reads no more, and may well have all that it needs.
                    Err(_) => return Ok(()),
                }
            }
            if !bytes.is_empty() {
                thread::spawn_quiet(NAME, move || write(&stdin, &bytes))?;
            }
        }
        Input::Producer(producer) => {
            let (child, process) = (Arc::downgrade(core), core.process.clone());
            // Not a quiet one: it runs code of the host.
            std::thread::Builder::new()
                .name(NAME.into())
                .spawn(move || produce(producer, stdin, &child, &process))?;
        }
    }
    Ok(())
}

/// Writes all of it; false if nobody reads any more.
fn write(stdin: &Writer, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match stdin.write_for(bytes, None) {
            Ok(n) => bytes = &bytes[n..],
            // Whoever waits for the child is told; here it may take its time.
            Err(error) if Stalled::of(&error).is_some() => {}
            Err(_) => return false,
        }
    }
    true
}

fn produce(mut producer: Producer, stdin: Writer, child: &Weak<Core>, process: &Process) {
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
    // The child must not take half of its input for all of it: it sees no end
    // before it is stopped.
    match child.upgrade() {
        Some(child) => child.fail(error),
        // Nobody is left to be told.
        None => drop(process.stop(crate::process::Stop::default())),
    }
    drop(stdin);
}
