//! One call: start, drain, stop, result.

mod engine;
mod error;
mod event;
mod every;
mod held_child;
#[cfg(feature = "serde")]
mod json;
mod output;
mod tap;
mod watch;

use std::io;
use std::time::Duration;

pub(crate) use crate::spec::quote;
#[cfg(feature = "serde")]
pub use json::text_to_json;

pub use error::{Error, Foreign};
pub use event::Event;
pub(crate) use every::Every;
pub use output::{Output, Reason, Report, StreamInfo};
pub(crate) use tap::{Duty, FullFile, Kind, Lines, Tee, Writer};
pub use tap::{Piece, Tap};

pub(crate) use engine::{Run, check, start};

pub use watch::{Demand, Moment, Watch};

use crate::cancel::Cancel;
pub(crate) use crate::child::Producer;
use crate::drain::Segment;
use crate::spool::fifo::BoxError;

/// What a run has beside its [`Spec`]: all that lives only once.
#[derive(Default)]
pub(crate) struct Extras<'a> {
    /// Brings stdin, on a thread of its own, until it has no more.
    pub(crate) producer: Option<Producer>,
    /// Get copies of stdout and stderr.
    pub(crate) taps: [Vec<Attached>; 2],
    /// Get copies of both, in the order of reading.
    pub(crate) both: Vec<Attached>,
    /// Stands for what would pass the streams on.
    pub(crate) relay: Option<Box<dyn Tap>>,
    /// Told by the clock how far the run is.
    pub(crate) every: Option<(Duration, TickHook<'a>)>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) on_event: Option<EventHook<'a>>,
    /// Gets what a child that is handed out has to tell.
    pub(crate) listener: Option<Listener>,
    /// A descriptor of the caller's, looked after beside the run's own.
    pub(crate) watch: Option<Box<dyn Watch + 'a>>,
    /// Whether orphans come to this process (it is a sub-reaper with one run).
    pub(crate) adopts: bool,
}

impl Extras<'_> {
    /// Whether there is nothing that takes part in a run alone.
    pub(crate) fn is_empty(&self) -> bool {
        self.taps.iter().all(Vec::is_empty)
            && self.both.is_empty()
            && self.relay.is_none()
            && self.every.is_none()
            && self.cancel.is_none()
            && self.on_event.is_none()
            && self.watch.is_none()
    }
}

/// A consumer and what its failure means.
pub(crate) type Attached = (Kind, Duty);

/// Is told by the clock how far a run is.
pub(crate) type TickHook<'a> = Box<dyn FnMut(Moment<'_>) + 'a>;

/// Gets what a run tells while it goes on.
pub(crate) type EventHook<'a> = Box<dyn FnMut(&Event) -> Result<(), BoxError> + 'a>;

/// Gets what a child that is handed out has to tell, on threads of ours.
pub(crate) type Listener = std::sync::Arc<dyn Fn(&Event) + Send + Sync>;

/// All that came of a run.
pub(crate) struct Outcome<M> {
    pub(crate) report: Report,
    pub(crate) stdout: Option<M>,
    pub(crate) stderr: Option<M>,
    pub(crate) merged: Option<Vec<Segment>>,
    pub(crate) trouble: Option<Trouble>,
}

/// What ended a run that neither the program nor the caller wanted to end.
#[derive(Debug)]
pub(crate) enum Trouble {
    Foreign(Foreign, BoxError),
    Io(io::Error),
}
