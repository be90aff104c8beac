//! A process that this one has started, and reaps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use super::foreground::ForegroundTerminal;
use crate::trace::Trace;
use procwright_os::oom::{OomCount, OomKills};
use procwright_os::spawn::Spawned;
use procwright_os::time::Deadline;
use procwright_os::wait::{self, RawExit, Usage};
use procwright_os::{pidfd, poll, proc};
use procwright_process::proc_id::ProcId;
use procwright_process::process_handle::ProcessHandle;
use procwright_process::{Exit, Process, Signal, Unknown, leader, reaper};

/// How a child has ended and what it has used, none while it runs.
type EndOfChild = Option<(RawExit, Usage)>;

/// A child of this process, until it is reaped.
///
/// The pid cannot be reused before the process is reaped, and only this reaps it.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    pid: i32,
    /// The session that it was started in, where that is certain.
    session: Option<i32>,
    /// The pidfd; none once the process is reaped, and in drop. Results are kept for long,
    /// and should hold no descriptor.
    pidfd: Option<OwnedFd>,
    parent_peak: u64,
    /// Our terminal, until the program that it was lent to has ended.
    foreground: Option<ForegroundTerminal>,
    ended: Option<(Exit, Option<Usage>)>,
    /// What its cgroup had counted at its start.
    oom_count: Option<OomCount>,
    /// What it has counted since, of one that was killed.
    oom_kills: Option<OomKills>,
    /// The time at which it was found to have ended.
    seen: Option<Instant>,
    /// Whether a caller has it, who may drop it at any time.
    handed_out: bool,
    /// Whether it may be dropped without being ended: no call was left half way.
    attended: bool,
    /// Whether it keeps its number when it has ended: a stop under way goes by that.
    keeps_number: bool,
    trace: Trace,
}

impl ChildProcess {
    /// A process that was just started in `session`. `foreground` is the terminal that it was
    /// lent, `oom_count` what its cgroup had counted until then.
    pub(super) fn new(
        spawned: Spawned,
        session: Option<i32>,
        foreground: Option<ForegroundTerminal>,
        oom_count: Option<OomCount>,
        trace: Trace,
    ) -> ChildProcess {
        ChildProcess {
            pid: spawned.pid,
            session,
            pidfd: Some(spawned.pidfd),
            parent_peak: spawned.parent_peak,
            foreground,
            ended: None,
            oom_count,
            oom_kills: None,
            seen: None,
            handed_out: false,
            attended: true,
            keeps_number: false,
            trace,
        }
    }

    /// Notes that a caller has it: it is not killed when it is dropped in a panic.
    pub(crate) fn hand_out(mut self) -> ChildProcess {
        self.handed_out = true;
        self
    }

    /// Says whether it may be dropped without being ended.
    pub(crate) fn attend(&mut self, attended: bool) {
        self.attended = attended;
    }

    /// Says whether it keeps its number when it has ended, until this is taken back.
    pub(super) fn keep_number(&mut self, keeps: bool) {
        self.keeps_number = keeps;
    }

    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn session(&self) -> Option<i32> {
        self.session
    }

    pub(crate) fn trace(&self) -> Trace {
        self.trace
    }

    /// A handle to the process, which asks about it and does not reap it. To be had at its
    /// start: the number of one that was reaped may be a stranger's.
    pub(super) fn process(&self) -> Process {
        // The process is not reaped, so the number is its own.
        let id = match proc::stat(self.pid) {
            Ok(stat) => ProcId::from(&stat),
            Err(_) => ProcId::unread(self.pid, 0),
        };
        Process::from(self.handle(id))
    }

    /// A handle for a stop. `id` was read of the process while its number was its own.
    pub(crate) fn handle(&self, id: ProcId) -> ProcessHandle {
        // A handle without a descriptor goes by number and start, as that of any process.
        let pidfd = self.pidfd().and_then(|fd| fd.try_clone_to_owned().ok());
        ProcessHandle::child(id, pidfd)
    }

    /// Whether the process has ended, reaped or not.
    pub(crate) fn has_exited(&self) -> bool {
        let Some(pidfd) = self.pidfd() else {
            return true;
        };
        let mut fds = [poll::Fd::from_borrowed_fd(pidfd, poll::Flags::IN)];
        poll::poll(&mut fds, Deadline::at(Instant::now())).is_ok_and(|ready| ready > 0)
    }

