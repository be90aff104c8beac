//! One call: start, drain, stop, result.

mod child_held;
mod child_report;
mod child_timeout;
mod collected;
mod engine;
mod error;
mod event;
mod event_thread;
mod hooks;
#[cfg(feature = "serde")]
mod json;
mod outlets;
mod output;
mod ticker;
mod watch;

pub use collected::{Collected, Failure};
pub(crate) use engine::{
    Behind, JoinedResult, JoinedRuns, JoinedStage, JoinedView, Joint, JointHooks, JointStop, Run,
    Shape, StageFunction, StageUnstarted, start, start_joined,
};
pub use engine::{FunctionEnd, StageInput, StageMoment, StageOutput};
pub use error::{Error, Foreign};
pub use event::Event;
pub(crate) use event_thread::EventThread;
pub(crate) use hooks::{EventHook, Hooks};
#[cfg(feature = "serde")]
pub(crate) use json::text as bytes_to_json;
#[cfg(feature = "serde")]
pub use json::text_to_json;
pub(crate) use outlets::Outlets;
pub(crate) use output::predicate;
pub use output::{Output, ReachedLimit, Reason, Report, StreamInfo};
pub use watch::{Demand, Moment, Watch};

pub(crate) use crate::child::StdinProducer;
