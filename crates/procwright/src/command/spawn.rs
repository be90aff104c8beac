//! What is for a child that the caller holds.

use std::sync::Arc;

use super::Command;
use crate::child::{self, Child};
use crate::error::Invalid;
use crate::run::{self, Error, Event};
use crate::spool::{Overflow, elastic};
use crate::time::Timeout;

impl Command<'_> {
    /// Starts the program and hands it over, with its streams: see [`Child`].
    /// Each output that would be captured becomes a [`Reader`], and
    /// [`Stdin::Pipe`](crate::Stdin::Pipe) a [`Writer`].
    ///
    /// # Errors
    /// [`Error::Invalid`] and [`Error::Spawn`], as with [`Command::run`]. What is
    /// for a run alone (a timeout, a limit, a callback) is invalid here.
    ///
    /// [`Reader`]: crate::stream::Reader
    /// [`Writer`]: crate::stream::Writer
    pub fn spawn(self) -> Result<Child, Error> {
        self.spawn_with(Some(Overflow::default()))
    }

    /// The same, and `overflow` says what becomes of output that is not read as
    /// fast as it comes; with none there is the bare pipe, and the program waits
    /// when that is full. What is dropped, by a policy that drops, is counted by
    /// [`Reader::figures`]; where it was, [`Reader::read_with`] tells.
    ///
    /// # Errors
    /// As there.
    ///
    /// [`Reader::figures`]: crate::stream::Reader::figures
    /// [`Reader::read_with`]: crate::stream::Reader::read_with
    pub fn spawn_with(self, overflow: impl Into<Option<Overflow>>) -> Result<Child, Error> {
        if !self.extras.is_empty() {
            let hint = "read the streams yourself, or use run()";
            let invalid = Invalid::new("a callback", "is for run(), not for spawn()", hint);
            return Err(Error::Invalid(invalid));
        }
        let listener = self.extras.listener.map(|listener| {
            let command = run::quote(&self.spec.argv);
            let listener: child::Listener = Arc::new(move |stream, event: &elastic::Event| {
                listener(&Event::of_queue(&command, stream, event));
            });
            listener
        });
        child::spawn(&self.spec, overflow.into(), listener, self.extras.producer)
            .map_err(|error| Error::unstarted(error, &self.spec))
    }

    /// For how long a child of [`spawn`](Command::spawn) may be unable to go on
    /// because nobody reads its output before a wait for it, or a write to it, says
    /// [`Stalled`](crate::stream::Stalled): 30 s unless it is set, 10 ms at least;
    /// with none it is never told. A [`run`](Command::run) reads, so it has no meaning
    /// there.
    #[must_use]
    pub fn stall_after(mut self, after: impl Into<Timeout>) -> Self {
        self.spec.stall_after = after.into();
        self
    }

    /// Gets what a child of [`spawn`](Command::spawn) has to tell of its streams:
    /// that output which nobody reads goes to disk, cannot go there, is dropped, or
    /// is too much. As [`on_event`](Command::on_event), which is for runs; those
    /// are told of on the caller's thread, a child on threads of this library. So
    /// the listener has to be fast, must not wait, and above all must not read the
    /// child's streams: the one thread that empties the pipes of all children
    /// waits for it. Hand on what takes longer, through a channel. A panic of it
    /// is dropped, as far as the child is concerned. Without a listener nothing is
    /// written anywhere: [`Reader::figures`](crate::stream::Reader::figures) tells
    /// all of it.
    ///
    /// ```
    /// use procwright::{Command, Event, Overflow};
    /// use std::sync::mpsc;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let child = Command::new("head")
    ///     .args(["-c", "1000000", "/dev/zero"])
    ///     .on_stream_event(move |event| drop(tell.send(event.clone())))
    ///     .spawn_with(Overflow::DropOldest { memory: 65536 })?;
    /// child.wait(None)?; // its reader is slow
    /// assert!(matches!(told.recv()?, Event::Dropping { stream: "stdout", .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_stream_event<F>(mut self, listener: F) -> Self
    where
        F: Fn(&Event) + Send + Sync + 'static,
    {
        self.extras.listener = Some(Arc::new(listener));
        self
    }
}
