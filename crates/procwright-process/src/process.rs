//! [`Process`]: any process, an own child or not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use rustix::io::Errno;

use super::process_error::ProcessError;
use super::{Exit, Id, Orphans, Signal, Stop, StopTarget, Stopping, Survivor, Unknown};
use crate::holders::Holder;
use crate::proc_id::ProcId;
use crate::process_handle::{Ending, ProcessHandle};
use crate::wait::{self, Awaits, Event, Mechanism, WaitSet, Waitable, Want};
use procwright_os::Invalid;
use procwright_os::fork::OnceBox;
use procwright_os::time::{Deadline, Timeout};
use procwright_os::wake::Wake;
use procwright_os::{pidfd, poll, proc, wait as sys};

/// A process, whoever started it.
///
/// It stays this process: when that has ended and its number has gone to
/// another, this still names the one that has ended, and signals nobody. Cheap
/// to clone; all clones are one. It holds a pidfd where one can be had, and
/// never reaps: a child of yours stays your own to wait for.
///
/// ```
/// use procwright_process::Process;
/// use procwright_process::Exit;
/// use procwright_process::time::Timeout;
/// use std::time::Duration;
///
/// let mut child = std::process::Command::new("sleep").arg("0.01").spawn()?;
/// let process = Process::of_child(&child)?;
/// assert!(process.wait(Duration::from_secs(60))?.is_some());
/// assert_eq!(process.exit(), Some(Exit::Code(0)));
/// assert!(child.wait()?.success()); // its status is still there
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Platforms
/// Linux. Elsewhere nothing can be opened yet: [`ProcessError::System`] with
/// `Unsupported`.
#[derive(Clone, Debug)]
#[doc(alias = "pidfd_open")]
#[doc(alias = "pid")]
pub struct Process(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    watched: ProcessHandle,
    /// How it ended, once that is known or never will be.
    exit: OnceBox<Exit>,
    /// What an event loop gets in the place of the pidfd, when it has ended and has none.
    rung: OnceBox<Wake>,
}

/// A descriptor that a stop watches as well, and what is done when it is readable: true
/// ends the grace.
pub type WatchedBeside<'a> = (BorrowedFd<'a>, &'a mut dyn FnMut() -> bool);

impl Process {
    /// Opens the process that has this number now. From here on it is that one.
    ///
    /// A process that has ended but was not reaped has its number still.
    ///
    /// # Errors
    /// [`ProcessError::Gone`] if there is none, [`ProcessError::Invalid`] for a
    /// number below 1. `Unsupported` if neither a pidfd nor `/proc` is to be had,
    /// unless it is a child of ours.
    pub fn open(pid: i32) -> Result<Process, ProcessError> {
        Process::open_id(Id::new(pid, None)?)
    }

    /// Opens the process of this number and, if one is given, this inode.
    ///
    /// # Errors
    /// As [`Process::open`]; [`ProcessError::Gone`] too if the number is another
    /// process's by now.
    pub fn open_id(id: Id) -> Result<Process, ProcessError> {
        let watched =
            ProcessHandle::open(id.pid()).map_err(|error| ProcessError::new("watch", id, error))?;
        match (id.inode(), watched.id().inode()) {
            (Some(wanted), Some(inode)) if wanted != inode => Err(ProcessError::Gone(Some(id))),
            (Some(_), None) => Err(ProcessError::System {
                what: "recognise",
                id,
                source: io::Error::new(
                    io::ErrorKind::Unsupported,
                    "its pidfd is needed, with an inode (Linux 6.9), and could not be had",
                ),
            }),
            _ => Ok(Process::from(watched)),
        }
    }

    /// Opens the process of this identity, while it runs.
    ///
    /// # Errors
    /// As [`Process::open`]; [`ProcessError::Gone`] too if it has ended, whether or not its
    /// number is another process's by now.
    fn open_exact(known: ProcId) -> Result<Process, ProcessError> {
        let id = Id::new(known.pid(), known.inode())?;
        let watched =
            ProcessHandle::open(id.pid()).map_err(|error| ProcessError::new("watch", id, error))?;
        let opened = watched.id();
        let same = match (known.inode(), opened.inode()) {
            (Some(known), Some(opened)) => known == opened,
            // Where one has no inode, their starts tell.
            _ => match watched.stat() {
                Ok(stat) => known.is(&stat),
                Err(error) => return Err(ProcessError::new("recognise", id, error)),
            },
        };
        let process = Process::from(watched);
        match same && process.is_alive() {
            true => Ok(process),
            false => Err(ProcessError::Gone(Some(id))),
        }
    }

