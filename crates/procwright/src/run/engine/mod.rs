//! The life of a run: one loop on the caller's thread that moves bytes, watches
//! the clock and steps a stop, and never waits for anything but all of them.

mod conclude;
mod connect;
mod event_loop;
mod explain;
mod holders;
mod host;
mod joined;
mod program;
mod run_state;
mod start;
mod stop;
mod tell;

pub(crate) use joined::{
    Behind, JoinedResult, JoinedRuns, JoinedStage, JoinedView, Joint, JointHooks, JointStop, Shape,
    StageFunction, StageUnstarted, start_joined,
};
pub use joined::{FunctionEnd, StageInput, StageMoment, StageOutput};
pub(crate) use run_state::Run;
pub(crate) use start::start;
