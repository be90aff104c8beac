//! Who gets the output while it comes: callbacks, copies, whoever stands in the
//! place of the caller's own stdout and stderr.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

use super::{BoxError, Command};
use crate::run::{Duty, Kind, Lines, Moment, Tap, Tee, Writer};

impl<'a> Command<'a> {
    /// Calls back for each line of stdout, with its end, on a thread of its
    /// own. The stream must be captured. An error stops the run.
    #[must_use]
    pub fn on_stdout_line<F>(self, callback: F) -> Self
    where
        F: FnMut(&[u8]) -> Result<(), BoxError> + Send + 'static,
    {
        self.tap(
            1,
            Kind::Lines(Lines::new(Box::new(callback))),
            Duty::Required,
        )
    }

    /// Calls back for each line of stderr. As [`Command::on_stdout_line`].
    #[must_use]
    pub fn on_stderr_line<F>(self, callback: F) -> Self
    where
        F: FnMut(&[u8]) -> Result<(), BoxError> + Send + 'static,
    {
        self.tap(
            2,
            Kind::Lines(Lines::new(Box::new(callback))),
            Duty::Required,
        )
    }

    /// Hands a copy of stdout (1) or stderr (2) to `tap`, on a thread of its
    /// own. The stream must be captured. An error stops the run.
    #[must_use]
    pub fn tap_stream(self, stream: u8, tap: Box<dyn Tap>) -> Self {
        self.tap(stream, Kind::Pieces(tap), Duty::Required)
    }

    /// Hands a copy of both streams to `tap`, in the order in which they are read,
    /// on a thread of its own. Of the two those are meant that are captured or
    /// relayed. An error stops the run.
    #[must_use]
    pub fn tap_both(mut self, tap: Box<dyn Tap>) -> Self {
        let both = (Kind::Pieces(tap), Duty::Required);
        self.extras.both.push(both);
        self
    }

    /// Hands what is relayed ([`Sink::Relay`](crate::Sink::Relay)) to `relay`, in place of passing it
    /// on as it is: it gets both streams in the order in which they are read, on a
    /// thread of its own, and writes of them what it likes, where it likes.
    ///
    /// It stands for the places where the streams would go. An error of the kind
    /// [`BrokenPipe`](std::io::ErrorKind::BrokenPipe) says that nobody reads that
    /// stream any more: the program's pipe is closed, so that it finds out as it
    /// would without us, and the other stream goes on. Any other error stops the
    /// run.
    #[must_use]
    pub fn relay_with(mut self, relay: Box<dyn Tap>) -> Self {
        self.extras.relay = Some(relay);
        self
    }

    /// Tells `tell` how far the run is, each time that so much time has passed, 10
    /// ms at least, until it is over. It is called on the thread of
    /// [`run`](Command::run), which waits until it returns: it must be fast and
    /// must not block, or the run's deadlines are late.
    #[must_use]
    pub fn every<F>(mut self, period: Duration, tell: F) -> Self
    where
        F: FnMut(Moment<'_>) + 'a,
    {
        self.extras.every = Some((period, Box::new(tell)));
        self
    }

    /// Shows both captured streams on the caller's own stdout and stderr while
    /// they come.
    ///
    /// A copy that can no longer be written (a closed pipe) is left out; the
    /// capture goes on.
    ///
    /// # Errors
    /// When the caller's stdout or stderr cannot be duplicated.
    pub fn tee(mut self) -> std::io::Result<Self> {
        let out = std::io::stdout().as_fd().try_clone_to_owned()?;
        let err = std::io::stderr().as_fd().try_clone_to_owned()?;
        let [stdout, stderr] = self.spec.captures();
        if stdout {
            self = self.tap(1, Kind::Pieces(Box::new(Tee::new(out))), Duty::Optional);
        }
        if stderr {
            self = self.tap(2, Kind::Pieces(Box::new(Tee::new(err))), Duty::Optional);
        }
        Ok(self)
    }

    /// Copies a captured stream, 1 or 2, to a writer while it comes.
    #[must_use]
    pub fn tee_to(self, stream: u8, writer: impl Write + Send + 'static) -> Self {
        self.tap(
            stream,
            Kind::Pieces(Box::new(Writer(writer))),
            Duty::Required,
        )
    }

    fn tap(mut self, stream: u8, tap: Kind, duty: Duty) -> Self {
        let index = usize::from(stream == 2);
        self.extras.taps[index].push((tap, duty));
        self
    }
}
