//! How far joined runs are, for the hook that the clock calls.

use std::time::Instant;

use super::{JoinedRuns, Joint};
use crate::buffer::Figures;
use crate::run::engine::event_loop::moment;
use crate::run::ticker::Ticker;
use crate::run::watch::Moment;
use crate::spool::Memory;
use procwright_os::time::Deadline;

/// How far a stage of a pipeline is: see [`Pipeline::every`](crate::Pipeline::every).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StageMoment<'m> {
    /// Its program, and the streams of that which are seen here.
    pub program: Moment<'m>,
    /// Figures of the [elastic buffer](crate::Pipeline::elastic) behind it; none without one,
    /// where nobody knows what has passed to the next stage.
    pub elastic: Option<Figures>,
    /// Figures of what was passed on to it as one of several programs that read the same one: see
    /// [`StageReport::fan`](crate::pipeline::StageReport::fan).
    pub fan: Option<Figures>,
}

/// Called with how far each stage is.
pub(crate) type StagesHook<'a> = Box<dyn FnMut(&[StageMoment<'_>]) + 'a>;

impl<M: Memory> JoinedRuns<'_, M> {
    /// Calls the hook of the clock if it is time for that.
    pub(super) fn tick(&mut self, now: Instant) {
        let ticker = self.ticker.as_mut();
        let Some(hook) = ticker.and_then(|ticker| ticker.due(now)) else {
            return;
        };
        let stages = self.runs.iter().enumerate().map(|(place, run)| {
            let is_running = !run.program.has_exited();
            let before = self.shape.before(place);
            let before = before.and_then(|(at, reader)| Some((self.joints.get(at)?, reader)));
            StageMoment {
                program: moment(&run.streams, &run.program.running, is_running, &run.phase),
                elastic: self.joints.get(place).and_then(Joint::figures),
                fan: before.and_then(|(joint, reader)| joint.fan_figures(reader)),
            }
        });
        let stages: Vec<StageMoment<'_>> = stages.collect();
        hook(&stages);
    }

    /// The time of its next call.
    pub(super) fn next_tick(&self) -> Deadline {
        let ticker = self.ticker.as_ref();
        ticker.map_or(Deadline::NEVER, Ticker::next)
    }
}
