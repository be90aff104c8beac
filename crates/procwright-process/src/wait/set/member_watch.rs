//! The ways in which members of a set are watched.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::{ENDED, SetMember, WaitSet};
use crate::process_handle::{NoPidfd, ProcessHandle};
use crate::wait::fallback::{self, EndedKeys, FallbackWatch};
use crate::wait::{AwaitSource, Event, Mechanism, Waitable};
use procwright_os::ready::Interest;

/// The way in which a member is watched.
#[derive(Debug)]
pub(super) enum MemberWatch {
    /// Its own descriptor is in the set or, where that was there before, a duplicate.
    Polled(Mechanism, Option<OwnedFd>),
    /// A thread watches, and reports the key.
    Fallback(FallbackWatch),
    /// Its descriptor, or a duplicate, is in the set until it has ended; from then on a
    /// thread looks whether it is reaped, since this system does not tell.
    ExitThenReap(Option<OwnedFd>),
    /// Nothing is watched any more: it has ended.
    Over,
}

impl<T: Waitable> WaitSet<T> {
    pub(super) fn watch(
        &self,
        fd: BorrowedFd<'_>,
        key: u64,
        on: Interest,
        mechanism: Mechanism,
    ) -> io::Result<MemberWatch> {
        Ok(MemberWatch::Polled(mechanism, self.add_fd(fd, key, on)?))
    }

    pub(super) fn watch_asked(&self, item: &T, key: u64) -> io::Result<MemberWatch> {
        match item.awaits().0 {
            AwaitSource::Asked(fd) => self.watch(fd, key, Interest::Read, Mechanism::Descriptor),
            // `awaits` broke its contract and changed.
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Adds a descriptor. Returns the duplicate that was added if that very descriptor
    /// was in the set before.
    fn add_fd(&self, fd: BorrowedFd<'_>, key: u64, on: Interest) -> io::Result<Option<OwnedFd>> {
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
        process: &ProcessHandle,
        key: u64,
        event: Event,
    ) -> io::Result<MemberWatch> {
        if let Some(fd) = process.pidfd() {
            return match event.told_by(fd) {
                Some(on) => self.watch(fd, key, on, Mechanism::Pidfd),
                None => Ok(MemberWatch::ExitThenReap(self.add_fd(
                    fd,
                    key,
                    Interest::Read,
                )?)),
            };
        }
        // No pidfd was to be had when the process was opened. That may have changed.
        let why = match process.pidfd_now() {
            Ok(None) => return Ok(MemberWatch::Over),
            Ok(Some(fd)) => match event.told_by(fd.as_fd()) {
                Some(on) => {
                    self.ready.add(fd.as_fd(), key, on)?;
                    return Ok(MemberWatch::Polled(Mechanism::Pidfd, Some(fd)));
                }
                None => NoPidfd::Never,
            },
            Err(why) => why,
        };
        // Checked first: a thread that sleeps by number would sleep until the end of
        // another child that got the number, if this one was reaped.
        if event.is_over(process) {
            return Ok(MemberWatch::Over);
        }
        if event == Event::Exited && self.watch_number(process, key)? {
            return Ok(MemberWatch::Polled(Mechanism::Kqueue, None));
        }
        let ended = self.ended()?;
        let job = fallback::watch(process, why, event, &ended, key)?;
        Ok(MemberWatch::Fallback(job))
    }

    /// Whether the system watches it by its number.
    fn watch_number(&self, process: &ProcessHandle, key: u64) -> io::Result<bool> {
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

    pub(super) fn ended(&mut self) -> io::Result<Arc<EndedKeys>> {
        if let Some(ended) = &self.ended {
            return Ok(Arc::clone(ended));
        }
        let ended = Arc::new(EndedKeys::new()?);
        self.ready.add(ended.as_fd(), ENDED, Interest::Read)?;
        Ok(Arc::clone(self.ended.insert(ended)))
    }

    pub(super) fn unwatch(&self, member: &SetMember<T>, key: u64) {
        // A fork shares the epoll instance with its parent.
        if self.process != std::process::id() {
            return;
        }
        let twin = match &member.watching {
            MemberWatch::Polled(Mechanism::Kqueue, _) => {
                if let AwaitSource::Process(process) = member.item.awaits().0 {
                    let _ = self.ready.remove_process(process.id().pid(), key);
                }
                return;
            }
            MemberWatch::Polled(_, twin) | MemberWatch::ExitThenReap(twin) => twin.as_ref(),
            // A fallback ends when it is dropped.
            MemberWatch::Fallback(_) | MemberWatch::Over => return,
        };
        match (twin, member.item.awaits().0) {
            (Some(twin), _) => self.ready.remove(twin.as_fd()),
            (None, AwaitSource::Readable(fd) | AwaitSource::Asked(fd)) => self.ready.remove(fd),
            (None, AwaitSource::Process(process)) => {
                if let Some(fd) = process.pidfd() {
                    self.ready.remove(fd);
                }
            }
            (None, AwaitSource::Nothing(_)) => {}
        }
    }

    /// The way to go on watching a member that was reported; none if its event has come
    /// about.
    pub(super) fn next_step(
        &mut self,
        member: &SetMember<T>,
        key: u64,
    ) -> io::Result<Option<MemberWatch>> {
        let AwaitSource::Process(process) = member.item.awaits().0 else {
            return Ok(None);
        };
        match &member.watching {
            MemberWatch::Polled(Mechanism::Kqueue, _) => {
                process.set_ended(self.ready.remove_process(process.id().pid(), key));
                Ok(None)
            }
            MemberWatch::ExitThenReap(_) if !process.is_reaped() => {
                let job = fallback::watch_reap(process, &self.ended()?, key)?;
                Ok(Some(MemberWatch::Fallback(job)))
            }
            // A look by number would find it running for as long as there is no
            // descriptor to look with.
            MemberWatch::Fallback(job) if job.is_certain() => {
                process.set_ended(None);
                Ok(None)
            }
            // The thread knew it by its number, which may be another process's by now.
            MemberWatch::Fallback(_) if !member.event.is_over(process) => {
                match self.watch_process(process, key, member.event)? {
                    MemberWatch::Over => Ok(None),
                    next => Ok(Some(next)),
                }
            }
            _ => Ok(None),
        }
    }
}
