//! Waiting for a line that says what one waits for.

use std::io;
use std::time::Instant;

use super::lines::{LineReader, Seen};
use super::{Patience, Readiness};
use crate::sys::poll::{self, Fd, Flags};
use crate::time::Deadline;

/// How [`wait_for`] came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// A line matched.
    Line {
        /// In which of the streams: their place in what was passed.
        stream: usize,
        /// The line without its separator, or what of it has come. Of its stream
        /// everything up to here is consumed, and nothing behind it.
        line: Vec<u8>,
    },
    /// All streams have ended, and no line matched.
    Ended,
    /// The time was over.
    TimedOut,
    /// The interrupt was readable. The call may be taken up again: what did not
    /// match is gone, and a line that is not complete is looked at once more.
    Interrupted,
}

/// Reads lines until one `matches`, of any of these streams: usually stdout, or
/// stdout and stderr. What does not match is consumed.
///
/// A line that is not complete is looked at as well, when nothing more comes for
/// the moment, as often as it grows: a prompt has no newline. If it matches it is
/// consumed as far as it has come. Gaps are passed over.
///
/// ```
/// use procwright::Command;
/// use procwright::stream::{Found, Framing, LineReader, Patience, wait_for};
/// use std::time::Duration;
///
/// let mut server = Command::new("sh")
///     .args(["-c", "echo starting; echo listening on 8080 >&2; sleep 1000"])
///     .spawn()?;
/// let stdout = LineReader::new(server.stdout.take().unwrap(), Framing::default())?;
/// let stderr = LineReader::new(server.stderr.take().unwrap(), Framing::default())?;
/// let patience = Patience::from(Duration::from_secs(60));
/// let found = wait_for(&[&stdout, &stderr], patience, |line| line.starts_with(b"listening"))?;
/// assert_eq!(found, Found::Line { stream: 1, line: b"listening on 8080".to_vec() });
/// server.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Of the streams: [`Closed`](super::Closed), also by another thread while this
/// waits; [`LineTooLong`](super::LineTooLong); why one failed. When no descriptor
/// is left; `Unsupported` in a fork.
///
/// # Blocking
/// Until then, asleep. It waits for all streams at once.
pub fn wait_for(
    streams: &[&LineReader],
    patience: Patience<'_>,
    mut matches: impl FnMut(&[u8]) -> bool,
) -> io::Result<Found> {
    let mut readiness = Vec::with_capacity(streams.len());
    for stream in streams {
        readiness.push(Some(stream.reader().readiness()?));
    }
    let mut looked_at = vec![0; streams.len()];
    loop {
        let mut busy = false;
        for (place, stream) in streams.iter().enumerate() {
            if readiness[place].is_none() {
                continue;
            }
            match stream.look_for(patience, &mut looked_at[place], &mut matches) {
                Ok(Seen::Line(line)) => {
                    return Ok(Found::Line {
                        stream: place,
                        line,
                    });
                }
                Ok(Seen::End) => readiness[place] = None,
                Ok(Seen::Nothing) => {}
                Ok(Seen::Busy) => busy = true,
                // Another thread is at this stream.
                Err(error) => return told(error),
            }
        }
        if readiness.iter().all(Option::is_none) {
            return Ok(Found::Ended);
        }
        if let Some(over) = sleep(&readiness, patience, busy)? {
            return Ok(over);
        }
    }
}

/// What the patience says is no error here.
fn told(error: io::Error) -> io::Result<Found> {
    match error.kind() {
        io::ErrorKind::TimedOut => Ok(Found::TimedOut),
        io::ErrorKind::Interrupted => Ok(Found::Interrupted),
        _ => Err(error),
    }
}

/// Until one of them is ready, not at all if one of them is `busy`; what it was if
/// it was something else.
fn sleep(
    readiness: &[Option<Readiness>],
    patience: Patience<'_>,
    busy: bool,
) -> io::Result<Option<Found>> {
    let interrupt = patience.interrupt();
    let open = readiness.iter().flatten();
    let mut fds: Vec<_> = open.map(|one| Fd::new(one, Flags::IN)).collect();
    let streams = fds.len();
    fds.extend(interrupt.map(|fd| Fd::from_borrowed_fd(fd, Flags::IN)));
    let until = match busy {
        true => Deadline::at(Instant::now()),
        false => patience.deadline(),
    };
    match poll::poll(&mut fds, until) {
        Ok(0) if !busy => Ok(Some(Found::TimedOut)),
        // Before all else, or streams that never run dry would hide it. The same
        // with the time: they have been looked at once at least.
        Ok(_) if fds[streams..].iter().any(|fd| !fd.revents().is_empty()) => {
            Ok(Some(Found::Interrupted))
        }
        Ok(_) if patience.deadline().reached(Instant::now()) => Ok(Some(Found::TimedOut)),
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        Ok(_) | Err(_) => Ok(None),
    }
}

#[cfg(test)]
#[path = "wait_for_tests.rs"]
mod tests;
