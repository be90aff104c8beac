//! Starting a program from a [`Spec`].

#[cfg(not(procwright_loom))]
mod channel;
mod communicate;
mod core;
mod feed;
mod front;
mod heirloom;
mod living;
mod prepare;
mod spawner;
mod stdio;
mod streams;
mod waiting;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use crate::error::{Invalid, SpawnError};
use crate::heirloom::Heirloom;
use crate::ident::{ProcId, Watched};
use crate::process::{Exit, Process, Signal, Unknown, reaper};
use crate::spec::{Spec, quote};
use crate::sys::spawn::Action;
use crate::sys::wait::{self, Usage};
use crate::sys::{pidfd, poll, proc};
use crate::time::Deadline;
use crate::trace::Trace;
use front::Front;
use heirloom::Heirlooms;

pub use communicate::Communication;
pub(crate) use feed::Producer;
pub use living::Child;
pub(crate) use living::spawn;
pub(crate) use stdio::{OurEnds, OutputEnd, TerminalEnd};
pub(crate) use streams::Listener;
pub use waiting::WaitError;

/// Why a program did not start.
#[derive(Debug)]
pub(crate) enum Unstarted {
    Invalid(Invalid),
    Spawn(SpawnError),
}

impl From<Invalid> for Unstarted {
    fn from(invalid: Invalid) -> Unstarted {
        Unstarted::Invalid(invalid)
    }
}

impl From<SpawnError> for Unstarted {
    fn from(error: SpawnError) -> Unstarted {
        Unstarted::Spawn(error)
    }
}

/// Finds what is wrong in `spec` as far as starting it goes.
pub(crate) fn check(spec: &Spec) -> Result<(), Unstarted> {
    prepare::Template::new(spec).map(drop)
}

/// Starts the program of `spec`, with a pipe for stdin if `feeds`. Calls `now`
/// when everything is open, which may have taken its time, and nothing is left
/// to do but to start it. `channel` is the program's end of one.
pub(crate) fn start(
    spec: &Spec,
    feeds: bool,
    channel: Option<Heirloom>,
    trace: Trace,
    now: impl FnOnce(),
) -> Result<(Running, OurEnds), Unstarted> {
    let started = start_untold(spec, feeds, channel, trace, now);
    trace.say(|| {
        let command = quote(&spec.argv);
        match &started {
            Ok((running, _)) => format!("start pid {}: {command}", running.pid),
            Err(Unstarted::Invalid(error)) => format!("not started, {command}: {error}"),
            Err(Unstarted::Spawn(error)) => {
                let error = error.to_string();
                // What to do about it is below the first line, and this is one.
                let fact = error.lines().next().unwrap_or_default();
                format!("not started, {command}: {fact}")
            }
        }
    });
    started
}

fn start_untold(
    spec: &Spec,
    feeds: bool,
    channel: Option<Heirloom>,
    trace: Trace,
    now: impl FnOnce(),
) -> Result<(Running, OurEnds), Unstarted> {
    let template = prepare::Template::new(spec)?;
    let ends = stdio::open(spec, feeds)?;
    let front = Front::of(spec);
    let terminal = match ends.terminal() {
        Some(own) => Some(Action::ControllingTerminal(own)),
        None => front.as_ref().map(Front::action),
    };
    let heirlooms = Heirlooms::new(spec, channel);
    let mut placements = ends.placements.clone();
    placements.extend(heirlooms.placements());
    let plan = template.plan(spec, &placements, terminal, heirlooms.told()?);
    now();
    let spawned = if spec.die_with_parent.is_some() {
        spawner::spawn(plan)
    } else {
        prepare::spawn(&plan)
    };
    let spawned = spawned.map_err(|error| prepare::hint(error, spec))?;
    // Had it failed, the terminal would be ours again by now.
    let front = front.map(|front| front.lent_to(spawned.pid));
    // The child's ends are closed here, with `ends`: from now on the end of a
    // stream, or that nobody has a place at a queue any more, means that the program
    // and its heirs have closed it.
    Ok((
        Running {
            pid: spawned.pid,
            pidfd: Some(spawned.pidfd),
            parent_peak: spawned.parent_peak,
            front,
            ended: None,
            seen: None,
            handed_out: false,
            attended: true,
            trace,
        },
        ends.ours,
    ))
}

