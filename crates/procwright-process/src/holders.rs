//! The processes that hold a pipe, and what each of them is doing.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::Weak;
use std::time::Duration;

use crate::chase::Chase;
use crate::proc_id::ProcId;
use procwright_os::fork::CloseOnFork;
use procwright_os::proc::{self, Call, Comm, Conduit, ProcStat, Scan};
use procwright_os::{pidfd, pty};

/// A pipe, whichever of its ends is looked at, or a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PipeId(Conduit);

impl PipeId {
    /// The pipe that this descriptor is an end of.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn of(end: impl AsFd) -> io::Result<PipeId> {
        Ok(PipeId(Conduit::Pipe(rustix::fs::fstat(end)?.st_ino as u64)))
    }

    /// The terminal whose end for programs this descriptor is. A process that
    /// has opened it as `/dev/tty` is not found: that name is everybody's.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn of_terminal(slave: impl AsFd) -> io::Result<PipeId> {
        let stat = rustix::fs::fstat(slave)?;
        #[allow(clippy::unnecessary_cast, reason = "not the same everywhere")]
        let terminal = Conduit::Terminal {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            number: pty::number(&stat),
        };
        Ok(PipeId(terminal))
    }

    /// The form in which `/proc` shows it.
    pub(crate) const fn conduit(self) -> Conduit {
        self.0
    }

    const fn is_terminal(self) -> bool {
        matches!(self.0, Conduit::Terminal { .. })
    }
}

/// The side of a pipe that the program of a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The program reads: stdin.
    Reads,
    /// The program writes: stdout, stderr.
    Writes,
}

/// One of a run's pipes.
#[derive(Clone, Debug)]
pub struct RunPipe {
    /// The pipe.
    pub id: PipeId,
    /// The program's side.
    pub role: Role,
    /// The name in texts: `stdin`, `stdout`, `stderr`.
    pub label: &'static str,
    /// Our end of a terminal; none of a pipe. See [`RunPipe::has_its_name`].
    pub master: Option<Weak<CloseOnFork>>,
}

impl RunPipe {
    /// A pipe, or a terminal whose [`master`](RunPipe::kept_by) is not told yet.
    pub fn new(id: PipeId, role: Role, label: &'static str) -> RunPipe {
        let master = id.is_terminal().then(Weak::new);
        RunPipe {
            id,
            role,
            label,
            master,
        }
    }

    /// Notes our end of the terminal, if it is one.
    pub fn kept_by(&mut self, master: &Weak<CloseOnFork>) {
        if self.id.is_terminal() {
            self.master = Some(Weak::clone(master));
        }
    }

    /// Whether its name is its own. So what was read by the name *before* this call was read
    /// of it.
    ///
    /// Pipes have numbers that the kernel counts up, 4 billion of them. A terminal's is the
    /// lowest that is free: once its master is closed, the next one gets it, which may be
    /// the window that somebody opens.
    pub fn has_its_name(&self) -> bool {
        // The last of those who have it is gone before the descriptor is closed.
        self.master
            .as_ref()
            .is_none_or(|master| master.strong_count() > 0)
    }
}

/// A process that holds an end of a pipe. To signal it, ask for its
/// [`process`](Holder::process): its number may be another's by then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(unreachable_pub)] // part of a result's public shape
#[non_exhaustive]
pub struct Holder {
    /// Its number when it was seen.
    pub pid: i32,
    /// Its name, printable.
    pub name: String,
    /// The process, also after its number was given to another; none of one that ended
    /// while it was looked at.
    pub(crate) id: Option<ProcId>,
}

impl Holder {
    /// The holder of this number, name and identity.
    pub(crate) const fn new(pid: i32, name: String, id: Option<ProcId>) -> Holder {
        Holder { pid, name, id }
    }

    /// The holder whose [`identity`](Holder::identity) was noted elsewhere.
    #[doc(hidden)]
    pub fn noted(pid: i32, name: String, identity: Option<(u64, Option<u64>)>) -> Holder {
        let id = identity.map(|(start, inode)| ProcId::noted(pid, start, inode));
        Holder::new(pid, name, id)
    }

    /// Its start, and the inode of its pidfd where there are such, if they are known.
    #[doc(hidden)]
    pub fn identity(&self) -> Option<(u64, Option<u64>)> {
        self.id.map(|id| (id.start_ticks(), id.inode()))
    }

