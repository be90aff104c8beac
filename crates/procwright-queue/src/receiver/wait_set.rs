//! A receiver beside others in a wait set.

use std::io;
use std::time::Instant;

use super::Receiver;
use crate::error::Error;
use crate::wakeup::Asleep;
use procwright_os::time::Deadline;
use procwright_process::wait::{Awaits, Waitable};

/// The wait is over when there is something to receive, or something that a call that
/// receives would tell: that the queue is [closed](Error::Closed), or a lane
/// [damaged](Error::Damaged).
///
/// ```
/// use procwright_liveness::Monitor;
/// use procwright_queue::Receiver;
/// use procwright_process::wait::{Event, Waitable, WaitSet, Want};
/// use procwright_process::Process;
///
/// let mut child = std::process::Command::new("sleep").arg("99").spawn()?;
/// let process = Process::of_child(&child)?;
/// let mut receiver = Receiver::new()?;
/// let mut sender = receiver.sender()?;
/// let mut set: WaitSet<Box<dyn Waitable + '_>> = WaitSet::new()?;
/// let ended = set.add(Box::new(&process), Event::Exited)?;
/// let sent = set.add(Box::new(&mut receiver), Event::Exited)?;
/// sender.send(b"hello")?;
/// assert_eq!(set.wait(Want::Any, None)?.ended[0].0, sent);
/// drop(set);
/// assert_eq!(receiver.recv()?, b"hello");
/// # child.kill()?;
/// # child.wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The set asks the receiver, so it takes the receiver itself, or a `&mut` to it.
impl Waitable for Receiver {
    fn awaits(&self) -> Awaits<'_> {
        match self.is_here() {
            true => Awaits::asked_when_readable(self.descriptor()),
            false => {
                let error = io::Error::from(Error::Forked);
                Awaits::impossible(&error, "this receiver is that of the process before a fork")
            }
        }
    }

    fn has_come(&mut self) -> bool {
        // Errors come again in the next call that receives.
        self.has_something().unwrap_or(true)
    }
}

impl Receiver {
    /// Returns whether there is something to receive. If not, the descriptor tells when
    /// there is.
    fn has_something(&mut self) -> Result<bool, Error> {
        self.check()?;
        self.end_sleep();
        // Wake-ups are read, or the descriptor would stay readable.
        self.attend_links(Deadline::at(Instant::now()))?;
        self.announce_sleep(Asleep::Descriptor);
        let has = self.has_next()? || self.is_closed();
        if has {
            self.end_sleep();
        }
        Ok(has)
    }
}
