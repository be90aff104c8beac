//! Starting a child that the caller holds, and options for that alone.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::builder::Command;
use crate::child::{self, Child};
use crate::quote::quote;
use crate::run::{Error, Event, EventHook, EventThread};
use crate::spec::Purpose;
use crate::spool::{Overflow, elastic};
use procwright_os::time::Timeout;

/// A listener that has `hook` called, on a thread of its own, with the events of the streams of
/// a command.
pub(crate) fn stream_listener(command: String, hook: EventHook) -> child::StreamListener {
    of_streams(command.clone(), Arc::new(EventThread::new(command, hook)))
}

fn of_streams(command: String, thread: Arc<EventThread>) -> child::StreamListener {
    Arc::new(move |stream, event: &elastic::Event| {
        // Without a thread the figures of the stream have it all the same.
        let _ = thread.tell(Event::from_queue(&command, stream, event), None);
    })
}

/// A listener that is told that a command waits for input.
fn of_input(command: String, thread: Arc<EventThread>) -> child::InputListener {
    child::InputListener::new(move |waiting, prompt| {
        let command = command.clone();
        let event = Event::InputWanted {
            command,
            waiting,
            prompt,
        };
        // Without a thread there is nobody to be told.
        let _ = thread.tell(event, None);
    })
}

impl Command<'_> {
    /// Starts the program and hands it over, with its streams: see [`Child`].
    /// Each output that would be captured becomes a [`Reader`], and
    /// [`Stdin::Pipe`](crate::Stdin::Pipe) a [`Writer`].
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Spawn`] and [`Error::Cancelled`], as with
    /// [`Command::run`]. What is for a run alone (a callback for lines) is invalid here.
    ///
    /// [`Reader`]: crate::stream::Reader
    /// [`Writer`]: crate::stream::Writer
    #[doc(alias = "subprocess.Popen")]
    #[doc(alias = "posix_spawn")]
    #[doc(alias = "fork")]
    pub fn spawn(self) -> Result<Child, Error> {
        self.spawn_with(Some(Overflow::default()))
    }

    /// Spawns as [`spawn`](Command::spawn) does, with `overflow` for output that is not
    /// read as fast as it comes; with none there is the bare pipe, and the program waits
    /// when that is full. What is dropped, by a policy that drops, is counted by
    /// [`Reader::figures`]; where it was, [`Reader::read_with`] tells.
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn).
    ///
    /// [`Reader::figures`]: crate::stream::Reader::figures
    /// [`Reader::read_with`]: crate::stream::Reader::read_with
    pub fn spawn_with(self, overflow: impl Into<Option<Overflow>>) -> Result<Child, Error> {
        let overflow = overflow.into();
        let valid = self.hooks.validate(&self.spec, Purpose::Spawn { overflow });
        valid.map_err(Error::Invalid)?;
        let told = self.hooks.on_stream_event.map(|hook| {
            let command = quote(&self.spec.argv);
            let thread = Arc::new(EventThread::new(command.clone(), hook));
            (command, thread)
        });
        let for_input = told.clone().filter(|_| self.hooks.input_wanted);
        let for_input = for_input.map(|(command, thread)| of_input(command, thread));
        let listener = told.map(|(command, thread)| of_streams(command, thread));
        let (producer, taps, cancel) = (self.hooks.producer, self.hooks.taps, self.hooks.cancel);
        child::spawn(
            &self.spec, overflow, listener, for_input, producer, taps, cancel,
        )
        .map_err(|error| Error::unstarted(error, &self.spec))
    }

    /// Sets for how long a child of [`spawn`](Command::spawn) may be unable to go on
    /// because nobody reads its output before a wait for it, or a write to it, says
    /// [`Stalled`](crate::stream::Stalled): 30 s unless it is set, 10 ms at least;
    /// with none it is never told. A [`run`](Command::run) reads, so it has no meaning
    /// there.
    #[must_use]
    pub fn stall_after(mut self, after: impl Into<Timeout>) -> Self {
        self.spec.stall_after = after.into();
        self
    }

    /// Calls `listener` with the events of the streams of a child of
    /// [`spawn`](Command::spawn): output which nobody reads goes to disk, cannot go
    /// there, is dropped, or is too much. For runs there is
    /// [`on_event`](Command::on_event). The listener is called on a thread of its own,
    /// which starts with the first event, with one after another in their order: it may
    /// take its time, and nothing waits for it. Some 60 events are kept for it; those
    /// for which there is no room are counted, and [`Event::Missed`] stands in their place.
    /// A panic of it is dropped, as far as the child is concerned.
    /// Without a listener nothing is written anywhere:
    /// [`Reader::figures`](crate::stream::Reader::figures) tells all of it.
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
    pub fn on_stream_event<F>(mut self, mut listener: F) -> Self
    where
        F: FnMut(&Event) + Send + 'static,
    {
        self.hooks.on_stream_event = Some(Box::new(move |event| {
            // The panic hook has told of a panic, and the next event comes all the same.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(event)));
            Ok(())
        }));
        self
    }
}