    /// Whether both are of one process, as far as their looks can tell.
    fn is_same(&self, other: &Holder) -> bool {
        self.pid == other.pid
            && match (self.id, other.id) {
                (Some(one), Some(another)) => one == another,
                _ => self.name == other.name,
            }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// The processes that hold one end of a pipe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(unreachable_pub)] // part of a result's public shape
pub struct Holders {
    /// The processes that were found, in the order of their numbers.
    pub list: Vec<Holder>,
    /// Whether every process could be looked at. If not, there may be more.
    pub complete: bool,
}

impl Holders {
    /// No process, for certain.
    #[doc(hidden)]
    pub const fn nobody() -> Holders {
        Holders {
            list: Vec::new(),
            complete: true,
        }
    }

    /// Adds the holders of `others` that are not listed. The result is complete only if
    /// both are.
    #[doc(hidden)]
    pub fn absorb(&mut self, others: Holders) {
        for holder in others.list {
            if !self.list.iter().any(|listed| listed.is_same(&holder)) {
                self.list.push(holder);
            }
        }
        self.complete &= others.complete;
    }
}

/// The processes that hold either end of one pipe.
#[derive(Clone, Debug)]
pub struct PipeHolders {
    /// Holders of the read end.
    pub readers: Holders,
    /// Holders of the write end.
    pub writers: Holders,
}

/// Longest time for which a pass goes after processes that are forked faster than it
/// looks.
const CHASE_LIMIT: Duration = Duration::from_millis(250);

/// Finds the holders of these pipes, in their order, in one pass over all processes.
/// The process `except` is left out, usually this one.
///
/// A process that was forked during the pass may be missed, and one that has ended or let go
/// since it was looked at may be named. A thread with a descriptor table of its own
/// (`unshare(CLONE_FILES)`) is not looked at, and neither is a descriptor on
/// its way through a socket.
///
/// A process that was started before `since`, in ticks since boot, and cannot be looked
/// at does not make the result incomplete: the pipes are younger, so it could have one
/// only through a socket.
///
/// # Errors
/// If the processes cannot be listed: no `/proc`, or no descriptor free.
pub fn of_pipes(pipes: &[PipeId], except: i32, since: u64) -> io::Result<Vec<PipeHolders>> {
    let mut look = PipeLook::new(pipes, since);
    let chase = Chase::for_at_most(CHASE_LIMIT);
    proc::each_pid(&mut |pid, is_above| {
        if chase.leaves_out(pid, is_above) {
            look.complete = false;
        } else if pid != except {
            look.at(pid);
        }
        Ok(Scan::Next)
    })?;
    Ok(look.end())
}

/// Finds the holders of these pipes among these processes: a look that costs no more than
/// they are many, for a moment at which there is no time for all processes of a machine.
pub fn of_pipes_among(pipes: &[PipeId], pids: &[i32]) -> Vec<PipeHolders> {
    let mut look = PipeLook::new(pipes, 0);
    for &pid in pids {
        look.at(pid);
    }
    look.end()
}

/// A pipe, by its place among those that are looked for, and whether a process reads it and
/// whether it writes it.
type Held = (usize, bool, bool);

/// The holders of some pipes, found so far.
struct PipeLook {
    wanted: Vec<Conduit>,
    since: u64,
    ends: Vec<PipeHolders>,
    complete: bool,
}

impl PipeLook {
    fn new(pipes: &[PipeId], since: u64) -> PipeLook {
        let none = Holders::nobody;
        PipeLook {
            wanted: pipes.iter().map(|pipe| pipe.conduit()).collect(),
            since,
            ends: Vec::from_iter(pipes.iter().map(|_| PipeHolders {
                readers: none(),
                writers: none(),
            })),
            complete: true,
        }
    }

    /// Looks at one process.
    fn at(&mut self, pid: i32) {
        let held = match self.held_by(pid) {
            held if held.is_empty() => return,
            held => held,
        };
        let (holder, held) = match self.recognised(pid) {
            Some(recognised) => recognised,
            // A child of another thread between clone and exec has copies of our pipes, which
            // the kernel closes one after the other: the first look may have seen the half.
            None if self.has_let_go(pid) => return,
            None => {
                let name =
                    proc::stat(pid).map_or_else(|_| String::from("?"), |s| s.name.to_string());
                (Holder::new(pid, name, None), held)
            }
        };
        for (i, read, write) in held {
            if read {
                self.ends[i].readers.list.push(holder.clone());
            }
            if write {
                self.ends[i].writers.list.push(holder.clone());
            }
        }
    }

    /// The process that has a holder's number, if it is a holder itself: since the first look
    /// the number may have gone to another, which nobody should signal. None if it has ended
    /// or holds none of the pipes.
    ///
    /// The second look costs little: few processes are holders.
    fn recognised(&mut self, pid: i32) -> Option<(Holder, Vec<Held>)> {
        // 1. The descriptor, if there is one to be had, means who has the number now.
        let pidfd = pidfd::open_briefly(pid).ok();
        // 2. Start and pipes are read by the number.
        let stat = proc::stat(pid).ok()?;
        let held = self.held_by(pid);
        // 3. The number is that process's still, so all of 2 was of it.
        let again = ProcId::from(&proc::stat(pid).ok()?);
        let runs = |fd| matches!(pidfd::has_exited(fd), Ok(false));
        let kept = again.is(&stat) && pidfd.as_ref().is_none_or(|fd| runs(fd.as_fd()));
        if held.is_empty() || !kept {
            return None;
        }
        let inode = pidfd.as_ref().and_then(|fd| pidfd::inode(fd.as_fd()));
        let holder = Holder::new(pid, stat.name.to_string(), Some(again.with_inode(inode)));
        Some((holder, held))
    }

    /// Whether a process that has held one of the pipes holds none any more, for certain.
    fn has_let_go(&self, pid: i32) -> bool {
        let is_no_more = match proc::stat(pid) {
            Ok(stat) => stat.is_gone(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        let mut holds = false;
        is_no_more || (proc::each_pipe(pid, &self.wanted, &mut |_| holds = true).is_ok() && !holds)
    }

    /// The pipes that the process of this number holds.
    fn held_by(&mut self, pid: i32) -> Vec<Held> {
        let mut held: Vec<Held> = Vec::new();
        let wanted = &self.wanted;
        let seen = proc::each_pipe(pid, wanted, &mut |fd| {
            for (i, _) in wanted.iter().enumerate().filter(|(_, n)| **n == fd.of) {
                match held.iter_mut().find(|(pipe, ..)| *pipe == i) {
                    Some((_, read, write)) => {
                        *read |= fd.read;
                        *write |= fd.write;
                    }
                    None => held.push((i, fd.read, fd.write)),
                }
            }
        });
        match seen {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            // Kernel threads and zombies have no descriptors, and may still refuse the
            // look.
            Err(_) => match proc::stat(pid) {
                Ok(stat) if stat.kernel_thread || stat.is_gone() => {}
                Ok(stat) if stat.start_ticks < self.since => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                _ => self.complete = false,
            },
        }
        held
    }

    fn end(mut self) -> Vec<PipeHolders> {
        for end in &mut self.ends {
            for side in [&mut end.readers, &mut end.writers] {
                side.complete = self.complete;
                side.list.sort_by_key(|h| h.pid);
            }
        }
        self.ends
    }
}

/// What one process is doing, as the text of an error tells it.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Its number.
    pub(crate) pid: i32,
    /// Its name.
    pub(crate) name: Comm,
    /// The thing that it does or waits for.
    pub(crate) doing: Doing,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}): {}", self.name, self.pid, self.doing)
    }
}

