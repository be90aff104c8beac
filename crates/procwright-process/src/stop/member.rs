//! What a stop has done to one process.

use std::io;

use rustix::io::Errno;

use super::last_started::LastStarted;
use crate::Signal;
use crate::tree::Member;
use procwright_os::proc;
use procwright_os::ready::{Interest, ReadySet};

/// What was sent to a member, and how its end is noticed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The moment before the first signal was sent: what it has started since is its answer.
    pub(super) signalled: Option<LastStarted>,
    /// SIGSTOP was sent by this stop; SIGKILL has to follow.
    pub(super) frozen: bool,
    pub(super) killed: bool,
    /// SIGKILL could not be sent, though the process is there: what it takes was short.
    pub(super) kill_failed: bool,
    /// The system refuses signals from this process, and will.
    pub(super) denied: bool,
    /// The pidfd is in the ready set.
    pub(super) polled: bool,
}

impl Progress {
    /// That of a member which was just found, in its place.
    pub(super) fn begin(ready: Option<&ReadySet>, place: usize, member: &Member) -> Progress {
        let polled = match (ready, member.handle.pidfd()) {
            (Some(ready), Some(fd)) if !member.gone => {
                ready.add(fd, place as u64, Interest::Read).is_ok()
            }
            _ => false,
        };
        Progress {
            polled,
            ..Progress::default()
        }
    }

    /// Sends SIGSTOP, once.
    pub(super) fn freeze(&mut self, member: &Member) {
        if member.gone || self.denied || self.killed || self.frozen {
            return;
        }
        let sent = member.handle.signal(Signal::STOP);
        self.denied = is_denied(&sent);
        self.frozen = sent.is_ok();
    }

    /// Whether the end of the member is worth a wait.
    pub(super) fn awaits(&self, member: &Member) -> bool {
        !member.gone && !self.denied
    }
}

/// Whether a signal could not be sent because the process is gone.
pub(super) fn found_none(sent: &io::Result<()>) -> bool {
    let gone = [Errno::SRCH, Errno::NOENT];
    matches!(sent, Err(e) if Errno::from_io_error(e).is_some_and(|errno| gone.contains(&errno)))
}

/// Whether a signal was refused for good: EPERM, and whatever a seccomp filter answers. Not
/// where the process is gone, or something was short that may be had later.
pub(super) fn is_denied(sent: &io::Result<()>) -> bool {
    const PASSING: [Errno; 5] = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::AGAIN,
        Errno::INTR,
    ];
    let passes = |errno| PASSING.contains(&errno);
    matches!(sent, Err(e) if !found_none(sent) && !Errno::from_io_error(e).is_some_and(passes))
}

/// Whether a member cannot fork any more, by its state in the latest survey.
pub(super) fn stands_still(member: &Member) -> bool {
    match member.state {
        // The letter is that of the first thread; another may still be in a fork.
        'T' | 't' => proc::threads_stopped(member.pid()).unwrap_or(true),
        'D' | 'Z' | 'X' | 'x' => true,
        _ => false,
    }
}
