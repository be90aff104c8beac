//! Results on stdout.

use std::io::{self, Write as _};

use crate::exit::Termination;

/// Writes all of `bytes` to stdout and flushes it, so that a reader has them at
/// once.
///
/// # Errors
/// Death by SIGPIPE if the reader is gone: Rust's runtime ignores the signal that
/// ends other programs in a pipeline. Trouble, with a message, for all else.
pub(crate) fn print(bytes: &[u8]) -> Result<(), Termination> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Termination::BROKEN_PIPE,
        _ => Termination::trouble(format_args!("cannot write to stdout: {error}")),
    })
}