/// The thing that a process does or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Running on a processor, or about to.
    Running,
    /// Blocked in a write, until a reader takes something.
    BlockedWriting(Option<&'static str>),
    /// Blocked in a read, until a writer gives something.
    BlockedReading(Option<&'static str>),
    /// Waits in `poll` and the like.
    Polling,
    /// Waits for a child of its own.
    WaitingForChild,
    /// Waits for a lock or another thread.
    WaitingForLock,
    /// Sleeps for a time.
    Sleeping,
    /// Waits for something else.
    Waiting,
    /// Was stopped by a signal.
    Stopped,
    /// Is held by a debugger.
    Traced,
    /// Waits inside the system where no signal reaches it.
    Uninterruptible,
    /// Has ended; its parent has not asked for its status.
    Zombie,
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doing::Running => f.write_str("running"),
            Doing::BlockedWriting(Some(label)) => {
                write!(f, "blocked writing to {label} (pipe full)")
            }
            Doing::BlockedWriting(None) => f.write_str("blocked writing"),
            Doing::BlockedReading(Some(label)) => {
                write!(f, "blocked reading {label} (pipe empty)")
            }
            Doing::BlockedReading(None) => f.write_str("blocked reading"),
            Doing::Polling => f.write_str("waiting in poll"),
            Doing::WaitingForChild => f.write_str("waiting for its child"),
            Doing::WaitingForLock => f.write_str("waiting for a lock or a thread"),
            Doing::Sleeping => f.write_str("sleeping"),
            Doing::Waiting => f.write_str("waiting"),
            Doing::Stopped => f.write_str("stopped by a signal (T)"),
            Doing::Traced => f.write_str("held by a debugger (t)"),
            Doing::Uninterruptible => f.write_str("in an uninterruptible wait (D)"),
            Doing::Zombie => f.write_str("ended, not reaped by its parent (Z)"),
        }
    }
}

