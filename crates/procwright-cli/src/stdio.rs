//! Stdout and stderr of this command, as the places where a program's output goes.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};

use procwright::StdStream;

use crate::{colour, poll};

/// `out` or `err`.
pub(crate) fn short_name(stream: StdStream) -> &'static str {
    match stream {
        StdStream::Stdout => "out",
        StdStream::Stderr => "err",
    }
}

/// Place in an array of two.
pub(crate) fn index(stream: StdStream) -> usize {
    match stream {
        StdStream::Stdout => 0,
        StdStream::Stderr => 1,
    }
}

/// Properties of this command's stdout and stderr, found out before anything runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StandardStreams {
    are_terminals: [bool; 2],
    is_shared: bool,
    takes_colour: bool,
}

impl StandardStreams {
    pub(crate) fn inspect() -> StandardStreams {
        StandardStreams {
            are_terminals: [io::stdout().is_terminal(), io::stderr().is_terminal()],
            is_shared: are_one_file(),
            takes_colour: colour::is_wanted(),
        }
    }

    #[doc(alias = "isatty")]
    pub(crate) fn is_terminal(&self, stream: StdStream) -> bool {
        self.are_terminals[index(stream)]
    }

    pub(crate) fn takes_colour(&self, stream: StdStream) -> bool {
        self.is_terminal(stream) && self.takes_colour
    }

    /// Returns whether both go to one terminal, file or pipe, where their bytes mix.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }
}

#[doc(alias = "fstat")]
fn are_one_file() -> bool {
    let [Ok(out), Ok(err)] = [
        rustix::fs::fstat(io::stdout()),
        rustix::fs::fstat(io::stderr()),
    ] else {
        return false;
    };
    (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
}

/// Writes all of `bytes` to a stream of this command, past every buffer.
///
/// # Errors
/// Those of write(2).
pub(crate) fn write_all(stream: StdStream, bytes: &[u8]) -> io::Result<()> {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let fd: BorrowedFd<'_> = match stream {
        StdStream::Stdout => stdout.as_fd(),
        StdStream::Stderr => stderr.as_fd(),
    };
    poll::write_all(fd, bytes).1
}