    /// A child that was started with the standard library. It must not have been
    /// waited for yet, and needs its `wait` afterwards as always: this reaps
    /// nothing.
    ///
    /// # Errors
    /// As [`Process::open`].
    pub fn of_child(child: &std::process::Child) -> Result<Process, ProcessError> {
        Process::open(i32::try_from(child.id()).unwrap_or(0))
    }

    /// The process that a pidfd names, be it inherited, received over a socket
    /// or opened by other code.
    ///
    /// # Errors
    /// [`ProcessError::Invalid`] if it is no pidfd, or if the number of its process
    /// cannot be learned: without `/proc` or a free descriptor, or when it is
    /// outside our pid namespace. [`ProcessError::Gone`] if its process was reaped
    /// already, which leaves it without a number.
    pub fn from_pidfd(pidfd: OwnedFd) -> Result<Process, ProcessError> {
        match pidfd::pid(pidfd.as_fd()) {
            Ok(Some(pid)) => Ok(Process::from(ProcessHandle::of_pidfd(pid, pidfd))),
            Ok(None) => Err(ProcessError::Gone(None)),
            Err(e) if e.raw_os_error() == Some(Errno::BADF.raw_os_error()) => {
                Err(ProcessError::Invalid(Invalid::new(
                    "pidfd",
                    "is another kind of descriptor",
                    "pass what pidfd_open(2) or clone(2) with CLONE_PIDFD gave",
                )))
            }
            Err(e) => Err(ProcessError::Invalid(Invalid::new(
                "pidfd",
                format!("is of a process whose number cannot be learned: {e}"),
                "this takes a /proc, a free descriptor, and a process of this pid namespace",
            ))),
        }
    }

    /// The identity of the process.
    pub fn id(&self) -> Id {
        self.0.id()
    }

    /// The number. Once the process is reaped, the number may be another's.
    pub fn pid(&self) -> i32 {
        self.0.watched.id().pid()
    }

    /// Whether a thread of it runs or may run: not a zombie. One that is stopped
    /// or dumps its core is alive.
    #[doc(alias = "is_running")]
    #[doc(alias = "poll")]
    pub fn is_alive(&self) -> bool {
        self.0.exit.get().is_none() && !self.0.watched.has_exited()
    }

    /// How it ended, none while it is alive. Never waits, never reaps.
    ///
    /// Known for children of ours until somebody reaps them; for others, while
    /// they are zombies, if we may look into them (the same user, not set-uid);
    /// and, since Linux 6.15, for everybody after they were reaped, while this
    /// holds a pidfd. Otherwise it is [`Exit::Unknown`] with the reason, and may
    /// become known later: ask again.
    pub fn exit(&self) -> Option<Exit> {
        if let Some(exit) = self.0.exit.get() {
            return Some(*exit);
        }
        let exit = match self.0.watched.ending() {
            Ending::Runs => return None,
            Ending::Known(exit) => exit.into(),
            Ending::Zombie => return Some(Exit::Unknown(Unknown::NotReaped)),
            Ending::Forgotten => Exit::Unknown(Unknown::NotTold),
        };
        Some(*self.0.exit.get_or_insert(exit))
    }

    /// Waits until it has ended: [`wait_for`](Process::wait_for) its exit.
    ///
    /// # Errors
    /// As there.
    #[doc(alias = "waitpid")]
    #[doc(alias = "waitid")]
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Result<Option<Exit>, ProcessError> {
        self.wait_for(Event::Exited, timeout)
    }

    /// Waits until it has ended, or until its parent has reaped it, and says how
    /// it ended; none if the timeout came first. Sleeps all the while: no
    /// polling, and no signal handler restarts the time.
    ///
    /// A child of ours is reaped by nobody but us: waiting for that without
    /// doing it takes for ever.
    ///
    /// # Errors
    /// [`ProcessError::System`] when there is no memory or descriptor to wait
    /// with.
    pub fn wait_for(
        &self,
        event: Event,
        timeout: impl Into<Timeout>,
    ) -> Result<Option<Exit>, ProcessError> {
        self.wait_until(event, timeout.into().starting(Instant::now()))
    }