/// What `pid` is doing. Of several threads, the one that is blocked on one of
/// `pipes` is told about; else the first.
///
/// # Errors
/// `NotFound` if there is no such process.
pub fn activity(pid: i32, pipes: &[RunPipe]) -> io::Result<Activity> {
    let stat = proc::stat(pid)?;
    let doing = match stat.state {
        _ if stat.is_gone() => Doing::Zombie,
        'T' => Doing::Stopped,
        't' => Doing::Traced,
        _ => threads_doing(&stat, pipes),
    };
    Ok(Activity {
        pid,
        name: stat.name,
        doing,
    })
}

fn threads_doing(stat: &ProcStat, pipes: &[RunPipe]) -> Doing {
    // A terminal goes both ways under one name, so it tells nothing here.
    let pipes: Vec<_> = pipes.iter().filter(|p| !p.id.is_terminal()).collect();
    let wanted: Vec<_> = pipes.iter().map(|p| p.id.conduit()).collect();
    let mut fds = Vec::new();
    // A failure costs the label alone.
    let _ = proc::each_pipe(stat.pid, &wanted, &mut |fd| fds.push(fd));
    let label = |fd: i32| {
        let of = fds.iter().find(|f| f.fd == fd)?.of;
        pipes.iter().find(|p| p.id.conduit() == of).map(|p| p.label)
    };
    // Where only `wchan` is to be had, a label is certain only if the process holds one
    // pipe on that side.
    let only = |write: bool| {
        let mut side = fds
            .iter()
            .filter(|f| if write { f.write } else { f.read })
            .filter_map(|f| label(f.fd));
        let first = side.next()?;
        side.all(|other| other == first).then_some(first)
    };
    let mut first = None;
    let mut blocked = None;
    let _ = proc::each_call(stat.pid, &mut |thread| {
        let doing = match (thread.state, &thread.call) {
            ('R', _) | (_, Call::Running) => Doing::Running,
            ('S', Call::Write(fd)) => Doing::BlockedWriting(label(*fd)),
            ('S', Call::Read(fd)) => Doing::BlockedReading(label(*fd)),
            // "pipe_write" until 6.14, "anon_pipe_write" from 6.15.
            ('S', Call::Channel(place)) if place.ends_with("pipe_write") => {
                Doing::BlockedWriting(only(true))
            }
            ('S', Call::Channel(place)) if place.ends_with("pipe_read") => {
                Doing::BlockedReading(only(false))
            }
            ('S', Call::Channel(place)) if place.contains("poll") => Doing::Polling,
            ('S', Call::Channel(place)) if place == "do_wait" => Doing::WaitingForChild,
            ('S', Call::Channel(place)) if place.starts_with("futex") => Doing::WaitingForLock,
            ('S', Call::Channel(place)) if place.contains("nanosleep") => Doing::Sleeping,
            // A parent in vfork waits so too, and so does a slow disk.
            ('D', _) => Doing::Uninterruptible,
            (_, Call::Poll) => Doing::Polling,
            (_, Call::WaitChild) => Doing::WaitingForChild,
            (_, Call::Futex) => Doing::WaitingForLock,
            (_, Call::Sleep) => Doing::Sleeping,
            _ => Doing::Waiting,
        };
        if matches!(
            doing,
            Doing::BlockedWriting(Some(_)) | Doing::BlockedReading(Some(_))
        ) {
            blocked = Some(doing);
            return false;
        }
        first.get_or_insert(doing);
        true
    });
    blocked.or(first).unwrap_or(match stat.state {
        'R' => Doing::Running,
        'D' => Doing::Uninterruptible,
        _ => Doing::Waiting,
    })
}
