//! Waiting until a queue of some name is there.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::Sender;
use crate::error::Error;
use crate::names::QueueName;
use procwright_os::poll::{self, Fd, Flags};
use procwright_os::time::{Deadline, Timeout};

/// Pause before the first look after a change, and the last pause that is made; each is
/// twice as long as the one before. A receiver writes its line some moments before or after
/// it says that it is there, so one look after a change is not enough.
const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_secs(1);

impl Sender {
    /// Calls [`open`](Sender::open) once a process receives under that name. The system
    /// tells of changes to the directory of the names, which is made if it does not exist;
    /// without a change nothing is looked at.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; otherwise as [`open`](Sender::open), but for [`Error::NoQueue`]
    /// and [`Error::ReceiverDead`]. [`Error::Io`] also when the user may watch no more
    /// directories (`fs.inotify.max_user_instances`).
    #[doc(alias = "inotify")]
    pub fn open_within(name: &str, timeout: impl Into<Timeout>) -> Result<Sender, Error> {
        let deadline = timeout.into().starting(Instant::now());
        let watched = QueueName::new(name)?;
        loop {
            // The watch is a new one each time: the directory may be another by now. A
            // change from here on ends the sleep.
            let watch = watched.watch()?;
            let mut pause = SOON;
            loop {
                match Sender::open(name) {
                    Err(Error::NoQueue(_) | Error::ReceiverDead | Error::Closed) => {}
                    opened => return opened,
                }
                if deadline.reached(Instant::now()) {
                    return Err(Error::TimedOut);
                }
                let nap = match pause > LATE {
                    true => deadline,
                    false => deadline.min(Deadline::at(Instant::now() + pause)),
                };
                if poll::wait_one(Fd::from_borrowed_fd(watch.as_fd(), Flags::IN), nap)? {
                    break;
                }
                pause *= 2;
            }
        }
    }
}
