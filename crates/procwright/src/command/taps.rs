//! Callbacks and copies that get the output while it comes, and the hook of the clock.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use super::builder::Command;
use crate::error::BoxError;
use crate::run::Moment;
use crate::std_stream::{PerStream, StdStream};
use crate::stream::Framing;
use crate::taps::{ConsumerKind, ConsumerRole, LineCallback, NewConsumer, Tap, TeeTap, WriterTap};

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
    /// captured. An error is as that of [`tee_to`](Command::tee_to).
    #[must_use]
    pub fn tap_stream(self, stream: StdStream, tap: Box<dyn Tap>) -> Self {
        self.consumer(stream, required(ConsumerKind::Pieces(tap)))
    }

    /// Hands a copy of both streams to `tap`, in the order in which they are read,
    /// on a thread of its own. A stream that is neither captured nor relayed does not
    /// come. An error is as that of [`tee_to`](Command::tee_to).
    #[must_use]
    pub fn tap_both(mut self, tap: Box<dyn Tap>) -> Self {
        self.hooks
            .taps
            .of_both
            .push(required(ConsumerKind::Pieces(tap)));
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
    /// they come; of a child of [`spawn`](Command::spawn), whose readers have them all the same.
    ///
    /// A copy that can no longer be written (a closed pipe) is left out; the
    /// capture goes on.
    ///
    /// # Errors
    /// When the caller's stdout or stderr cannot be duplicated.
    pub fn tee(self) -> std::io::Result<Self> {
        let captures = self.spec.captures().chosen();
        captures.into_iter().try_fold(self, Command::tee_stream)
    }

    /// Shows one captured stream, as [`tee`](Command::tee) does both.
    ///
    /// # Errors
    /// As there.
    pub fn tee_stream(self, stream: StdStream) -> std::io::Result<Self> {
        let own = match stream {
            StdStream::Stdout => std::io::stdout().as_fd().try_clone_to_owned()?,
            StdStream::Stderr => std::io::stderr().as_fd().try_clone_to_owned()?,
        };
        let tee = NewConsumer::with_tap(TeeTap::new(own), ConsumerRole::Optional);
        Ok(self.consumer(stream, tee))
    }

    /// Copies a captured stream to a writer while it comes. An error stops the run; of a child of
    /// [`spawn`](Command::spawn) it ends this copy alone, and the next
    /// [`wait`](crate::Child::wait) has it.
    #[must_use]
    pub fn tee_to(self, stream: StdStream, writer: impl Write + Send + 'static) -> Self {
        let tap = WriterTap(writer);
        self.consumer(stream, NewConsumer::with_tap(tap, ConsumerRole::Required))
    }

    /// Copies a captured stream to a descriptor while it comes; with none both, in the order in
    /// which they are read. An error is as that of [`tee_to`](Command::tee_to).
    #[doc(alias = "dup2")]
    #[must_use]
    pub fn tee_to_fd(mut self, stream: Option<StdStream>, fd: impl Into<OwnedFd>) -> Self {
        let tee = NewConsumer::with_tap(TeeTap::new(fd.into()), ConsumerRole::Required);
        match stream {
            Some(stream) => self.consumer(stream, tee),
            None => {
                self.hooks.taps.of_both.push(tee);
                self
            }
        }
    }

    /// Copies a captured stream to the file of this path while it comes; with none both, in the
    /// order in which they are read. What is in the file goes when the first copy comes, or the
    /// end: a program that does not start takes nothing away. An error is as that of
    /// [`tee_to`](Command::tee_to).
    ///
    /// ```
    /// use procwright::Command;
    ///
    /// let path = std::env::temp_dir().join(format!("tee-{}", std::process::id()));
    /// let child = Command::shell("echo out; echo err >&2").tee_to_file(None, &path).spawn()?;
    /// child.wait(None)?;
    /// assert_eq!(std::fs::read_to_string(&path)?.len(), "out\nerr\n".len());
    /// std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tee_to_file(mut self, stream: Option<StdStream>, path: impl Into<PathBuf>) -> Self {
        let streams = PerStream::from_fn(|one| stream.is_none_or(|stream| stream == one));
        self.hooks.taps.files.push((streams, path.into()));
        self
    }

    fn lines(self, stream: StdStream, callback: LineCallback) -> Self {
        self.consumer(stream, required(ConsumerKind::Lines(callback)))
    }

    fn consumer(mut self, stream: StdStream, consumer: NewConsumer) -> Self {
        self.hooks.taps.of_one[stream].push(consumer);
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
