//! From several inputs to one output, by whole lines.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use memchr::memrchr;
use rustix::io::Errno;

use super::error::Error;
use super::pipe_growth::PipeGrowth;
use super::write_output::wait_for_room;
use procwright_os::fork::CloseOnFork;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::Deadline;
use procwright_os::wake::Wake;

/// The most that is read at once, and of a line that is kept until its end has come where a longer
/// one passes.
const CHUNK: usize = 64 << 10;
/// The most that is kept of a line where a longer one fails.
const MOST: usize = 16 << 20;

/// What becomes of a long line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongLine {
    /// From 64 KiB on it is passed on as it comes, and the other inputs wait until it is over: so no
    /// more than that is kept for each.
    Passes,
    /// It is kept, and one of more than 16 MiB is an error: no input ever waits for another.
    Fails,
}

/// Several inputs whose lines go to one output, each whole, in the order in which their ends come.
/// Nothing is lost or torn. A last line without an end gets one if something comes behind it.
///
/// *Rejected: one pipe that all write to,* whose bytes pass through nobody: a program that writes
/// its lines in blocks, as most do to a pipe, has them torn at the ends of these. *A queue for each
/// input,* by which each would end at its own speed: that is asked for by `elastic` where there is
/// one writer, and of several that write to one reader none is the fast one for long.
pub(crate) struct Merge {
    inputs: Vec<Input>,
    long: LongLine,
    output: Arc<CloseOnFork>,
    cut: Arc<Wake>,
    growth: PipeGrowth,
    /// The input whose line has been begun and goes on.
    holder: Option<usize>,
    /// True if the output ends in a line without an end, of an input that is over.
    is_torn: bool,
    /// How many bytes were written.
    written: u64,
}

struct Input {
    /// None once it is at its end.
    fd: Option<CloseOnFork>,
    growth: PipeGrowth,
    /// The line that has no end yet.
    line: Vec<u8>,
    /// How many bytes were taken from it.
    taken: u64,
}

/// Why nothing more is passed on.
enum Over {
    /// Nobody reads, or it was cut.
    Unwanted,
    Failed(Error),
}

impl Merge {
    /// What passes on from `inputs` to `output`, which does not block, until `cut` rings.
    pub(crate) fn new(
        inputs: Vec<OwnedFd>,
        long: LongLine,
        output: Arc<CloseOnFork>,
        cut: Arc<Wake>,
    ) -> Merge {
        let input = |fd| Input {
            fd: Some(CloseOnFork::new(fd)),
            growth: PipeGrowth::default(),
            line: Vec::new(),
            taken: 0,
        };
        Merge {
            inputs: inputs.into_iter().map(input).collect(),
            long,
            output,
            cut,
            growth: PipeGrowth::default(),
            holder: None,
            is_torn: false,
            written: 0,
        }
    }

