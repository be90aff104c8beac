//! Waiting for a line.

use std::io;
use std::time::Instant;

use super::lines::{LineReader, LineSearch};
use super::readiness::Readiness;
use procwright_os::handle::Patience;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;

/// The outcome of [`wait_for`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// A line that matched.
    Line {
        /// The stream, as its place in the slice that was passed.
        stream: usize,
        /// The line without its separator, or what of it has come. Its stream is consumed
        /// up to here, and no further.
        line: Vec<u8>,
    },
    /// The end of all streams, without a line that matched.
    Ended,
    /// The end of the time.
    TimedOut,
    /// The interrupt, which was readable. The call may be taken up again: what did not
    /// match is gone, and a line that is not complete is looked at once more.
    Interrupted,
}

/// Reads lines until one `matches`, of any of these streams: usually stdout, or
/// stdout and stderr. What does not match is consumed.
///
/// A line that is not complete is looked at as well, when nothing more comes for
/// the moment, as often as it grows: a prompt has no newline. If it matches it is
/// consumed as far as it has come; where the end of the line is what comes next, it is passed
/// over, as a program may write it by itself. Gaps are passed over.
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
            match stream.find_line(patience, &mut looked_at[place], &mut matches) {
                Ok(LineSearch::Line(line)) => {
                    return Ok(Found::Line {
                        stream: place,
                        line,
                    });
                }
                Ok(LineSearch::End) => readiness[place] = None,
                Ok(LineSearch::Nothing) => {}
                Ok(LineSearch::Busy) => busy = true,
                // The wait for another thread that reads this stream has ended.
                Err(error) => return ended_by(error),
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

/// The outcome of a patience that has ended, which is no error here.
fn ended_by(error: io::Error) -> io::Result<Found> {
    match error.kind() {
        io::ErrorKind::TimedOut => Ok(Found::TimedOut),
        io::ErrorKind::Interrupted => Ok(Found::Interrupted),
        _ => Err(error),
    }
}

/// Sleeps until one of them is ready, and not at all if one is `busy`. None if one may
/// be ready, else the outcome that ends the wait.
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
        // The interrupt comes before the streams, and so does the time below: streams
        // that never run dry would hide both. They have been looked at once at least.
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
