//! Handles and callbacks of a run: all beside its spec that lives only once.

use std::time::Duration;

use super::event::Event;
use super::outlets::Outlets;
use super::watch::{Moment, Watch};
use crate::child::StdinProducer;
use crate::error::BoxError;
use crate::spec::{Purpose, Sink, Spec};
use crate::stream::{Frame, Framing};
use crate::taps::{Tap, TapPlan};
use procwright_os::Invalid;
use procwright_process::Cancel;

/// Handles and callbacks that a run or a child has beside its [`Spec`].
#[derive(Default)]
pub(crate) struct Hooks<'a> {
    /// Source of stdin, called on a thread of its own until it has no more.
    pub(crate) producer: Option<StdinProducer>,
    /// Consumers of copies of the output.
    pub(crate) taps: TapPlan,
    /// Readers of the caller's, to whom outputs go that would be kept.
    pub(crate) outlets: Option<Outlets>,
    /// The consumer in the place of one that would pass the streams on.
    pub(crate) relay: Option<Box<dyn Tap>>,
    /// The rule by which lines are cut for callbacks; none is that of a default.
    pub(crate) framing: Option<Framing>,
    /// Hook that the clock calls, and how often.
    pub(crate) every: Option<(Duration, TickHook<'a>)>,
    pub(crate) cancel: Option<Cancel>,
    /// The time after which the caller is told why the program has not ended.
    pub(crate) explain_after: Option<Duration>,
    /// Whether the caller is told that the program waits for input.
    pub(crate) input_wanted: bool,
    pub(crate) on_event: Option<EventHook>,
    /// What events that go to stderr, for want of a hook, call `Until::Exit`; none is as
    /// it is written here.
    pub(crate) until_exit: Option<&'static str>,
    /// Hook for the events of a spawned child's streams.
    pub(crate) on_stream_event: Option<EventHook>,
    /// A descriptor of the caller's, polled beside the run's own.
    pub(crate) watch: Option<Box<dyn Watch + 'a>>,
    /// True if orphans come to this process (it is a sub-reaper with one run).
    pub(crate) adopts: bool,
}

/// Called with how far a run is.
pub(crate) type TickHook<'a> = Box<dyn FnMut(Moment<'_>) + 'a>;

/// Called with the events of a run, or of a child's streams, on a thread of its own.
pub(crate) type EventHook = Box<dyn FnMut(&Event) -> Result<(), BoxError> + Send>;

/// The longest line that a callback gets in one piece, unless the caller says otherwise: what
/// never ends must not fill the memory.
const LONGEST_LINE: usize = 16 << 20;

impl Hooks<'_> {
    /// The rule by which lines are cut for callbacks.
    pub(crate) fn framing(&self) -> Framing {
        let default = || Framing {
            max_length: Some(LONGEST_LINE),
            ..Framing::default()
        };
        self.framing.clone().unwrap_or_else(default)
    }

    /// Finds hooks that make no sense with `spec`, or with this call.
    ///
    /// # Errors
    /// The first fault that was found.
    pub(crate) fn validate(&self, spec: &Spec, purpose: Purpose) -> Result<(), Invalid> {
        match purpose {
            Purpose::Run => self.validate_run(spec),
            Purpose::Spawn { .. } if spec.detach && self.producer.is_some() => Err(Invalid::new(
                "stdin",
                "comes from us, and a program that lives on without us has nobody there",
                "give it a file, a descriptor, or nothing",
            )),
            Purpose::Spawn { .. } if spec.detach && self.cancel.is_some() => Err(Invalid::new(
                "cancel",
                "is asked of us, and a program that lives on without us has nobody there",
                "leave it out, and stop the child, or leave detach out",
            )),
            Purpose::Spawn { .. } if spec.detach && !self.taps.is_empty() => Err(Invalid::new(
                "a copy",
                "is made by us, and a program that lives on without us has nobody there",
                "send its output to a file, and follow that",
            )),
            Purpose::Spawn { .. } if self.explain_after.is_some() => Err(Invalid::new(
                "explain_after",
                "is for run(), not for spawn()",
                "ask the child, by explain() or waiting_for()",
            )),
            Purpose::Spawn { .. } if self.input_wanted && spec.detach => Err(Invalid::new(
                "input_wanted",
                "is told by us, and a program that lives on without us has nobody there",
                "ask the child, by waiting_for()",
            )),
            Purpose::Spawn { .. } if self.input_wanted && self.on_stream_event.is_none() => {
                Err(Invalid::new(
                    "input_wanted",
                    "has nobody to be told",
                    "give it a callback for events (on_stream_event), or ask the child, by \
                     waiting_for()",
                ))
            }
            Purpose::Spawn { .. } if !self.is_for_spawn() => Err(Invalid::new(
                "a callback",
                "is for run(), not for spawn()",
                "read the streams yourself, or use run()",
            )),
            Purpose::Spawn { overflow: None } if !self.taps.is_empty() => Err(Invalid::new(
                "a copy",
                "needs the streams to be read ahead, and they are bare pipes",
                "spill, block with memory, or drop in place of that",
            )),
            Purpose::Spawn { .. } => self.taps.validate(spec),
        }
    }

    fn validate_run(&self, spec: &Spec) -> Result<(), Invalid> {
        if self.on_stream_event.is_some() {
            return Err(Invalid::new(
                "on_stream_event",
                "is for spawn(), not for run()",
                "a run reads its streams; what it has to tell comes by on_event",
            ));
        }
        Frame::new(self.framing())?;
        self.taps.validate(spec)?;
        let is_relayed = |sink: &Sink| matches!(sink, Sink::Relay);
        if self.relay.is_some() && !is_relayed(&spec.stdout) && !is_relayed(&spec.stderr) {
            return Err(Invalid::new(
                "relay_with",
                "has nothing to relay",
                "have stdout or stderr relayed",
            ));
        }
        Ok(())
    }

    /// True if there is nothing that takes part in a run alone.
    fn is_for_spawn(&self) -> bool {
        !self.taps.cuts_lines()
            && self.relay.is_none()
            && self.every.is_none()
            && self.framing.is_none()
            && self.on_event.is_none()
            && self.watch.is_none()
    }
}