    /// Waits as [`wait_for`](Process::wait_for), until a point in time.
    ///
    /// # Errors
    /// Those of [`wait_for`](Process::wait_for).
    #[doc(hidden)]
    pub fn wait_until(
        &self,
        event: Event,
        deadline: Deadline,
    ) -> Result<Option<Exit>, ProcessError> {
        let over = self.sleep(event, deadline);
        let over = over.map_err(|error| ProcessError::new("wait for", self.id(), error))?;
        // It has ended, even if a second look at it fails just now.
        let exit = || self.exit().unwrap_or(Exit::Unknown(Unknown::NotTold));
        Ok(over.then(exit))
    }

    fn sleep(&self, event: Event, deadline: Deadline) -> io::Result<bool> {
        let pidfd = self.0.watched.pidfd();
        let Some(slept) = pidfd.and_then(|fd| wait::sleep_on(fd, event, deadline)) else {
            return self.sleep_by_set(event, deadline);
        };
        let over = slept?;
        if over {
            Mechanism::Pidfd.served();
        }
        Ok(over)
    }

    fn sleep_by_set(&self, event: Event, deadline: Deadline) -> io::Result<bool> {
        let set = WaitSet::new().and_then(|mut set| {
            set.add(self, event)?;
            Ok(set)
        });
        let mut set = match set {
            Ok(set) => set,
            // No descriptor is left for a set, or for what it needs as well.
            Err(error) => {
                let over =
                    wait::wait_in_thread(&self.0.watched, event, deadline).map_err(|_| error)?;
                if over {
                    Mechanism::OwnTable.served();
                }
                return Ok(over);
            }
        };
        let waited = set.wait_until(Want::All, deadline)?;
        Ok(!waited.ended.is_empty())
    }

    /// The error of a system call about this process.
    #[doc(hidden)]
    pub fn refused(&self, what: &'static str, error: io::Error) -> ProcessError {
        ProcessError::new(what, self.id(), error)
    }

