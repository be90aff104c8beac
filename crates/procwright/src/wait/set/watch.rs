//! How each member of a set is watched.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::{BELL, Member, WaitSet};
use crate::ident::{NoPidfd, Watched};
use crate::sys::ready::On;
use crate::wait::fallback::{self, Bell, Job};
use crate::wait::{Event, Mechanism, Source, Waitable};

/// How a member is watched.
#[derive(Debug)]
pub(super) enum Watching {
    /// By its own descriptor or, where that was in the set before, by a
    /// duplicate.
    Here(Mechanism, Option<OwnedFd>),
    /// By a thread of ours, which rings.
    Aside(Job),
    /// By its descriptor, or a duplicate, until it has ended, and then whether it
    /// is reaped: by a thread of ours, since this system does not tell.
    EndFirst(Option<OwnedFd>),
    /// No more: it has ended.
    Over,
}

impl<T: Waitable> WaitSet<T> {
    pub(super) fn watch(
        &self,
        fd: BorrowedFd<'_>,
        key: u64,
        on: On,
        mechanism: Mechanism,
    ) -> io::Result<Watching> {
        Ok(Watching::Here(mechanism, self.enter(fd, key, on)?))
    }

    pub(super) fn watch_asked(&self, item: &T, key: u64) -> io::Result<Watching> {
        match item.awaits().0 {
            Source::Asked(fd) => self.watch(fd, key, On::Read, Mechanism::Descriptor),
            // It was something else a moment ago.
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// The duplicate, if that very descriptor was in the set before.
    fn enter(&self, fd: BorrowedFd<'_>, key: u64, on: On) -> io::Result<Option<OwnedFd>> {
        match self.ready.add(fd, key, on) {
            Ok(()) => Ok(None),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let twin = fd.try_clone_to_owned()?;
                self.ready.add(twin.as_fd(), key, on)?;
                Ok(Some(twin))
            }
            Err(e) => Err(e),
        }
    }

    pub(super) fn watch_process(
        &mut self,
        process: &Watched,
        key: u64,
        event: Event,
    ) -> io::Result<Watching> {
        if let Some(fd) = process.pidfd() {
            return match event.told_by(fd) {
                Some(on) => self.watch(fd, key, on, Mechanism::Pidfd),
                None => Ok(Watching::EndFirst(self.enter(fd, key, On::Read)?)),
            };
        }
        // None was to be had when the process was opened. That may have changed.
        let why = match process.pidfd_now() {
            Ok(None) => return Ok(Watching::Over),
            Ok(Some(fd)) => match event.told_by(fd.as_fd()) {
                Some(on) => {
                    self.ready.add(fd.as_fd(), key, on)?;
                    return Ok(Watching::Here(Mechanism::Pidfd, Some(fd)));
                }
                None => NoPidfd::Never,
            },
            Err(why) => why,
        };
        // A thread that sleeps by the number would sleep until the end of whoever
        // has it: of another child, if this one was reaped.
        if event.is_over(process) {
            return Ok(Watching::Over);
        }
        if event == Event::Exited && self.watch_number(process, key)? {
            return Ok(Watching::Here(Mechanism::Kqueue, None));
        }
        let bell = self.bell()?;
        let job = fallback::watch(process, why, event, &bell, key)?;
        Ok(Watching::Aside(job))
    }

    /// Whether the system watches it by its number.
    fn watch_number(&self, process: &Watched, key: u64) -> io::Result<bool> {
        let id = process.id();
        let ended = || process.has_exited();
        match self
            .ready
            .add_process(id.pid(), id.start_ticks(), key, &ended)
        {
            Ok(()) => Ok(true),
            // No kqueue, or one that does not tell of other users' processes.
            Err(e) if e.kind() == io::ErrorKind::Unsupported => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(false),
            Err(e) => Err(e),
        }
    }

    pub(super) fn bell(&mut self) -> io::Result<Arc<Bell>> {
        if let Some(bell) = &self.bell {
            return Ok(Arc::clone(bell));
        }
        let bell = Arc::new(Bell::new()?);
        self.ready.add(bell.as_fd(), BELL, On::Read)?;
        Ok(Arc::clone(self.bell.insert(bell)))
    }

    pub(super) fn unwatch(&self, member: &Member<T>, key: u64) {
        // In a fork the instance is the parent's as well.
        if self.process != std::process::id() {
            return;
        }
        let twin = match &member.watching {
            Watching::Here(Mechanism::Kqueue, _) => {
                if let Source::Process(process) = member.item.awaits().0 {
                    let _ = self.ready.remove_process(process.id().pid(), key);
                }
                return;
            }
            Watching::Here(_, twin) | Watching::EndFirst(twin) => twin.as_ref(),
            // A job ends when it is dropped.
            Watching::Aside(_) | Watching::Over => return,
        };
        match (twin, member.item.awaits().0) {
            (Some(twin), _) => self.ready.remove(twin.as_fd()),
            (None, Source::Readable(fd) | Source::Asked(fd)) => self.ready.remove(fd),
            (None, Source::Process(process)) => {
                if let Some(fd) = process.pidfd() {
                    self.ready.remove(fd);
                }
            }
            (None, Source::Nothing(_)) => {}
        }
    }

    /// How to go on watching a member of which there was news; none if that was
    /// what it waited for.
    pub(super) fn next_step(
        &mut self,
        member: &Member<T>,
        key: u64,
    ) -> io::Result<Option<Watching>> {
        let Source::Process(process) = member.item.awaits().0 else {
            return Ok(None);
        };
        match &member.watching {
            Watching::Here(Mechanism::Kqueue, _) => {
                process.tell(self.ready.remove_process(process.id().pid(), key));
                Ok(None)
            }
            Watching::EndFirst(_) if !process.is_reaped() => {
                let job = fallback::watch_reap(process, &self.bell()?, key)?;
                Ok(Some(Watching::Aside(job)))
            }
            // Looked at by its number, it would seem to run on for as long as
            // there is no descriptor to look with.
            Watching::Aside(job) if job.is_certain() => {
                process.tell(None);
                Ok(None)
            }
            // The thread knew it by its number, which may be another's by now.
            Watching::Aside(_) if !member.event.is_over(process) => {
                match self.watch_process(process, key, member.event)? {
                    Watching::Over => Ok(None),
                    next => Ok(Some(next)),
                }
            }
            _ => Ok(None),
        }
    }
}
