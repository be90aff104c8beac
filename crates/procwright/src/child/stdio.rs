//! The child's descriptors: what it gets, and the ends that we keep.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use super::Unstarted;
use crate::error::{SpawnError, Step};
use crate::holders::{PipeId, Role, RunPipe};
use crate::spec::{Sink, Spec, Stdin};
use crate::sys::pipe::{self, FullProbe};
use crate::sys::pty;
use crate::terminal::{self, Modes, Size};

/// Our end of an output pipe, or of the terminal.
#[derive(Debug)]
pub(crate) struct OutputEnd {
    pub(crate) fd: OwnedFd,
    /// None where it cannot be had: then fullness is guessed from above.
    pub(crate) probe: Option<Arc<FullProbe>>,
}

/// What we have of the program's terminal beside the end that is read.
#[derive(Debug)]
pub(crate) struct TerminalEnd {
    /// The end that the program has as well.
    pub(crate) slave: OwnedFd,
    /// Where somebody types what goes into it: the caller's own terminal, opened
    /// anew.
    pub(crate) keyboard: Option<OwnedFd>,
    /// What the caller types with, if that is his to do.
    pub(crate) typing: Option<OwnedFd>,
}

/// The ends that stay with us.
#[derive(Debug, Default)]
pub(crate) struct OurEnds {
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) outputs: [Option<OutputEnd>; 2],
    /// Then stdout is its end.
    pub(crate) terminal: Option<TerminalEnd>,
}

impl OurEnds {
    /// What the pipes are called, for whoever asks who holds them.
    pub(crate) fn pipes(&self) -> Vec<RunPipe> {
        let pipe = |id: io::Result<PipeId>, role, label| {
            let id = id.ok()?;
            Some(RunPipe { id, role, label })
        };
        let stdin = self.stdin.as_ref();
        let stdin = stdin.and_then(|fd| pipe(PipeId::of(fd), Role::Reads, "stdin"));
        let outputs = self.outputs.iter().zip(["stdout", "stderr"]);
        let outputs = outputs.filter_map(|(end, label)| {
            let end = end.as_ref()?;
            let id = match &self.terminal {
                // By the end that the program has: ours is of the same name for all.
                Some(terminal) => PipeId::of_terminal(&terminal.slave),
                None => PipeId::of(end),
            };
            pipe(id, Role::Writes, label)
        });
        stdin.into_iter().chain(outputs).collect()
    }
}

/// All descriptors of a start. The child's ends are closed when this goes.
pub(super) struct Ends {
    pub(super) ours: OurEnds,
    /// Which of our descriptors becomes which of the child's.
    pub(super) placements: Vec<(RawFd, RawFd)>,
    _childs: Vec<OwnedFd>,
}

impl Ends {
    /// What becomes the program's controlling terminal, if it gets one.
    pub(super) fn terminal(&self) -> Option<RawFd> {
        let terminal = self.ours.terminal.as_ref()?;
        Some(terminal.slave.as_raw_fd())
    }
}

struct Opening {
    ours: OurEnds,
    placements: Vec<(RawFd, RawFd)>,
    childs: Vec<OwnedFd>,
}

pub(super) fn open(spec: &Spec, feeds: bool) -> Result<Ends, Unstarted> {
    let mut opening = Opening {
        ours: OurEnds::default(),
        placements: Vec::with_capacity(3 + spec.extra_fds.len()),
        childs: Vec::with_capacity(3),
    };
    if let Some(size) = spec.pty {
        opening.terminal(size, spec.pty_modes.as_ref())?;
    }
    opening.stdin(&spec.stdin, feeds)?;
    opening.output(0, &spec.stdout)?;
    opening.output(1, &spec.stderr)?;
    for (fd, number) in &spec.extra_fds {
        opening.placements.push((fd.as_raw_fd(), *number));
    }
    Ok(Ends {
        ours: opening.ours,
        placements: opening.placements,
        _childs: opening.childs,
    })
}

impl Opening {
    fn terminal(&mut self, size: Size, modes: Option<&Modes>) -> Result<(), SpawnError> {
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
        self.ours.outputs[0] = Some(OutputEnd {
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

    fn stdin(&mut self, stdin: &Stdin, feeds: bool) -> Result<(), SpawnError> {
        if feeds {
            let (read, write) = pipe::pipe().map_err(pipe_error)?;
            pipe::set_nonblocking(&write).map_err(pipe_error)?;
            self.ours.stdin = Some(write);
            self.give(read, 0);
            return Ok(());
        }
        if self.types(stdin)? {
            return Ok(());
        }
        match stdin {
            Stdin::Inherit => {}
            Stdin::Fd(fd) => self.placements.push((fd.as_raw_fd(), 0)),
            Stdin::File(path) => self.give(read_file(path)?, 0),
            // Bytes and a pipe were dealt with above, unless nobody feeds.
            Stdin::Null | Stdin::Bytes(_) | Stdin::Pipe => {
                self.give(read_file(Path::new("/dev/null"))?, 0)
            }
        }
        Ok(())
    }

    /// Makes the terminal the program's stdin too, where somebody types: the
    /// caller of `spawn`, or whoever sits at the caller's own terminal. What has
    /// an exact end, a file or bytes, is no typing: a terminal cuts long lines,
    /// and takes some bytes for commands.
    fn types(&mut self, stdin: &Stdin) -> Result<bool, SpawnError> {
        let Some(terminal) = &mut self.ours.terminal else {
            return Ok(false);
        };
        match stdin {
            Stdin::Pipe => {
                let master = self.ours.outputs[0].as_ref().map(|end| end.fd.try_clone());
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

    fn output(&mut self, index: usize, sink: &Sink) -> Result<(), SpawnError> {
        let number = if index == 0 { 1 } else { 2 };
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
                self.ours.outputs[index] = Some(OutputEnd { fd: read, probe });
                self.give(write, number);
            }
            Sink::Merged => {
                // The source of stdout, whatever that is; without one, stdout
                // is inherited and so is what stderr becomes.
                let stdout = self.placements.iter().find(|(_, to)| *to == 1);
                let source = stdout.map_or(1, |(from, _)| *from);
                self.placements.push((source, number));
            }
        }
        Ok(())
    }

    fn give(&mut self, fd: OwnedFd, number: RawFd) {
        self.placements.push((fd.as_raw_fd(), number));
        self.childs.push(fd);
    }
}

fn pty_error(error: io::Error) -> SpawnError {
    SpawnError::new(Step::Pty, "", error)
}

pub(super) fn pipe_error(error: io::Error) -> SpawnError {
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
    let file = options.create(true).open(path);
    file.map(OwnedFd::from).map_err(|e| open_error(path, e))
}

fn open_error(path: &Path, error: io::Error) -> SpawnError {
    SpawnError::new(Step::Open, path.to_string_lossy(), error)
}

impl AsFd for OutputEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
