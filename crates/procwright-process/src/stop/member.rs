//! One process of a stop: what was sent to it, and whether it is gone.

use std::io;

use rustix::io::Errno;

use crate::Signal;
use crate::process_handle::ProcessHandle;
use procwright_os::proc::{self, Comm};
use procwright_os::ready::{Interest, ReadySet};

#[derive(Debug)]
pub(super) struct StopMember {
    pub(super) watched: ProcessHandle,
    pub(super) name: Comm,
    pub(super) state: char,
    pub(super) gone: bool,
    /// The first signal was sent.
    pub(super) signalled: bool,
    /// SIGSTOP was sent by this stop; SIGKILL has to follow.
    pub(super) frozen: bool,
    pub(super) killed: bool,
    /// The system refuses signals from this process (EPERM).
    pub(super) denied: bool,
    /// The pidfd is in the ready set.
    pub(super) polled: bool,
}

impl StopMember {
    /// Sends SIGSTOP, once.
    pub(super) fn freeze(&mut self) {
        if self.gone || self.denied || self.killed || self.frozen {
            return;
        }
        let sent = self.watched.signal(Signal::STOP);
        self.denied = is_denied(&sent);
        self.frozen = sent.is_ok();
    }

    /// Whether its end is worth a wait.
    pub(super) fn pending(&self) -> bool {
        !self.gone && !self.denied
    }
}

pub(super) fn add(
    members: &mut Vec<StopMember>,
    ready: Option<&ReadySet>,
    watched: ProcessHandle,
    name: Comm,
    state: char,
) {
    let polled = match (ready, watched.pidfd()) {
        (Some(ready), Some(fd)) => ready.add(fd, members.len() as u64, Interest::Read).is_ok(),
        _ => false,
    };
    members.push(StopMember {
        watched,
        name,
        state,
        gone: false,
        signalled: false,
        frozen: false,
        killed: false,
        denied: false,
        polled,
    });
}

pub(super) fn is_denied(sent: &io::Result<()>) -> bool {
    matches!(sent, Err(e) if Errno::from_io_error(e) == Some(Errno::PERM))
}

/// Whether a member cannot fork any more, by its state in the latest survey.
pub(super) fn stands_still(member: &StopMember) -> bool {
    match member.state {
        // The letter is that of the first thread; another may still be in a fork.
        'T' | 't' => proc::threads_stopped(member.watched.id().pid()).unwrap_or(true),
        'D' | 'Z' | 'X' | 'x' => true,
        _ => false,
    }
}
