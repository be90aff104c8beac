//! Callbacks and copies that get the output while it comes, and the hook of the clock.

use std::io::Write;
use std::os::fd::AsFd;
use std::time::Duration;

use super::builder::Command;
use crate::error::BoxError;
use crate::run::{
    ConsumerKind, ConsumerRole, LineCallback, Moment, NewConsumer, Tap, TeeTap, WriterTap,
};
use crate::std_stream::{PerStream, StdStream};
use crate::stream::Framing;

impl<'a> Command<'a> {
    /// Calls back for each line of stdout, with its end, on a thread of its
    /// own. The stream must be captured. An error stops the run. A line of more than
    /// 16 MiB comes in pieces: see [`Command::line_framing`].
    #[must_use]
    pub fn on_stdout_line<F>(self, callback: F) -> Self
    where
        F: FnMut(&[u8]) -> Result<(), BoxError> + Send + 'static,
    {
        self.lines(StdStream::Stdout, Box::new(callback))
    }

    /// Calls back for each line of stderr, as [`Command::on_stdout_line`] does for
    /// stdout.
    #[must_use]
    pub fn on_stderr_line<F>(self, callback: F) -> Self
    where
        F: FnMut(&[u8]) -> Result<(), BoxError> + Send + 'static,
    {
        self.lines(StdStream::Stderr, Box::new(callback))
    }

    /// Sets the rule by which lines are cut for [`on_stdout_line`](Command::on_stdout_line)
    /// and [`on_stderr_line`](Command::on_stderr_line): what ends one, how long it may be, and
    /// what becomes of a longer one, which comes in pieces or stops the run by
    /// [`LineTooLong`](crate::stream::LineTooLong). Unless it is set, lines end with `\n`, and
    /// come in pieces of 16 MiB. With a `max_length` of none a line takes as much memory as it
    /// is long, whatever [`Spec::limit`](crate::Spec::limit) says of what is kept.
    ///
    /// ```
    /// use procwright::Command;
    /// use procwright::stream::{Framing, TooLong};
    ///
    /// let framing = Framing {
    ///     max_length: Some(4),
    ///     too_long: TooLong::Split,
    ///     ..Framing::default()
    /// };
    /// let (tell, told) = std::sync::mpsc::channel();
    /// Command::new("echo")
    ///     .arg("abcdef")
    ///     .line_framing(framing)
    ///     .on_stdout_line(move |line| Ok(tell.send(line.to_vec())?))
    ///     .run()?;
    /// assert_eq!(told.into_iter().collect::<Vec<_>>(), [b"abcd".to_vec(), b"ef\n".to_vec()]);
    /// # Ok::<(), procwright::Error>(())
    /// ```
    #[must_use]
    pub fn line_framing(mut self, framing: Framing) -> Self {
        self.hooks.framing = Some(framing);
        self
    }

    /// Hands a copy of a stream to `tap`, on a thread of its own. The stream must be
    /// captured. An error stops the run.
    #[must_use]
    pub fn tap_stream(self, stream: StdStream, tap: Box<dyn Tap>) -> Self {
        self.consumer(stream, required(ConsumerKind::Pieces(tap)))
    }

    /// Hands a copy of both streams to `tap`, in the order in which they are read,
    /// on a thread of its own. A stream that is neither captured nor relayed does not
    /// come. An error stops the run.
    #[must_use]
    pub fn tap_both(mut self, tap: Box<dyn Tap>) -> Self {
        self.hooks.both.push(required(ConsumerKind::Pieces(tap)));
        self
    }

    /// Hands what is relayed ([`Sink::Relay`](crate::Sink::Relay)) to `relay`, in place
    /// of passing it on as it is: it gets both streams in the order in which they are
    /// read, on a thread of its own, and writes of them what it likes, where it likes.
    ///
    /// The relay stands for the places where the streams would go. An error of the kind
    /// [`BrokenPipe`](std::io::ErrorKind::BrokenPipe) says that nobody reads that
    /// stream any more: the program's pipe is closed, so that it finds out as it
    /// would without us, and the other stream goes on. Any other error stops the
    /// run.
    #[must_use]
    pub fn relay_with(mut self, relay: Box<dyn Tap>) -> Self {
        self.hooks.relay = Some(relay);
        self
    }

    /// Calls `hook` with how far the run is, each time that `period` has passed, 10 ms
    /// at least, until it is over. The call is made on the thread of
    /// [`run`](Command::run), which waits until it returns: the hook must be fast and
    /// must not block, or the run's deadlines are late.
    #[must_use]
    pub fn every<F>(mut self, period: Duration, hook: F) -> Self
    where
        F: FnMut(Moment<'_>) + 'a,
    {
        self.hooks.every = Some((period, Box::new(hook)));
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
        let own = PerStream::new(
            std::io::stdout().as_fd().try_clone_to_owned()?,
            std::io::stderr().as_fd().try_clone_to_owned()?,
        );
        for (stream, (own, is_captured)) in own.zip(self.spec.captures()) {
            if is_captured {
                let tee = NewConsumer::with_tap(TeeTap::new(own), ConsumerRole::Optional);
                self = self.consumer(stream, tee);
            }
        }
        Ok(self)
    }

    /// Copies a captured stream to a writer while it comes.
    #[must_use]
    pub fn tee_to(self, stream: StdStream, writer: impl Write + Send + 'static) -> Self {
        let tap = WriterTap(writer);
        self.consumer(stream, NewConsumer::with_tap(tap, ConsumerRole::Required))
    }

    fn lines(self, stream: StdStream, callback: LineCallback) -> Self {
        self.consumer(stream, required(ConsumerKind::Lines(callback)))
    }

    fn consumer(mut self, stream: StdStream, consumer: NewConsumer) -> Self {
        self.hooks.taps[stream].push(consumer);
        self
    }
}

/// A consumer whose error stops the run.
fn required(kind: ConsumerKind) -> NewConsumer {
    NewConsumer {
        kind,
        role: ConsumerRole::Required,
    }
}
