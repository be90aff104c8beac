//! Waiting until a queue of some name is there.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::names::Name;
use crate::queue::{Error, Sender};
use crate::sys::poll::{self, Fd, Flags};
use crate::time::{Deadline, Timeout};

/// A receiver writes its name down some moments before or after it says that it is
/// there. So after each change it is looked again after so long, and so on, twice as
/// long each time.
const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_secs(1);

impl Sender {
    /// [`open`](Sender::open), once somebody receives under that name: the system
    /// tells of changes to the directory of the names, which is made if it is not there,
    /// and nothing is looked at while there are none.
    ///
    /// # Blocking
    /// For at most `timeout`.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; otherwise as [`open`](Sender::open), but for
    /// [`Error::NoQueue`] and [`Error::ReceiverDead`]. [`Error::Io`] also when the user
    /// may watch no more directories (`fs.inotify.max_user_instances`).
    pub fn open_within(name: &str, timeout: impl Into<Timeout>) -> Result<Sender, Error> {
        let deadline = timeout.into().starting(Instant::now());
        let watched = Name::new(name)?;
        loop {
            // Anew each time: the directory may be another by now. What changes from
            // here on ends the sleep.
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
                if poll::one(Fd::from_borrowed_fd(watch.as_fd(), Flags::IN), nap)? {
                    break;
                }
                pause *= 2;
            }
        }
    }
}
