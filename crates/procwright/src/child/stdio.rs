//! The standard streams of a child: the ends that it gets, and those that we keep.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use super::unstarted::Unstarted;
use crate::error::{SpawnError, Step, UNREAD_FIFO};
use crate::spec::{Sink, Spec, Stdin};
use crate::std_stream::{PerStream, StdStream};
use crate::terminal::{self, Modes, Size};
use procwright_os::pipe::{self, FullProbe};
use procwright_os::{file, pty};
use procwright_process::holders::{PipeId, Role, RunPipe};

/// Our end of an output pipe, or of the terminal.
#[derive(Debug)]
pub(crate) struct OutputEnd {
    pub(crate) fd: OwnedFd,
    /// Tells whether the pipe is full. None where that cannot be had: then the time for
    /// which it was full is an upper bound.
    pub(crate) probe: Option<Arc<FullProbe>>,
}

/// Ends of pipes to other programs, in the place of stdin and stdout of the spec. They are
/// the program's alone, and closed here once it has started.
#[derive(Debug, Default)]
pub(crate) struct JoinEnds {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) stdout: Option<OwnedFd>,
}

/// Our ends of the program's terminal, beside the one that is read.
#[derive(Debug)]
pub(crate) struct TerminalEnd {
    /// The end that is the program's terminal.
    pub(crate) slave: OwnedFd,
    /// The caller's own terminal, opened anew: what is typed there is passed on.
    pub(crate) keyboard: Option<OwnedFd>,
    /// A duplicate of the master for the caller to write to, if stdin is a pipe.
    pub(crate) typing: Option<OwnedFd>,
}

/// The ends that stay with us.
#[derive(Debug, Default)]
pub(crate) struct OurEnds {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) outputs: PerStream<Option<OutputEnd>>,
    /// The terminal, if there is one; stdout then is its master.
    pub(crate) terminal: Option<TerminalEnd>,
}

impl OurEnds {
    /// The names of the pipes, by which their holders are found.
    pub(crate) fn pipes(&self) -> Vec<RunPipe> {
        let pipe = |id: io::Result<PipeId>, role, label| Some(RunPipe::new(id.ok()?, role, label));
        let stdin = self.stdin.as_ref();
        let stdin = stdin.and_then(|fd| pipe(PipeId::of(fd), Role::Reads, "stdin"));
        let outputs = self.outputs.iter().filter_map(|(stream, end)| {
            let end = end.as_ref()?;
            let id = match &self.terminal {
                // The program's end names the terminal: all masters have one name.
                Some(terminal) => PipeId::of_terminal(&terminal.slave),
                None => PipeId::of(end),
            };
            pipe(id, Role::Writes, stream.name())
        });
        stdin.into_iter().chain(outputs).collect()
    }
}

/// The descriptors of a start. The child's ends are closed when this goes.
pub(super) struct StdioEnds {
    pub(super) ours: OurEnds,
    /// Our descriptor and the number it gets in the child, of each.
    pub(super) placements: Vec<(RawFd, RawFd)>,
    /// The ends that are the child's alone.
    childs: Vec<OwnedFd>,
}

impl StdioEnds {
    /// The descriptor of the program's controlling terminal, if it gets one.
    pub(super) fn terminal(&self) -> Option<RawFd> {
        let terminal = self.ours.terminal.as_ref()?;
        Some(terminal.slave.as_raw_fd())
    }
}

/// Opens all that `spec` wants, with a pipe for stdin if `feeds`, but for what is joined.
pub(super) fn open(spec: &Spec, feeds: bool, joins: JoinEnds) -> Result<StdioEnds, Unstarted> {
    let mut ends = StdioEnds {
        ours: OurEnds::default(),
        placements: Vec::with_capacity(3 + spec.pass_fds.len()),
        childs: Vec::with_capacity(3),
    };
    if let Some(size) = spec.pty {
        ends.open_terminal(size, spec.pty_modes.as_ref())?;
    }
    match joins.stdin {
        Some(read) => ends.give(read, 0),
        None => ends.open_stdin(&spec.stdin, feeds)?,
    }
    match joins.stdout {
        Some(write) => ends.give(write, StdStream::Stdout.fd()),
        None => ends.open_output(StdStream::Stdout, &spec.stdout)?,
    }
    ends.open_output(StdStream::Stderr, &spec.stderr)?;
    for (fd, number) in &spec.pass_fds {
        ends.placements.push((fd.as_raw_fd(), *number));
    }
    Ok(ends)
}

impl StdioEnds {
    fn open_terminal(&mut self, size: Size, modes: Option<&Modes>) -> Result<(), SpawnError> {
        let pair = pty::pair().map_err(pty_error)?;
        pipe::set_nonblocking(&pair.master).map_err(pty_error)?;
        terminal::set_size(&pair.slave, size).map_err(pty_error)?;
        let modes = match modes {
            Some(modes) => Ok(modes.clone()),
            None => Modes::of(&pair.slave).map(Modes::utf8),
        };
        modes
            .and_then(|modes| modes.apply(&pair.slave))
            .map_err(pty_error)?;
        self.ours.outputs.stdout = Some(OutputEnd {
            fd: pair.master,
            probe: None,
        });
        self.ours.terminal = Some(TerminalEnd {
            slave: pair.slave,
            keyboard: None,
            typing: None,
        });
        Ok(())
    }

