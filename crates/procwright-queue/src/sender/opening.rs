//! A place at a queue that is waited for: until a queue of some name is there, and until a
//! lane of it is free.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Sender;
use super::process::SenderProcess;
use crate::error::Error;
use crate::invitation::Invitation;
use crate::names::QueueName;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::{Deadline, Timeout};

/// Pause before the first look after a change, and the last pause that is made; each is
/// twice as long as the one before. A receiver writes its line some moments before or after
/// it says that it is there, so one look after a change is not enough.
const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_secs(1);

/// A sender that is about to be: it waits for its queue and for a lane there. For hosts
/// whose signal handlers do not run by themselves; [`Sender::open_within`],
/// [`attach_within`](Sender::attach_within) and
/// [`try_clone_within`](Sender::try_clone_within) are one call.
#[derive(Debug)]
pub struct Opening {
    /// The name; none if the queue is known without.
    name: Option<QueueName>,
    /// The queue, once it was found. It is kept between two waits: each link that is made
    /// is one more for the receiver to look at.
    process: Option<Arc<SenderProcess>>,
    /// The pause before the next look for the name.
    pause: Duration,
}

impl Opening {
    /// A place at the queue of that name.
    ///
    /// # Errors
    /// [`Error::BadName`].
    pub fn named(name: &str) -> Result<Opening, Error> {
        Ok(Opening {
            name: Some(QueueName::new(name)?),
            process: None,
            pause: SOON,
        })
    }

    /// A place at the queue that the invitation is to.
    ///
    /// # Errors
    /// Those of [`Sender::attach`] but [`Error::NoLane`].
    pub fn invited(invitation: Invitation) -> Result<Opening, Error> {
        Ok(Opening {
            name: None,
            process: Some(Arc::new(SenderProcess::invited(invitation)?)),
            pause: SOON,
        })
    }

    /// Another place at the queue of a sender of this process.
    ///
    /// # Errors
    /// [`Error::Forked`]; those of [`Sender::send`] for a receiver that is gone.
    pub fn beside(sender: &Sender) -> Result<Opening, Error> {
        sender.check()?;
        Ok(Opening {
            name: None,
            process: Some(Arc::clone(&sender.process)),
            pause: SOON,
        })
    }

