//! `PROCWRIGHT_TRACE`: a line for every start, event and end, whichever front end
//! it is.
//!
//! `1` means stderr, a path with a slash a file that is appended to, nothing or `0`
//! that nobody wants it. The variable is read once, when the first program is
//! started; from then on what is not traced costs one relaxed load.
//!
//! A trace must not change what it looks at. So a line is written in one call, and
//! only if it goes in at once: those that do not are counted, and the next one that
//! does says how many are missing. No error of a write goes anywhere.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use crate::quote::quote;
use procwright_os::fork::OnceBox;
use procwright_os::time::Seconds;
use procwright_os::write_nowait;
use procwright_process::Exit;

/// The longest line. Less than a pipe takes in one piece, so that lines of several
/// processes do not mix.
const LONGEST: usize = write_nowait::LONGEST - 12;

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

/// Wish for a trace: `UNKNOWN` until the variable was read.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// The runs and children so far.
static SERIAL: AtomicU32 = AtomicU32::new(0);
/// Lines that could not be written since the last one that was.
static LOST: AtomicU64 = AtomicU64::new(0);

/// The trace of one run or child; empty if nobody wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace(Option<Wanted>);

#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Number of the run or child in this process.
    serial: u32,
    started: Instant,
}

impl Trace {
    /// Begins the trace of a run or child that is started now.
    pub(crate) fn begin() -> Trace {
        Trace(is_on().then(|| Wanted {
            serial: SERIAL.fetch_add(1, Ordering::Relaxed) + 1,
            started: Instant::now(),
        }))
    }

    pub(crate) fn is_on(self) -> bool {
        self.0.is_some()
    }

    /// Writes what `text` says, which is called only if somebody wants it.
    pub(crate) fn say<T: fmt::Display>(self, text: impl FnOnce() -> T) {
        let Some(Wanted { serial, started }) = self.0 else {
            return;
        };
        let after = started.elapsed().as_secs_f64();
        let pid = std::process::id();
        let mut line = format!("procwright[{pid}.{serial}] +{after:.3} ");
        push_in_one_line(&mut line, &text().to_string());
        emit(line);
    }

    /// Writes that the program of `argv` could not be started, and the first line of
    /// `error`: behind it stands what to do about that.
    pub(crate) fn not_started(self, argv: &[OsString], error: &impl fmt::Display) {
        self.say(|| {
            let error = error.to_string();
            let fact = error.lines().next().unwrap_or_default();
            format!("not started, {}: {fact}", quote(argv))
        });
    }

    /// Writes the end of a run, or of a child that is handed out. `reason` is why it was
    /// stopped, empty if it was not.
    pub(crate) fn end(self, reason: &str, exit: Exit) {
        let Some(Wanted { started, .. }) = self.0 else {
            return;
        };
        self.say(|| {
            let after = Seconds(started.elapsed());
            match reason {
                "" => format!("end: {exit} after {after}"),
                reason => format!("end, {reason}: {exit} after {after}"),
            }
        });
    }
}

fn is_on() -> bool {
    match STATE.load(Ordering::Relaxed) {
        OFF => false,
        ON => true,
        _ => {
            let on = sink().is_some();
            STATE.store(if on { ON } else { OFF }, Ordering::Relaxed);
            on
        }
    }
}

/// The target of the lines.
#[derive(Debug)]
enum TraceSink {
    Stderr,
    /// A pipe or a terminal, which may be full for a while.
    Pipe(File),
    /// A plain file, which is never full. Some file systems refuse to grow one without
    /// a wait, though, and each line would be missing.
    File(File),
}

fn sink() -> Option<&'static TraceSink> {
    static SINK: OnceBox<Option<TraceSink>> = OnceBox::new();
    let place = SINK.get_or_init(|| {
        let wish = std::env::var_os("PROCWRIGHT_TRACE")?;
        match wish.as_bytes() {
            b"" | b"0" => None,
            path if path.contains(&b'/') => {
                open(&wish).map(
                    |file| match file.metadata().is_ok_and(|meta| meta.is_file()) {
                        true => TraceSink::File(file),
                        false => TraceSink::Pipe(file),
                    },
                )
            }
            _ => Some(TraceSink::Stderr),
        }
    });
    place.as_ref()
}

/// A file that cannot be written is told of once, and nothing else fails.
fn open(path: &OsStr) -> Option<File> {
    let opened = OpenOptions::new()
        .append(true)
        .create(true)
        // A named pipe that nobody reads is refused, and not waited for.
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    opened
        .inspect_err(|error| {
            let path = path.to_string_lossy();
            let text = format!("procwright: cannot write PROCWRIGHT_TRACE to {path:?}: {error}\n");
            let _ = write_nowait::try_write(io::stderr().as_fd(), text.as_bytes());
        })
        .ok()
}

fn emit(mut line: String) {
    let Some(place) = sink() else { return };
    let lost = LOST.swap(0, Ordering::Relaxed);
    if lost > 0 {
        line.push_str(&format!(" (lines missing before this: {lost})"));
    }
    line.push('\n');
    let written = match place {
        // Rust's lock is left out: a thread that waits in a write may hold it.
        TraceSink::Stderr => write_nowait::try_write(io::stderr().as_fd(), line.as_bytes()),
        TraceSink::Pipe(file) => write_nowait::try_write(file.as_fd(), line.as_bytes()),
        TraceSink::File(file) => {
            let mut file = file;
            io::Write::write_all(&mut file, line.as_bytes()).map(|()| true)
        }
    };
    if !written.is_ok_and(|written| written) {
        LOST.fetch_add(lost + 1, Ordering::Relaxed);
    }
}

/// Appends `text`, and escapes what is not printable: a line stays one, and a terminal
/// unharmed.
fn push_in_one_line(line: &mut String, text: &str) {
    for c in text.chars() {
        // Room for the longest escape, and what is said of missing lines.
        if line.len() > LONGEST - 80 {
            line.push_str(" …");
            return;
        }
        match c.is_control() {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_and_not_too_long() {
        let mut line = String::new();
        push_in_one_line(&mut line, "a\nb\x1b[31mé");
        assert_eq!(line, "a\\nb\\u{1b}[31mé");
        let mut line = String::new();
        push_in_one_line(&mut line, &"é\n".repeat(LONGEST));
        assert!(line.len() < LONGEST && line.ends_with('…'));
    }

    #[test]
    fn a_full_pipe_is_not_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        let line = [b'x'; 4096];
        let mut taken = 0;
        while write_nowait::try_write(writer.as_fd(), &line).unwrap() {
            taken += 1;
        }
        assert!(taken > 0);
        let mut reader = reader;
        io::Read::read_exact(&mut reader, &mut vec![0; 4096 * taken]).unwrap();
        assert!(write_nowait::try_write(writer.as_fd(), &line).unwrap());
    }
}
