//! A receiver beside others in a wait set.

use std::io;
use std::time::Instant;

use crate::queue::bell::Sleep;
use crate::queue::{Error, Receiver};
use crate::time::Deadline;
use crate::wait::{Awaits, Waitable};

/// Until there is something to receive, or to be told of by a call that receives: that
/// the queue is [closed](Error::Closed), or a lane [damaged](Error::Damaged).
///
/// ```
/// use procwright::liveness::Monitor;
/// use procwright::queue::Receiver;
/// use procwright::wait::{Event, Waitable, WaitSet, Want};
/// use procwright::Command;
///
/// let child = Command::new("cat").stdin(procwright::Stdin::Pipe).spawn()?;
/// let mut receiver = Receiver::new()?;
/// let mut sender = receiver.sender()?;
/// let mut set: WaitSet<Box<dyn Waitable + '_>> = WaitSet::new()?;
/// let ended = set.add(Box::new(child.process()), Event::Exited)?;
/// let sent = set.add(Box::new(&mut receiver), Event::Exited)?;
/// sender.send(b"hello")?;
/// assert_eq!(set.wait(Want::Any, None)?.ended[0].0, sent);
/// drop(set);
/// assert_eq!(receiver.recv()?, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The set asks the receiver, so it has to be there itself, or by `&mut`.
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
        // What goes wrong is told by the next call that receives.
        self.has_something().unwrap_or(true)
    }
}

impl Receiver {
    /// Whether there is something to receive. If not, the descriptor tells when there
    /// is.
    fn has_something(&mut self) -> Result<bool, Error> {
        self.check()?;
        self.disarm();
        // Whoever has rung is heard, or the descriptor would stay readable.
        self.attend(Deadline::at(Instant::now()))?;
        self.arm(Sleep::Link);
        let has = self.has_next()? || self.is_closed();
        if has {
            self.disarm();
        }
        Ok(has)
    }
}
