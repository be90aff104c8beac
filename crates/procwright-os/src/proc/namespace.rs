//! The check that `/proc` is that of the pid namespace that we are in.
#![allow(missing_docs, reason = "documented where it is exported")]

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// A process that was given a pid namespace of its own and no `/proc` to it (`unshare
/// --pid`) sees another's: what that tells of a number is about a namesake.
pub fn check() -> io::Result<()> {
    /// The process that was told so. A fork asks anew, since it can be in another
    /// namespace. Relaxed: the number stands for itself.
    static OURS: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    if OURS.load(Ordering::Relaxed) == process {
        return Ok(());
    }
    let status = match std::fs::read("/proc/self/status") {
        Ok(status) => status,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(no_proc()),
        Err(e) => return Err(e),
    };
    // Our numbers, from the namespace of this /proc down to our own.
    let numbers = status
        .split(|&b| b == b'\n')
        .find_map(|line| line.strip_prefix(b"NSpid:"));
    let words = |line: &[u8]| line.trim_ascii().split(|b| b.is_ascii_whitespace()).count();
    if numbers.is_some_and(|line| words(line) > 1) {
        return Err(no_proc());
    }
    OURS.store(process, Ordering::Relaxed);
    Ok(())
}

pub(super) fn no_proc() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "there is no /proc of this pid namespace (mount one, as `unshare --mount-proc` does)",
    )
}