    /// Waits for the place. Before each sleep `goes_on` is asked, and a signal ends a
    /// sleep. None if the answer was false: the wait can be taken up again.
    ///
    /// # Blocking
    /// For at most `timeout`. A signal that comes between the question and the sleep ends
    /// none; so none takes longer than a second.
    ///
    /// # Errors
    /// As [`Sender::open_within`].
    pub fn wait(
        &mut self,
        timeout: impl Into<Timeout>,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Option<Sender>, Error> {
        let deadline = timeout.into().starting(Instant::now());
        self.wait_by(deadline, LATE.into(), &mut goes_on)
    }

    /// As [`wait`](Self::wait). No sleep takes longer than `longest`.
    fn wait_by(
        &mut self,
        deadline: Deadline,
        longest: Timeout,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Sender>, Error> {
        loop {
            let process = match &self.process {
                Some(process) => Arc::clone(process),
                None => match self.find(deadline, longest, goes_on)? {
                    Some(process) => Arc::clone(self.process.insert(Arc::new(process))),
                    None => return Ok(None),
                },
            };
            match process.claim_lane_by(deadline, &mut *goes_on) {
                Ok(Some(writer)) => return Ok(Some(Sender::with_lane(process, writer))),
                Ok(None) => return Ok(None),
                // Another receiver may come to have the name.
                Err(Error::ReceiverDead | Error::Closed) if self.name.is_some() => {
                    self.process = None;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The queue of the name, once a process receives there. None if `goes_on` says no.
    /// The system tells of changes to the directory of the names; without a change nothing
    /// is looked at.
    fn find(
        &mut self,
        deadline: Deadline,
        longest: Timeout,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<SenderProcess>, Error> {
        // Without a name there is a queue from the beginning.
        let Some(name) = &self.name else {
            return Err(Error::Closed);
        };
        loop {
            // The watch is a new one each time: the directory may be another by now. A
            // change from here on ends the sleep.
            let watch: OwnedFd = name.watch()?;
            loop {
                let found = SenderProcess::named(name);
                let reason = match found.and_then(|found| found.check().map(|()| found)) {
                    Err(error) if may_change(&error) => error,
                    found => return found.map(Some),
                };
                let now = Instant::now();
                if deadline.reached(now) {
                    return Err(Error::OpenTimedOut(Box::new(reason)));
                }
                if !goes_on() {
                    return Ok(None);
                }
                // No change to the directory tells that the receiver has let others in.
                let is_told = self.pause > LATE && !matches!(reason, Error::Io(_));
                let nap = match is_told {
                    true => longest,
                    false => self.pause.min(LATE).into(),
                };
                self.pause = (2 * self.pause).min(2 * LATE);
                let nap = deadline.min(nap.starting(now));
                let mut watched = [Fd::from_borrowed_fd(watch.as_fd(), Flags::IN)];
                match poll::poll(&mut watched, nap) {
                    Ok(0) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    changed => {
                        changed?;
                        self.pause = SOON;
                        break;
                    }
                }
            }
        }
    }
}

/// Returns whether what stands in the way may be gone after a while: there is no queue, no
/// receiver, or too many wait to be let in.
fn may_change(error: &Error) -> bool {
    match error {
        Error::NoQueue { .. } | Error::ReceiverDead | Error::Closed => true,
        Error::Io(error) => error.kind() == io::ErrorKind::WouldBlock,
        _ => false,
    }
}

impl Sender {
    /// Calls [`open`](Sender::open) once a process receives under that name, and there is a
    /// free lane. The system tells of changes to the directory of the names, which is made
    /// if it does not exist, and whoever frees a lane wakes those who wait for one.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// [`Error::OpenTimedOut`], which has the error of the last attempt; otherwise as
    /// [`open`](Sender::open), but for [`Error::NoQueue`], [`Error::ReceiverDead`],
    /// [`Error::Closed`] and [`Error::NoLane`]. [`Error::Io`] also when the user may watch
    /// no more directories (`fs.inotify.max_user_instances`).
    #[doc(alias = "inotify")]
    pub fn open_within(name: &str, timeout: impl Into<Timeout>) -> Result<Sender, Error> {
        Opening::named(name)?.wait_long(timeout)
    }

    /// Takes a lane of the queue that the invitation is to, as
    /// [`attach`](Sender::attach) does, once one is free.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// [`Error::OpenTimedOut`]; otherwise as [`attach`](Sender::attach), but for
    /// [`Error::NoLane`].
    pub fn attach_within(
        invitation: Invitation,
        timeout: impl Into<Timeout>,
    ) -> Result<Sender, Error> {
        Opening::invited(invitation)?.wait_long(timeout)
    }

    /// Makes another sender for the same queue, in this process, as
    /// [`try_clone`](Sender::try_clone) does, once a lane is free.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// [`Error::OpenTimedOut`]; otherwise as [`try_clone`](Sender::try_clone), but for
    /// [`Error::NoLane`].
    pub fn try_clone_within(&self, timeout: impl Into<Timeout>) -> Result<Sender, Error> {
        let mut new = Opening::beside(self)?.wait_long(timeout)?;
        new.overflow = self.overflow;
        Ok(new)
    }
}

impl Opening {
    fn wait_long(mut self, timeout: impl Into<Timeout>) -> Result<Sender, Error> {
        let deadline = timeout.into().starting(Instant::now());
        loop {
            // Without a question nothing but an error or a place ends the wait.
            if let Some(sender) = self.wait_by(deadline, Timeout::NEVER, &mut || true)? {
                return Ok(sender);
            }
        }
    }
}
