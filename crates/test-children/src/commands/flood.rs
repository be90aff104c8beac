//! `flood [--out BYTES] [--err BYTES] [--chunk N] [--alternate] [--rounds N --pause MS]
//! [--ignore-term]`:
//! the pattern of [`test_children::Pattern`] on stdout and stderr.
//!
//! Each stream has a thread of its own; with `--alternate` one thread writes a
//! chunk to stdout, one to stderr, and so on. A chunk (64K) is one `write`. With
//! `--rounds` it does so N times, with silence between, and the pattern goes on.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use test_children::{Pattern, Stream};

use crate::process::{STDERR, STDOUT, ignore, sleep, write_all};
use crate::{Args, Command, Outcome};

pub(crate) const COMMAND: Command = Command {
    name: "flood",
    usage: "[--out BYTES] [--err BYTES] [--chunk N] [--alternate] [--rounds N --pause MS] [--ignore-term]",
    about: "writes a known pattern to stdout and stderr, by two threads or in turn",
    run,
};

fn run(mut args: Args) -> Outcome {
    let out = args.size("--out")?.unwrap_or(0);
    let err = args.size("--err")?.unwrap_or(0);
    let chunk = args.chunk()?;
    let alternate = args.flag("--alternate");
    let rounds = args.number("--rounds")?.unwrap_or(1);
    let pause = Duration::from_millis(args.number("--pause")?.unwrap_or(0));
    if args.flag("--ignore-term") {
        ignore(libc::SIGTERM)?;
    }
    args.finish()?;
    let (out_bytes, err_bytes) = (out, err);
    let mut out = Flow::new(STDOUT, Stream::Stdout, out, chunk);
    let mut err = Flow::new(STDERR, Stream::Stderr, err, chunk);
    for round in 0..rounds {
        if round > 0 {
            sleep(pause);
            out.end += out_bytes;
            err.end += err_bytes;
        }
        write_round(&mut out, &mut err, alternate)?;
    }
    Ok(0)
}

fn write_round(out: &mut Flow, err: &mut Flow, alternate: bool) -> io::Result<()> {
    if alternate {
        while out.step()? | err.step()? {}
    } else if err.is_done() {
        out.finish()?;
    } else if out.is_done() {
        err.finish()?;
    } else {
        std::thread::scope(|scope| {
            let other = scope.spawn(move || err.finish());
            out.finish()?;
            other
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
        })?;
    }
    Ok(())
}

struct Flow {
    fd: BorrowedFd<'static>,
    pattern: Pattern,
    offset: u64,
    end: u64,
    chunk: usize,
}

impl Flow {
    fn new(fd: BorrowedFd<'static>, stream: Stream, end: u64, chunk: usize) -> Self {
        let longest = usize::try_from(end).map_or(chunk, |end| end.min(chunk));
        Self {
            fd,
            pattern: Pattern::new(stream, longest),
            offset: 0,
            end,
            chunk,
        }
    }

    fn is_done(&self) -> bool {
        self.offset == self.end
    }

    /// Writes one chunk; false if there was none left.
    fn step(&mut self) -> io::Result<bool> {
        if self.is_done() {
            return Ok(false);
        }
        let length = (self.end - self.offset).min(self.chunk as u64);
        write_all(self.fd, self.pattern.slice(self.offset, length as usize))?;
        self.offset += length;
        Ok(true)
    }

    fn finish(&mut self) -> io::Result<()> {
        while self.step()? {}
        Ok(())
    }
}
