//! The error of a child that cannot go on because its output is not read.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::spool::Overflow;
use procwright_os::time::Seconds;

/// A child cannot go on: its output is full, to the brim of what may be kept
/// and of the pipe, and no read of it has begun for a while.
///
/// A wait for such a child might never end. Nothing is lost or ended: the call may be
/// made again. A write to its stdin has this error wrapped in an [`io::Error`] of kind
/// `Other`; [`Stalled::of`] takes it out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stalled {
    /// The command as a shell takes it.
    pub command: String,
    /// The outputs that are full.
    pub streams: Vec<StalledStream>,
    /// The time for which no read of them has begun while the call waited.
    pub after: Duration,
    /// Whether it was a write to stdin that waited, and not for the end.
    pub writing: bool,
}

/// An output that is full.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StalledStream {
    /// `stdout` or `stderr`.
    pub name: &'static str,
    /// The bytes that are kept in memory for a reader.
    pub memory_bytes: u64,
    /// The bytes that are kept on disk for a reader.
    pub disk_bytes: u64,
    /// The rule of what may be kept; none for the bare pipe.
    pub overflow: Option<Overflow>,
}

impl Stalled {
    /// The stall that this error wraps, if it does.
    pub fn of(error: &io::Error) -> Option<&Stalled> {
        error.get_ref()?.downcast_ref()
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.streams.iter().map(|stream| stream.name).collect();
        names.join(" and ")
    }
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names();
        let (be, it) = match self.streams.len() {
            1 => ("is", "it"),
            _ => ("are", "them"),
        };
        let why = match self.writing {
            true => "reads no input and ",
            false => "",
        };
        write!(
            f,
            "{} {why}cannot go on: its {names} {be} full, and nobody has read {it} for {}",
            self.command,
            Seconds(self.after)
        )?;
        for stream in &self.streams {
            write!(f, "\n  {stream}")?;
        }
        write!(
            f,
            "\n  hint: read {names}, in another thread if this one waits; or give the spawn a \
             larger budget or an overflow that drops; or send {it} to /dev/null. \
             The call may be made again"
        )
    }
}

impl fmt::Display for StalledStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, memory) = (self.name, self.memory_bytes);
        match self.overflow {
            None => write!(f, "{name}: only the pipe, which is full"),
            Some(overflow) => write!(
                f,
                "{name}: the pipe is full, and {memory} bytes are kept in memory and {} on disk, \
                 which is all that {overflow:?} gives room for now",
                self.disk_bytes
            ),
        }
    }
}

impl std::error::Error for Stalled {}