    fn open_stdin(&mut self, stdin: &Stdin, feeds: bool) -> Result<(), SpawnError> {
        if feeds {
            let (read, write) = pipe::pipe().map_err(pipe_error)?;
            pipe::set_nonblocking(&write).map_err(pipe_error)?;
            self.ours.stdin = Some(write);
            self.give(read, 0);
            return Ok(());
        }
        if self.terminal_stdin(stdin)? {
            return Ok(());
        }
        match stdin {
            Stdin::Inherit => {}
            Stdin::Fd(fd) => self.placements.push((fd.as_raw_fd(), 0)),
            Stdin::File(path) => self.give(read_file(path)?, 0),
            // Bytes and a pipe are here only if nothing is fed.
            Stdin::Null | Stdin::Bytes(_) | Stdin::Pipe => {
                self.give(read_file(Path::new("/dev/null"))?, 0)
            }
        }
        Ok(())
    }

    /// Makes the terminal the program's stdin too, where that is typed: by the caller of
    /// `spawn`, or at the caller's own terminal. Input with an exact end, a file or bytes,
    /// is not typed: a terminal cuts long lines, and takes some bytes for commands.
    fn terminal_stdin(&mut self, stdin: &Stdin) -> Result<bool, SpawnError> {
        let Some(terminal) = &mut self.ours.terminal else {
            return Ok(false);
        };
        match stdin {
            Stdin::Pipe => {
                let master = self
                    .ours
                    .outputs
                    .stdout
                    .as_ref()
                    .map(|end| end.fd.try_clone());
                terminal.typing = master.transpose().map_err(pty_error)?;
            }
            Stdin::Inherit if io::stdin().is_terminal() => {
                let keyboard = pty::reopen(io::stdin()).map_err(|error| {
                    SpawnError::new(Step::Open, "the terminal on stdin", error)
                        .with_hint("without it nobody can type: give the program another stdin")
                })?;
                terminal.keyboard = Some(keyboard);
            }
            _ => return Ok(false),
        }
        self.placements.push((terminal.slave.as_raw_fd(), 0));
        Ok(true)
    }

    fn open_output(&mut self, stream: StdStream, sink: &Sink) -> Result<(), SpawnError> {
        let number = stream.fd();
        match sink {
            Sink::Inherit => {}
            Sink::Fd(fd) => self.placements.push((fd.as_raw_fd(), number)),
            Sink::Null => self.give(write_file(Path::new("/dev/null"), false)?, number),
            Sink::File { path, append } => self.give(write_file(path, *append)?, number),
            Sink::Capture | Sink::Relay if self.ours.terminal.is_some() => {
                let terminal = self.ours.terminal.as_ref();
                let slave = terminal.map(|terminal| (terminal.slave.as_raw_fd(), number));
                self.placements.extend(slave);
            }
            Sink::Capture | Sink::Relay => {
                let (read, write) = pipe::pipe().map_err(pipe_error)?;
                pipe::set_nonblocking(&read).map_err(pipe_error)?;
                // A probe is worth a descriptor but not a failed run.
                let probe = FullProbe::new(write.as_fd()).ok().map(Arc::new);
                self.ours.outputs[stream] = Some(OutputEnd { fd: read, probe });
                self.give(write, number);
            }
            Sink::Merged => {
                // The source of stdout, whatever that is; without one, stdout
                // is inherited and so is what stderr becomes.
                let number_of_stdout = StdStream::Stdout.fd();
                let mut placements = self.placements.iter();
                let stdout = placements.find(|(_, to)| *to == number_of_stdout);
                let source = stdout.map_or(number_of_stdout, |(from, _)| *from);
                self.placements.push((source, number));
            }
        }
        Ok(())
    }

    /// Gives the child a descriptor, which is closed here after the start.
    fn give(&mut self, fd: OwnedFd, number: RawFd) {
        self.placements.push((fd.as_raw_fd(), number));
        self.childs.push(fd);
    }
}

fn pty_error(error: io::Error) -> SpawnError {
    SpawnError::new(Step::Pty, "", error)
}

pub(crate) fn pipe_error(error: io::Error) -> SpawnError {
    SpawnError::new(Step::Pipe, "", error)
}

fn read_file(path: &Path) -> Result<OwnedFd, SpawnError> {
    let file = File::open(path);
    file.map(OwnedFd::from).map_err(|e| open_error(path, e))
}

fn write_file(path: &Path, append: bool) -> Result<OwnedFd, SpawnError> {
    let mut options = OpenOptions::new();
    if append {
        options.append(true);
    } else {
        options.write(true).truncate(true);
    }
    let opened = file::open_at_once(options.create(true), path);
    opened.map(OwnedFd::from).map_err(|error| {
        let is_unread = file::is_unread_fifo(path, &error);
        let error = open_error(path, error);
        match is_unread {
            true => error.with_hint(UNREAD_FIFO),
            false => error,
        }
    })
}

fn open_error(path: &Path, error: io::Error) -> SpawnError {
    SpawnError::new(Step::Open, path.to_string_lossy(), error)
}

impl AsFd for OutputEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A duplicate of the descriptor that has this number, for hosts in whose
/// language a descriptor is a number. It is close-on-exec.
///
/// # Errors
/// `EBADF` if there is none of that number, `EMFILE` if no more can be had.
pub fn duplicate_fd(number: RawFd) -> io::Result<OwnedFd> {
    procwright_os::fd::duplicate(number)
}