/// A child of ours, until it is reaped.
///
/// Its pid cannot be reused while this has not reaped it, and this is the only
/// thing that does.
#[derive(Debug)]
pub(crate) struct Running {
    pid: i32,
    /// None once it was reaped, and in drop: results are kept for long.
    pidfd: Option<OwnedFd>,
    parent_peak: u64,
    /// The terminal, until the program that it was handed to has ended.
    front: Option<Front>,
    ended: Option<(Exit, Option<Usage>)>,
    /// When it was found to have ended.
    seen: Option<Instant>,
    /// It is a caller's, who may drop it as he likes.
    handed_out: bool,
    /// Nobody has left it in the middle of something.
    attended: bool,
    trace: Trace,
}

impl Running {
    /// From now on a panic of whoever drops it is none of its business.
    pub(crate) fn hand_out(mut self) -> Running {
        self.handed_out = true;
        self
    }

    /// Whether nobody has to end it if it is dropped now.
    pub(crate) fn attend(&mut self, attended: bool) {
        self.attended = attended;
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn trace(&self) -> Trace {
        self.trace
    }

    /// The same process, for whoever asks about it and does not reap.
    pub(crate) fn process(&self) -> Process {
        // Without a descriptor it gets on by its number, as any other.
        let pidfd = self.pidfd().and_then(|fd| fd.try_clone_to_owned().ok());
        // Not reaped, so that the number is its own.
        let id = match proc::stat(self.pid) {
            Ok(stat) => ProcId::from(&stat),
            Err(_) => ProcId::unread(self.pid, 0),
        };
        Process::from(Watched::child(id, pidfd))
    }

    /// Whether the process has ended, reaped or not.
    pub(crate) fn has_exited(&self) -> bool {
        let Some(pidfd) = self.pidfd() else {
            return true;
        };
        let mut fds = [poll::Fd::from_borrowed_fd(pidfd, poll::Flags::IN)];
        poll::poll(&mut fds, Deadline::at(Instant::now())).is_ok_and(|ready| ready > 0)
    }

    /// Readable once the process has ended; none once it is reaped.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        match self.ended {
            None => self.pidfd.as_ref().map(AsFd::as_fd),
            Some(_) => None,
        }
    }

    /// Reaps the process if it has ended. The only place that does.
    pub(crate) fn collect(&mut self) -> bool {
        if self.ended.is_some() {
            return true;
        }
        let Some(pidfd) = &self.pidfd else {
            return false;
        };
        self.ended = match wait::reap(pidfd.as_fd()) {
            Ok(None) => return false,
            Ok(Some((exit, usage))) => Some((exit.into(), Some(usage))),
            // ECHILD: somebody else has it, or the kernel itself because the
            // host ignores SIGCHLD. A pidfd still knows, on Linux 6.15.
            Err(_) => {
                let exit = wait::exit_info(pidfd.as_fd())
                    .map_or(Exit::Unknown(Unknown::ReapedElsewhere), Exit::from);
                Some((exit, None))
            }
        };
        self.seen = Some(Instant::now());
        self.pidfd = None;
        // The end of a run is more than that, and told by it.
        if let (true, Some((exit, _))) = (self.handed_out, self.ended) {
            self.trace.end("", exit);
        }
        self.take_terminal();
        true
    }

    /// The program has ended, reaped or not: what it leaves in its group shall
    /// not keep the terminal.
    pub(crate) fn take_terminal(&mut self) {
        self.front = None;
    }

    /// When it was found to have ended, none before.
    pub(crate) fn seen(&self) -> Option<Instant> {
        self.seen
    }

    /// Its peak of resident memory in bytes, none if that is not known: the
    /// kernel's figure begins with ours, so only a larger one is the child's.
    pub(crate) fn max_rss(&self) -> Option<u64> {
        let (_, usage) = self.ended?;
        usage
            .map(|usage| usage.max_rss)
            .filter(|&peak| peak > self.parent_peak)
    }

    /// How it ended, and what it used where that is known.
    pub(crate) fn ended(&self) -> Option<(Exit, Option<Usage>)> {
        self.ended
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none()
            && let Some(pidfd) = self.pidfd.take()
        {
            // A hook of the caller's has panicked: nobody is left to stop it. That may
            // have been caught since.
            if (std::thread::panicking() || !self.attended) && !self.handed_out {
                let _ = pidfd::send(pidfd.as_fd(), Signal::KILL.number());
            }
            self.trace
                .say(|| "dropped before its end, and reaped in the background");
            reaper::adopt(pidfd);
        }
    }
}

/// A duplicate of the descriptor that has this number, for hosts in whose
/// language a descriptor is a number. It is close-on-exec.
///
/// # Errors
/// `EBADF` if there is none of that number, `EMFILE` if no more can be had.
pub fn duplicate_fd(number: std::os::fd::RawFd) -> std::io::Result<std::os::fd::OwnedFd> {
    crate::sys::fd::duplicate(number)
}