    /// Sends a signal to it, and to no other process whatever became of it.
    ///
    /// # Errors
    /// [`ProcessError::Gone`] if it has ended; `EPERM` if it is another user's.
    #[doc(alias = "kill")]
    #[doc(alias = "send_signal")]
    #[doc(alias = "pidfd_send_signal")]
    pub fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        if !self.is_alive() {
            return Err(ProcessError::Gone(Some(self.id())));
        }
        let sent = self.0.watched.signal(signal);
        sent.map_err(|error| ProcessError::new("signal", self.id(), error))
    }

    /// Ends it as `stop` says, and returns who could not be ended. It blocks for
    /// the grace and 2 seconds at most.
    ///
    /// [`Scope::Group`](super::Scope::Group) means the group that it leads, if it
    /// leads one, and else itself alone. [`Scope::Tree`](super::Scope::Tree)
    /// means it and its descendants; those that were orphaned before are found if
    /// they are in a group or session that a member leads.
    ///
    /// # Errors
    /// [`ProcessError::Gone`] if it has ended; `EPERM` if it is another user's.
    #[doc(alias = "terminate")]
    pub fn stop(&self, stop: Stop) -> Result<Vec<Survivor>, ProcessError> {
        self.stop_and_watch(stop, None)
    }

    /// Stops it as [`stop`](Process::stop) does, and calls `ready` whenever `fd` is
    /// readable: for signals, or to give a person a say. It takes away what made `fd` readable,
    /// and does not block. Its error ends the grace at once: whoever is left is
    /// killed, which takes 2 seconds at most; the first error is given back.
    ///
    /// ```
    /// use procwright_process::Process;
    /// use procwright_process::Stop;
    /// use std::os::fd::AsFd;
    /// use std::time::Duration;
    ///
    /// let mut child = std::process::Command::new("sh")
    ///     .args(["-c", "trap '' TERM; echo; while :; do sleep 9; done"])
    ///     .stdout(std::process::Stdio::piped())
    ///     .spawn()?;
    /// let mut line = [0];
    /// std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line)?;
    /// let (enough, press) = std::io::pipe()?;
    /// drop(press); // as if somebody had pressed it
    /// let (survivors, pressed) = Process::of_child(&child)?.stop_watching(
    ///     Stop::new().with_grace(Duration::from_secs(3600)),
    ///     enough.as_fd(),
    ///     || Err("enough"),
    /// )?;
    /// assert!(survivors.is_empty());
    /// assert_eq!(pressed, Err("enough"));
    /// child.wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`stop`](Process::stop).
    pub fn stop_watching<E>(
        &self,
        stop: Stop,
        fd: BorrowedFd<'_>,
        mut ready: impl FnMut() -> Result<(), E>,
    ) -> Result<(Vec<Survivor>, Result<(), E>), ProcessError> {
        let mut outcome = Ok(());
        let mut ring = || {
            let Err(error) = ready() else { return false };
            if outcome.is_ok() {
                outcome = Err(error);
            }
            true
        };
        let survivors = self.stop_and_watch(stop, Some((fd, &mut ring)))?;
        Ok((survivors, outcome))
    }

    fn stop_and_watch(
        &self,
        stop: Stop,
        beside: Option<WatchedBeside<'_>>,
    ) -> Result<Vec<Survivor>, ProcessError> {
        let gone = || ProcessError::Gone(Some(self.id()));
        let root = match self.0.watched.stat() {
            _ if !self.is_alive() => return Err(gone()),
            Ok(stat) => ProcId::from(&stat),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(gone()),
            Err(_) => self.0.watched.id(),
        };
        if let Err(error) = self.0.watched.may_signal() {
            return Err(ProcessError::new("signal", self.id(), error));
        }
        let target = StopTarget {
            root,
            pipes: Vec::new(),
            session: None,
            orphans: Orphans::Unknown,
        };
        Ok(self.stop_all(stop, target, beside))
    }

    /// Stops the processes of `target`, whose root is this process.
    #[doc(hidden)]
    pub fn stop_all(
        &self,
        stop: Stop,
        target: StopTarget,
        mut beside: Option<WatchedBeside<'_>>,
    ) -> Vec<Survivor> {
        let mut machine = Stopping::begin(stop, target, Some(self.handle()), Instant::now());
        while !machine.finished() {
            let deadline = machine.deadline();
            let theirs = beside.as_ref().map(|(fd, _)| *fd);
            let fds = theirs.into_iter().chain(machine.fd());
            let mut fds: Vec<_> = fds
                .map(|fd| poll::Fd::from_borrowed_fd(fd, poll::Flags::IN))
                .collect();
            // A failed wait is a reason to look, and no more.
            let polled = poll::poll(&mut fds, deadline);
            let rang = polled.is_ok() && fds.first().is_some_and(|fd| !fd.revents().is_empty());
            if let (true, Some((_, ring))) = (rang, &mut beside)
                && ring()
            {
                machine.kill_now(Instant::now());
            }
            machine.step(Instant::now());
        }
        machine.survivors()
    }

    /// A second handle, for a stop or a look. It means this process also when that is reaped.
    #[doc(hidden)]
    pub fn handle(&self) -> ProcessHandle {
        let watched = &self.0.watched;
        // Where no descriptor is left for a second handle, number and start time are.
        watched.duplicate().unwrap_or_else(|_| watched.by_number())
    }

    /// This process by number and start time alone, without a descriptor.
    #[doc(hidden)]
    pub fn by_number(&self) -> Process {
        Process::from(self.0.watched.by_number())
    }

    /// The internal identity, with the start time.
    #[doc(hidden)]
    pub fn proc_id(&self) -> ProcId {
        self.0.watched.id()
    }

    /// The name that it goes by: its program's, cut to 15 bytes, unless it gave
    /// itself another. What is not printable is escaped.
    ///
    /// # Errors
    /// [`ProcessError::Gone`] once it is reaped; `Unsupported` without `/proc`.
    pub fn name(&self) -> Result<String, ProcessError> {
        let stat = self.0.watched.stat();
        let stat = stat.map_err(|error| ProcessError::new("look at", self.id(), error))?;
        Ok(stat.name.to_string())
    }

    /// The file of its program; " (deleted)" stands behind one that is gone.
    ///
    /// # Errors
    /// [`ProcessError::Gone`] once it has ended, `EACCES` for another user's.
    pub fn exe(&self) -> Result<PathBuf, ProcessError> {
        let exe = self.0.watched.exe();
        exe.map_err(|error| ProcessError::new("look at", self.id(), error))
    }

    /// When it was started, by the clock on the wall: to 0.01 s, and wrong by as
    /// much as that clock was set since. For telling people; not to recognise a
    /// process by, for which there is [`Process::id`].
    ///
    /// # Errors
    /// [`ProcessError::Gone`] once it is reaped; `Unsupported` without `/proc`.
    #[doc(alias = "create_time")]
    pub fn start_time(&self) -> Result<SystemTime, ProcessError> {
        let stat = self.0.watched.stat();
        let stat = stat.map_err(|error| ProcessError::new("look at", self.id(), error))?;
        Ok(proc::wall_clock_start(stat.start_ticks))
    }

    /// The pidfd, readable once the process has ended; none where none could be had.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.0.watched.pidfd()
    }

    /// A descriptor that is readable once it has ended, for event loops: the pidfd, or, where it
    /// has ended and has none, as a child that was waited for, one that is readable for good.
    ///
    /// # Errors
    /// `Unsupported` while it is alive and there is no pidfd, which a
    /// [`WaitSet`](crate::wait::WaitSet) can wait for all the same. When no descriptor is left.
    #[doc(alias = "pidfd_open")]
    pub fn readiness(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(fd) = self.pidfd().or_else(|| self.0.rung.get().map(AsFd::as_fd)) {
            return Ok(fd);
        }
        if self.is_alive() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "no pidfd can be had of this process",
            ));
        }
        let rung = Wake::new()?;
        rung.ring();
        Ok(self.0.rung.get_or_insert(rung).as_fd())
    }

    /// This process without its descriptor, once that serves nobody any more: it is reaped, its
    /// end is known, and a group that it has led, which a stop finds by the descriptor, has no
    /// member left. None before, and where it has no descriptor.
    #[doc(hidden)]
    pub fn without_pidfd(&self) -> Option<Process> {
        let fd = self.pidfd()?;
        let exit = *self.0.exit.get()?;
        // Whoever may not be signalled is there, too.
        let has_group = match pidfd::send_group(fd, 0) {
            Ok(()) => true,
            Err(error) => Errno::from_io_error(&error) == Some(Errno::PERM),
        };
        if has_group || !self.0.watched.is_reaped() {
            return None;
        }
        let without = Process::from(self.0.watched.reaped());
        without.0.exit.get_or_insert(exit);
        Some(without)
    }

    /// Waits until the zombies among `ended` whose status can be known only after their
    /// parent has reaped them are reaped: 10 ms at most for all together, so that a
    /// parent that does not reap holds up no caller.
    pub fn linger<'a>(ended: impl IntoIterator<Item = &'a Process>) {
        let deadline = Deadline::at(Instant::now() + LINGER);
        for process in ended {
            if process.exit() == Some(Exit::Unknown(Unknown::NotReaped))
                && let Some(fd) = process.pidfd()
                && pidfd::hangs_up_on_reap(fd)
            {
                let _ = sys::await_reap(fd, deadline);
            }
        }
    }
}

