//! Waits for a child.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use super::child::Child;
use crate::error::BoxError;
use crate::stream::{Patience, StallCheck, Stalled};
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::{Deadline, Timeout};
use procwright_os::wake::Wake;
use procwright_process::wait::{Awaits, Event, WaitSet, Waitable, Want};
use procwright_process::{Exit, Process, ProcessError};

/// Why a wait for a child has ended before the child and before its time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The child cannot go on: its output is full and not read.
    #[error(transparent)]
    Stalled(#[from] Stalled),
    /// The system refuses to let us wait.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The iterator or reader that its stdin comes from has failed, so it was
    /// stopped, and has ended. Told once; the next wait has how it ended.
    #[error("what the child was to read from its stdin failed, and it was stopped: {0}")]
    Stdin(#[source] BoxError),
    /// A copy of its output has failed ([`tee_to`](crate::Command::tee_to) and its like), and got
    /// no more from there on. Told once; the next wait has how it ended.
    #[error("a copy of the child's output has failed, and is not whole: {0}")]
    Copy(#[source] BoxError),
    /// The patience has been interrupted. The wait may be taken up again.
    #[error("interrupted while waiting for the child")]
    Interrupted,
}

/// What a look at a child has found.
#[derive(Clone, Copy)]
enum Look<'a> {
    Alive,
    /// It has ended, and the rest of its processes is being ended for a limit: readable once
    /// that is over.
    BeingStopped(BorrowedFd<'a>),
    Ended(Exit),
}

/// A wait for a child, or for room in its stdin, by an event loop: it never blocks. See
/// [`Child::wait_step`].
#[derive(Debug)]
pub struct ChildWait {
    stall: StallCheck,
    ring: Option<Arc<Wake>>,
}

/// What a [`ChildWait`] sleeps on: an event loop looks again when one of the descriptors is
/// readable, or at the time.
#[derive(Debug)]
pub struct ChildSleep<'a> {
    /// Whether the end of the child's process ends the sleep.
    pub is_for_process: bool,
    /// Descriptors that are readable when there is something to look at.
    pub readable: Vec<BorrowedFd<'a>>,
    /// When to look again in any case.
    pub until: Deadline,
}

impl Child {
    /// Begins a wait that an event loop takes step by step: for the child's end, or if it is
    /// `writing`, for room in its stdin.
    pub fn begin_wait(&self, writing: bool) -> ChildWait {
        let now = Instant::now();
        ChildWait {
            stall: match writing {
                true => StallCheck::writing(self.watch(), now),
                false => StallCheck::waiting(self.watch(), now),
            },
            ring: None,
        }
    }

    /// How it ended, as [`wait`](Child::wait) tells, none while that is not over. Never blocks.
    ///
    /// An event loop asks, sleeps on what [`wait_sleep`](Child::wait_sleep) says, and asks again:
    ///
    /// ```
    /// use procwright::wait::{Awaits, Event, Waitable, Want};
    /// use procwright::{Command, WaitSet};
    /// use std::os::fd::BorrowedFd;
    ///
    /// struct News<'a>(BorrowedFd<'a>);
    ///
    /// impl Waitable for News<'_> {
    ///     fn awaits(&self) -> Awaits<'_> {
    ///         Awaits::readable(self.0)
    ///     }
    /// }
    ///
    /// let child = Command::new("true").spawn()?;
    /// let mut wait = child.begin_wait(false);
    /// let exit = loop {
    ///     if let Some(exit) = child.wait_step()? {
    ///         break exit;
    ///     }
    ///     let sleep = child.wait_sleep(&mut wait)?;
    ///     let mut set: WaitSet<Box<dyn Waitable + '_>> = WaitSet::new()?;
    ///     if sleep.is_for_process {
    ///         set.add(Box::new(child.process()), Event::Exited)?;
    ///     }
    ///     for fd in sleep.readable {
    ///         set.add(Box::new(News(fd)), Event::Exited)?;
    ///     }
    ///     set.wait_until(Want::Any, sleep.until)?;
    /// };
    /// assert!(exit.success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError::Stdin`] and [`WaitError::Copy`], once.
    pub fn wait_step(&self) -> Result<Option<Exit>, WaitError> {
        match self.look()? {
            Look::Ended(exit) => {
                let at_once = Patience::until(Deadline::at(Instant::now()));
                Ok(self.settle_copies(&at_once)?.then_some(exit))
            }
            Look::Alive | Look::BeingStopped(_) => Ok(None),
        }
    }

    /// What to sleep on before the next [`wait_step`](Child::wait_step).
    ///
    /// # Errors
    /// [`WaitError::Stalled`], as [`wait`](Child::wait).
    pub fn wait_sleep<'a>(&'a self, wait: &'a mut ChildWait) -> Result<ChildSleep<'a>, WaitError> {
        // Not by `look`, which may tell an error that is for the next step.
        if self.try_wait().is_some() {
            let behind = |over, until| ChildSleep {
                is_for_process: false,
                readable: vec![over],
                until,
            };
            if let Some(over) = self.shared().limit_stop_under_way() {
                return Ok(behind(over, Deadline::NEVER));
            }
            if let Some(copies) = self.shared().copies() {
                return Ok(behind(copies.ended(), Deadline::at(copies.quiet_at())));
            }
        }
        let next = wait
            .stall
            .check(Instant::now())
            .inspect_err(|stalled| self.trace_stall(stalled))?;
        wait.ring = next.ring;
        Ok(ChildSleep {
            is_for_process: true,
            readable: wait.ring.as_deref().map(AsFd::as_fd).into_iter().collect(),
            until: next.at,
        })
    }

    fn trace_stall(&self, stalled: &Stalled) {
        self.shared().trace().say(|| format!("stalled: {stalled}"));
    }

    fn look(&self) -> Result<Look<'_>, WaitError> {
        let exit = self.try_wait();
        // Asked afterwards: a stop that has ended the child is under way before that.
        match (exit, self.shared().limit_stop_under_way()) {
            (Some(exit), None) => match self.shared().take_failure() {
                Some(error) => Err(WaitError::Stdin(error)),
                None => Ok(Look::Ended(exit)),
            },
            (Some(_), Some(over)) => Ok(Look::BeingStopped(over)),
            (None, _) => Ok(Look::Alive),
        }
    }

    /// Waits until it has ended, and reaps it as [`try_wait`](Child::try_wait) does; none
    /// if the timeout came first.
    /// Waits for the exit alone: what it wrote can be read afterwards. If it has copies
    /// ([`Command::tee`](crate::Command::tee) and its like), until these have it, too; where other
    /// processes hold its outputs, until nothing has come for a second. If it was stopped for
    /// a limit ([`Command::timeout`](crate::Command::timeout) and its like), until all of its
    /// processes are stopped; [`report`](Child::report) says so.
    ///
    /// # Blocking
    /// Until then. Sleeps all the while, unless its output is a bare pipe: whether that
    /// is full is asked as often as [`Command::stall_after`] says.
    ///
    /// # Errors
    /// [`WaitError::Stalled`] if for that long it could not go on because no read of
    /// what it wrote has begun, [`WaitError::Process`] as
    /// [`Process::wait`], [`WaitError::Stdin`] if it was stopped because its input
    /// failed, [`WaitError::Copy`] if a copy has.
    ///
    /// ```
    /// use procwright::{Command, Overflow, WaitError};
    /// use std::time::Duration;
    ///
    /// let child = Command::new("head")
    ///     .args(["-c", "1000000", "/dev/zero"])
    ///     .stall_after(Duration::from_millis(20))
    ///     .spawn_with(Overflow::Block { memory: 65536 })?;
    /// let Err(WaitError::Stalled(stalled)) = child.wait(None) else {
    ///     panic!("who has read it?");
    /// };
    /// assert_eq!(stalled.streams[0].name, "stdout");
    /// drop(child.stdout); // that nobody wants it is an answer as well
    /// # Ok::<(), procwright::Error>(())
    /// ```
    ///
    /// [`Command::stall_after`]: crate::Command::stall_after
    #[doc(alias = "waitpid")]
    #[doc(alias = "waitid")]
    pub fn wait(&self, timeout: impl Into<Timeout>) -> Result<Option<Exit>, WaitError> {
        self.wait_with(Patience::from(timeout))
    }

    /// Waits as [`wait`](Child::wait) does, with a patience that something else may end.
    ///
    /// # Blocking
    /// As [`wait`](Child::wait).
    ///
    /// # Errors
    /// As there; [`WaitError::Interrupted`] when the patience says so.
    pub fn wait_with(&self, patience: Patience<'_>) -> Result<Option<Exit>, WaitError> {
        let mut stall = StallCheck::waiting(self.watch(), Instant::now());
        loop {
            let look = self.look()?;
            if let Look::Ended(exit) = look {
                return Ok(self.settle_copies(&patience)?.then_some(exit));
            }
            let now = Instant::now();
            if patience.deadline().reached(now) {
                return Ok(None);
            }
            if let Look::BeingStopped(over) = look {
                // Its processes are being ended, and what came of that belongs to its end.
                if sleep_for([patience.interrupt(), Some(over)], patience.deadline()) {
                    return Err(WaitError::Interrupted);
                }
                continue;
            }
            let next = stall
                .check(now)
                .inspect_err(|stalled| self.trace_stall(stalled))?;
            let until = patience.deadline().min(next.at);
            let ring = next.ring.as_deref().map(AsFd::as_fd);
            let beside = [ring, patience.interrupt()];
            if self.sleep(beside, until)? {
                stall.interrupted(Instant::now());
                return Err(WaitError::Interrupted);
            }
        }
    }

    /// Waits until its copies have what has come of its outputs; false if the patience is over
    /// before.
    fn settle_copies(&self, patience: &Patience<'_>) -> Result<bool, WaitError> {
        let Some(copies) = self.shared().copies() else {
            return Ok(true);
        };
        let are_settled = copies
            .settle(patience)
            .map_err(|_| WaitError::Interrupted)?;
        match copies.take_failure() {
            Some(error) => Err(WaitError::Copy(error)),
            None => Ok(are_settled),
        }
    }

    /// Sleeps until it has ended, one of `beside` is readable or the deadline has come.
    /// True if the second of `beside`, the interrupt, is readable.
    fn sleep(
        &self,
        beside: [Option<BorrowedFd<'_>>; 2],
        until: Deadline,
    ) -> Result<bool, ProcessError> {
        let process = self.process();
        let Some(pidfd) = process.pidfd() else {
            return sleep_in_set(&process, beside, until);
        };
        let [ring, interrupt] = beside;
        let fds = [interrupt, Some(pidfd), ring].into_iter().flatten();
        let mut fds: Vec<_> = fds.map(|fd| Fd::from_borrowed_fd(fd, Flags::IN)).collect();
        match poll::poll(&mut fds, until) {
            // A signal handler has run. A host that wants to know passes an interrupt.
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(process.refused("wait for", error)),
            Ok(_) => Ok(interrupt.is_some() && !fds[0].revents().is_empty()),
        }
    }
}

/// Sleeps until one of `fds` is readable or the deadline has come. True if the first is.
fn sleep_for(fds: [Option<BorrowedFd<'_>>; 2], until: Deadline) -> bool {
    let [interrupt, other] = fds;
    let fds = [interrupt, other].into_iter().flatten();
    let mut fds: Vec<_> = fds.map(|fd| Fd::from_borrowed_fd(fd, Flags::IN)).collect();
    // A failed wait is a reason to look, and no more.
    let polled = poll::poll(&mut fds, until);
    polled.is_ok() && interrupt.is_some() && !fds[0].revents().is_empty()
}

/// [`Child::sleep`] where there is no pidfd.
fn sleep_in_set(
    process: &Process,
    beside: [Option<BorrowedFd<'_>>; 2],
    until: Deadline,
) -> Result<bool, ProcessError> {
    enum Awaited<'a> {
        Process(&'a Process),
        Ring(BorrowedFd<'a>),
        Interrupt(BorrowedFd<'a>),
    }
    impl Waitable for Awaited<'_> {
        fn awaits(&self) -> Awaits<'_> {
            match self {
                Awaited::Process(process) => process.awaits(),
                Awaited::Ring(fd) | Awaited::Interrupt(fd) => Awaits::readable(*fd),
            }
        }
    }
    let [ring, interrupt] = beside;
    let wait = || {
        let mut set = WaitSet::new()?;
        set.add(Awaited::Process(process), Event::Exited)?;
        let beside = [ring.map(Awaited::Ring), interrupt.map(Awaited::Interrupt)];
        for member in beside.into_iter().flatten() {
            set.add(member, Event::Exited)?;
        }
        let waited = set.wait_until(Want::Any, until)?;
        let mut ended = waited.ended.iter();
        Ok(ended.any(|(_, member)| matches!(member, Awaited::Interrupt(_))))
    };
    match wait() {
        // No descriptor is left for a set. A wait for the process alone needs none.
        Err(_) if interrupt.is_none() => process.wait_until(Event::Exited, until).map(|_| false),
        waited => waited.map_err(|error| process.refused("wait for", error)),
    }
}
