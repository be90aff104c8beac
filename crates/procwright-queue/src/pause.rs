//! A pause between two looks at the work of another process.

/// Sleeps for a millisecond. No event could be waited for in its place: the end of a lock
/// is told to a process that waits for nothing else, perhaps for ever, since a receiver can
/// live for long; and no call waits for a page to be written.
#[expect(clippy::disallowed_methods, reason = "as it says")]
pub(crate) fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(1));
}