/// Ten times what a parent usually takes to reap.
const LINGER: std::time::Duration = std::time::Duration::from_millis(10);

impl Inner {
    fn id(&self) -> Id {
        Id::of(self.watched.id())
    }
}

impl Holder {
    /// The process, to signal it, to stop it or to wait for its end. It is the one that held
    /// the pipe, whoever has its number now.
    ///
    /// ```
    /// # use procwright_process::{ProcessError, holders::Holder};
    /// fn end_them(held_by: &[Holder]) -> Result<(), ProcessError> {
    ///     for holder in held_by {
    ///         match holder.process() {
    ///             Ok(process) => drop(process.stop(Default::default())?),
    ///             Err(ProcessError::Gone(_)) => {} // it has ended
    ///             Err(error) => return Err(error),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ProcessError::Gone`] if it has ended; else as [`Process::open`].
    pub fn process(&self) -> Result<Process, ProcessError> {
        match self.id {
            Some(id) => Process::open_exact(id),
            // It has ended, or let go of the pipe, while it was looked at.
            None => Err(ProcessError::Gone(Some(Id::new(self.pid, None)?))),
        }
    }
}

#[doc(hidden)]
impl From<ProcessHandle> for Process {
    fn from(watched: ProcessHandle) -> Process {
        Process(Arc::new(Inner {
            watched,
            exit: OnceBox::new(),
            rung: OnceBox::new(),
        }))
    }
}

impl Waitable for Process {
    fn awaits(&self) -> Awaits<'_> {
        Awaits::process(&self.0.watched)
    }
}

impl PartialEq for Process {
    fn eq(&self, other: &Process) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.watched.id() == other.0.watched.id()
    }
}

impl Eq for Process {}
