//! Our own stdout and stderr, as the places where the program's output goes.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::colour;

/// What is known of the two before anything is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    terminals: [bool; 2],
    is_shared: bool,
    takes_colour: bool,
}

impl Own {
    pub(crate) fn look() -> Own {
        Own {
            terminals: [io::stdout().is_terminal(), io::stderr().is_terminal()],
            is_shared: same_place(),
            takes_colour: colour::is_wanted(),
        }
    }

    /// Whether stdout (0) or stderr (1) is a terminal.
    pub(crate) fn is_terminal(&self, index: usize) -> bool {
        self.terminals[index]
    }

    pub(crate) fn takes_colour(&self, index: usize) -> bool {
        self.terminals[index] && self.takes_colour
    }

    /// Whether what is written to one comes in between what is written to the
    /// other.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }
}

fn same_place() -> bool {
    let [Ok(out), Ok(err)] = [
        rustix::fs::fstat(io::stdout()),
        rustix::fs::fstat(io::stderr()),
    ] else {
        return false;
    };
    (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
}

/// Writes all of `bytes` to stdout (0) or stderr (1), past every buffer.
///
/// # Errors
/// Those of write(2).
pub(crate) fn write_all(index: usize, mut bytes: &[u8]) -> io::Result<()> {
    let (stdout, stderr) = (io::stdout(), io::stderr());
    let fd: BorrowedFd<'_> = match index {
        0 => stdout.as_fd(),
        _ => stderr.as_fd(),
    };
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            // Somebody who shares the terminal has made it non-blocking.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
