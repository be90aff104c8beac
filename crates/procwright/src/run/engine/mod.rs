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

pub use joined::StageMoment;
pub(crate) use joined::{
    JoinedResult, JoinedRuns, JoinedStage, JoinedView, Joint, JointHooks, JointStop,
    StageUnstarted, start_joined,
};
pub(crate) use run_state::Run;
pub(crate) use start::start;