    /// A descriptor that is readable once the process has ended; none once it is reaped.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Notes whether the process has ended. It is reaped then, unless it is being
    /// stopped, or processes of its group or session are left: while it is a zombie its
    /// number stays its own, and a stop finds them by that.
    pub(crate) fn note_end(&mut self) -> bool {
        if self.ended.is_some() {
            return true;
        }
        match self.has_exited() && (self.keeps_number || leader::leads_others(self.pid)) {
            true => self.note(wait::peek_usage),
            false => self.collect(),
        }
    }

    /// Reaps the process if it has ended. No other code does.
    #[doc(alias = "waitid")]
    pub(crate) fn collect(&mut self) -> bool {
        let has_ended = self.note(wait::reap);
        // Its end may have been noted before it was reaped.
        if has_ended && let Some(pidfd) = self.pidfd.take() {
            let _ = wait::reap(self.pid, pidfd.as_fd());
        }
        has_ended
    }

    /// Notes what `ask` tells of the end, unless that is known.
    fn note(&mut self, ask: impl FnOnce(i32, BorrowedFd<'_>) -> io::Result<EndOfChild>) -> bool {
        if self.ended.is_some() {
            return true;
        }
        let Some(pidfd) = &self.pidfd else {
            return false;
        };
        self.ended = match ask(self.pid, pidfd.as_fd()) {
            Ok(None) => return false,
            Ok(Some((exit, usage))) => Some((exit.into(), Some(usage))),
            // ECHILD: other code of this process has reaped it, or the kernel itself
            // because the host ignores SIGCHLD. A pidfd still knows, on Linux 6.15.
            Err(_) => {
                let exit = wait::exit_info(pidfd.as_fd())
                    .map_or(Exit::Unknown(Unknown::ReapedElsewhere), Exit::from);
                Some((exit, None))
            }
        };
        self.seen = Some(Instant::now());
        self.note_oom_kills();
        // A run traces its own end, which is more than that of its program.
        if let (true, Some((exit, _))) = (self.handed_out, self.ended) {
            self.trace.end("", exit);
        }
        self.take_terminal();
        true
    }

    /// Takes the terminal back once the program has ended, reaped or not: processes that
    /// it left in its group must not keep it.
    pub(crate) fn take_terminal(&mut self) {
        self.foreground = None;
    }

    /// The time at which it was found to have ended, none before.
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

    /// Asks its cgroup, if it was killed as the kernel kills for want of memory: itself, or the
    /// last command of a shell.
    fn note_oom_kills(&mut self) {
        let exit = self.ended.map(|(exit, _)| exit);
        let is_killed = match exit {
            Some(Exit::Signal { signal, .. }) => signal == Signal::KILL,
            Some(Exit::Code(code)) => code == 128 + Signal::KILL.number(),
            _ => false,
        };
        if is_killed {
            self.oom_kills = match &self.oom_count {
                Some(count) => count.kills_since(),
                None => {
                    OomCount::forget_own_cgroup();
                    None
                }
            };
        }
    }

    /// The processes that the kernel has killed in its cgroup while it ran, for want of memory,
    /// if it was killed like that itself; none if that is not known.
    pub(crate) fn oom_kills(&self) -> Option<&OomKills> {
        self.oom_kills.as_ref()
    }

    /// How it ended, and what it used where that is known.
    pub(crate) fn ended(&self) -> Option<(Exit, Option<Usage>)> {
        self.ended
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let Some(pidfd) = self.pidfd.take() else {
            return;
        };
        if self.ended.is_none() {
            // A hook of the caller's has panicked, so no code is left that would stop it.
            // The panic may have been caught since: then `attended` still tells.
            if (std::thread::panicking() || !self.attended) && !self.handed_out {
                let _ = pidfd::send(pidfd.as_fd(), Signal::KILL.number());
            }
            self.trace
                .say(|| "dropped before its end, and reaped in the background");
        }
        // One whose end was seen is a zombie, which this reaps at once.
        reaper::adopt(self.pid, pidfd);
    }
}