    /// Passes on until all inputs are at their ends, or nobody reads, or it is cut. Then all are
    /// closed, so that their writers learn of it.
    ///
    /// # Blocking
    /// Until then.
    ///
    /// # Errors
    /// What kept a byte from being passed on.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        loop {
            let ready = match self.wait() {
                Ok(ready) if ready.is_empty() => return Ok(()),
                Ok(ready) => ready,
                Err(Over::Unwanted) => return Ok(()),
                Err(Over::Failed(error)) => return Err(error),
            };
            // Each that has something has a turn, which takes what one pipe holds at most.
            match ready.into_iter().try_for_each(|at| self.pass_on(at)) {
                Ok(()) => {}
                Err(Over::Unwanted) => return Ok(()),
                Err(Over::Failed(error)) => return Err(error),
            }
        }
    }

    /// Waits for inputs that have something, and says which; none if all are at their ends.
    fn wait(&self) -> Result<Vec<usize>, Over> {
        let offset: u64 = self.inputs.iter().map(|input| input.taken).sum();
        let failed = |source| Over::Failed(Error::Read { offset, source });
        loop {
            let output = self.output.get().map_err(failed)?;
            // That nobody reads is told without being asked for.
            let mut fds = vec![
                Fd::new(&*self.cut, Flags::IN),
                Fd::from_borrowed_fd(output, Flags::empty()),
            ];
            let mut asked = Vec::with_capacity(self.inputs.len());
            for (at, input) in self.inputs.iter().enumerate() {
                let waits = self.holder.is_some_and(|holder| holder != at);
                if let Some(fd) = input.fd.as_ref().filter(|_| !waits) {
                    fds.push(Fd::from_borrowed_fd(fd.get().map_err(failed)?, Flags::IN));
                    asked.push(at);
                }
            }
            if asked.is_empty() {
                return Ok(asked);
            }
            match poll::poll(&mut fds, Deadline::NEVER) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            }
            let is_ready = |at: usize| !fds[at].revents().is_empty();
            if is_ready(0) || is_ready(1) {
                return Err(Over::Unwanted);
            }
            let asked = asked.into_iter().enumerate();
            let ready = asked.filter(|(nth, _)| is_ready(nth + 2));
            let ready: Vec<usize> = ready.map(|(_, at)| at).collect();
            if !ready.is_empty() {
                return Ok(ready);
            }
        }
    }

    /// Reads from an input, and writes the lines of it that are whole.
    fn pass_on(&mut self, at: usize) -> Result<(), Over> {
        if self.holder.is_some_and(|holder| holder != at) {
            return Ok(());
        }
        let input = &mut self.inputs[at];
        let offset = input.taken;
        let failed = |source| Over::Failed(Error::Read { offset, source });
        let Some(fd) = &input.fd else { return Ok(()) };
        let fd = fd.get().map_err(failed)?;
        let kept = input.line.len();
        input.line.resize(kept + CHUNK, 0);
        let read = rustix::io::read(fd, &mut input.line[kept..]);
        input.line.truncate(kept + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(n) if n > 0 => {
                input.growth.moved(fd, n);
                input.taken += n as u64;
                let mut line = std::mem::take(&mut input.line);
                // What was kept has no end.
                let whole = memrchr(b'\n', &line[kept..]).map_or(0, |end| kept + end + 1);
                // One that is too long, or was begun, goes on to be written as it comes.
                let is_begun = self.holder == Some(at) && whole == 0;
                let is_long = line.len() - whole > CHUNK;
                let written = match self.long {
                    LongLine::Passes if is_begun || is_long => line.len(),
                    LongLine::Passes | LongLine::Fails => whole,
                };
                self.write(&line[..written])?;
                if written > 0 {
                    self.holder = (line[written - 1] != b'\n').then_some(at);
                }
                line.drain(..written);
                let is_too_long = line.len() > MOST;
                self.inputs[at].line = line;
                match is_too_long {
                    true => Err(Over::Failed(Error::LineTooLong { most: MOST })),
                    false => Ok(()),
                }
            }
            Ok(_) => {
                input.fd = None;
                let line = std::mem::take(&mut input.line);
                let was_begun = self.holder.take_if(|holder| *holder == at).is_some();
                self.write(&line)?;
                self.is_torn |= was_begun || !line.is_empty();
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(failed(error.into())),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Over> {
        if bytes.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.is_torn) {
            self.write_all(b"\n")?;
        }
        self.write_all(bytes)
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), Over> {
        let offset = self.written;
        let failed = |source| Over::Failed(Error::Write { offset, source });
        let output = self.output.get().map_err(failed)?;
        while !bytes.is_empty() {
            match rustix::io::write(output, bytes) {
                Ok(n) => {
                    bytes = &bytes[n..];
                    self.written += n as u64;
                    self.growth.moved(output, n);
                }
                Err(Errno::PIPE) => return Err(Over::Unwanted),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    if wait_for_room(output, Some(&self.cut)).map_err(failed)? {
                        return Err(Over::Unwanted);
                    }
                }
                Err(error) => return Err(failed(error.into())),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use procwright_os::pipe;

    fn merged(turns: &[(usize, &[u8])]) -> Vec<u8> {
        merged_by(LongLine::Passes, turns)
    }

    /// What comes out, of inputs that are written by turns.
    fn merged_by(long: LongLine, turns: &[(usize, &[u8])]) -> Vec<u8> {
        let (mut read, write) = std::io::pipe().unwrap();
        pipe::set_nonblocking(&write).unwrap();
        let count = turns.iter().map(|(at, _)| at + 1).max().unwrap_or(1);
        let pipes = (0..count).map(|_| std::io::pipe().unwrap());
        let (inputs, mut writers): (Vec<_>, Vec<_>) = pipes.map(|(i, w)| (i, Some(w))).unzip();
        let inputs = inputs.into_iter().map(OwnedFd::from).collect();
        let output = Arc::new(CloseOnFork::new(write.into()));
        let cut = Arc::new(Wake::new().unwrap());
        let mut merge = Merge::new(inputs, long, output, cut);
        let reads = std::thread::spawn(move || {
            let mut all = Vec::new();
            read.read_to_end(&mut all).unwrap();
            all
        });
        for (at, bytes) in turns {
            match bytes.is_empty() {
                true => writers[*at] = None,
                false => writers[*at].as_ref().unwrap().write_all(bytes).unwrap(),
            }
            // The turn of the one that has something, or none: of others the line is not over.
            if merge.holder.is_none_or(|holder| holder == *at) {
                assert!(merge.pass_on(*at).is_ok());
            }
        }
        drop(writers);
        assert!(merge.run().is_ok());
        reads.join().unwrap()
    }

    #[test]
    fn lines_stay_whole() {
        let out = merged(&[
            (0, b"pe"),
            (1, b"ap"),
            (0, b"ar\nfi"),
            (1, b"ple\n"),
            (0, b"g\n"),
        ]);
        assert_eq!(out, b"pear\napple\nfig\n");
        assert_eq!(merged(&[(0, b"\n\n"), (1, b"\n")]), b"\n\n\n");
        assert_eq!(
            merged(&[(0, b"a\nb\nc"), (1, b"x\n"), (0, b"\n")]),
            b"a\nb\nx\nc\n"
        );
    }

    #[test]
    fn a_last_line_without_an_end_gets_one_if_something_comes_behind_it() {
        assert_eq!(
            merged(&[(0, b"pear"), (0, b""), (1, b"fig\n")]),
            b"pear\nfig\n"
        );
        assert_eq!(
            merged(&[(0, b"pear\n"), (0, b""), (1, b"fig")]),
            b"pear\nfig"
        );
        let both = merged(&[(0, b"pear"), (0, b""), (1, b"fig"), (1, b"")]);
        assert_eq!(both, b"pear\nfig");
    }

    #[test]
    fn a_long_line_is_passed_on_as_it_comes_and_others_wait() {
        let part = vec![b'x'; 40_000];
        let turns: [(usize, &[u8]); 6] = [
            (0, &part),
            (1, b"a\n"),
            (0, &part),
            (1, b"b\n"),
            (0, &part),
            (0, b"\n"),
        ];
        let expected = [b"a\n", &*part.repeat(3), b"\nb\n"].concat();
        assert!(merged(&turns) == expected);
        // Kept, it comes behind those that have ended before.
        let expected = [b"a\nb\n", &*part.repeat(3), b"\n"].concat();
        assert!(merged_by(LongLine::Fails, &turns) == expected);
        // One that never ends is over with its input.
        let expected = [b"a\n", &*part.repeat(3), b"\nb\n"].concat();
        assert!(merged(&turns[..5]) == expected);
    }

    #[test]
    fn a_line_that_is_too_long_to_be_kept_is_an_error_and_ends_all() {
        let (mut read, write) = std::io::pipe().unwrap();
        pipe::set_nonblocking(&write).unwrap();
        let output = Arc::new(CloseOnFork::new(write.into()));
        let cut = Arc::new(Wake::new().unwrap());
        let (inputs, mut writers): (Vec<_>, Vec<_>) =
            (0..2).map(|_| std::io::pipe().unwrap()).unzip();
        let inputs = inputs.into_iter().map(OwnedFd::from).collect();
        let merge = Merge::new(inputs, LongLine::Fails, Arc::clone(&output), cut);
        let merging = std::thread::spawn(|| merge.run());
        writers[1].write_all(b"a\n").unwrap();
        let mut line = [0; 2];
        read.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"a\n");
        let chunk = vec![b'x'; CHUNK];
        let mut refused = Ok(());
        let mut written = 0;
        while refused.is_ok() {
            refused = procwright_os::signal::without_sigpipe(|| writers[0].write_all(&chunk));
            written += CHUNK;
        }
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert!(written > MOST);
        let error = merging.join().unwrap().unwrap_err();
        assert!(
            matches!(error, Error::LineTooLong { most: MOST }),
            "{error}"
        );
    }
}
