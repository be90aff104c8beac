//! Runs joined by pipes, which are started, driven and stopped as one.
//!
//! Each is a [`Run`] with all that is its own: streams, consumers, limits, its stop, its
//! report. What is here is what they have in common: one thread and one wait, the limits of
//! the whole, and that one of them is not stopped without the others.

mod between;
mod elastic;
mod event_loop;
mod explain;
mod fan;
mod function;
mod merge;
mod moment;
mod next_pipe;
mod passing_thread;
mod shape;
mod start;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::run_state::Run;
use crate::buffer::Figures;
use crate::drain::Gauge;
use crate::looks::Looks;
use crate::run::collected::{Collected, Failure};
use crate::run::output::{ReachedLimit, Reason};
use crate::run::ticker::Ticker;
use crate::run::watch::Watch;
use crate::spool::Memory;
use crate::std_stream::PerStream;
use procwright_os::pipe::{EndsProbe, PipeEnds};
use procwright_os::time::{Deadline, Timeout};
use procwright_process::Cancel;
use procwright_process::holders::{PipeId, Role, RunPipe};

use between::Between;
use moment::StagesHook;

pub(crate) use between::Behind;
pub(crate) use function::StageFunction;
pub use function::{FunctionEnd, StageInput, StageOutput};
pub use moment::StageMoment;
pub(crate) use shape::Shape;
pub(crate) use start::{JoinedStage, StageUnstarted, start_joined};

/// Limits and hooks of all together.
#[derive(Default)]
pub(crate) struct JointHooks<'a> {
    pub(crate) timeout: Timeout,
    pub(crate) idle_timeout: Timeout,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) watch: Option<Box<dyn Watch + 'a>>,
    /// Hook that the clock calls, and how often.
    pub(crate) every: Option<(Duration, StagesHook<'a>)>,
    /// Set before the first signal of a stop that the caller has not asked for, for whoever finds a
    /// pipe broken by that.
    pub(crate) stopping: Option<Arc<AtomicBool>>,
}

/// Runs of which each writes into the next one, or the next ones.
pub(crate) struct JoinedRuns<'a, M> {
    runs: Vec<Run<'a, M>>,
    shape: Shape,
    /// The pipe behind each that is read by others.
    joints: Vec<Joint>,
    hooks: JointHooks<'a>,
    ticker: Option<Ticker<StagesHook<'a>>>,
    started: Instant,
    deadline: Deadline,
    /// Examinations before the limits of all together.
    looks: Looks,
    /// Turns since a deadline came.
    late_turns: u8,
    /// True if the caller wants the end.
    is_unwanted: bool,
    /// True if the caller wants no more grace either.
    is_hurried: bool,
    /// True if the caller is to have a turn.
    is_to_pause: bool,
    stop: Option<JointStop>,
    /// The time at which functions that do not come out of a stop are given up.
    give_up: Deadline,
    /// The first failure of what belongs to the whole, and the place of the run that it is
    /// behind.
    failure: Option<(Option<usize>, Failure)>,
}

/// The pipe between a run and the next one, which nobody here holds open, or this pipe, what reads
/// it, and the pipes from there on.
#[derive(Default)]
pub(crate) struct Joint {
    /// None where no descriptor was left for it.
    probe: Option<EndsProbe>,
    /// Its name, by which those are found that hold it.
    id: Option<PipeId>,
    /// What reads it, and the runs behind read.
    between: Option<Between>,
    /// As it was when the program before it was seen to have ended.
    pub(crate) behind_writer: Option<PipeEnds>,
    /// As it was before the first signal of a stop.
    pub(crate) at_stop: Option<PipeEnds>,
    /// Whether each of the runs behind waited for more then.
    pub(crate) waited: Vec<bool>,
}

impl Joint {
    fn look(&self) -> Option<PipeEnds> {
        self.probe.as_ref()?.look().ok()
    }

    /// Notes that all are being stopped, before the first signal: what that does to a pipe says
    /// nothing of those that hang.
    fn note_stop(&mut self, readers: usize) {
        let ends = self.look();
        self.at_stop = ends;
        let waited = (0..readers).map(|reader| match &self.between {
            None => ends.is_some_and(|ends| ends.is_empty),
            Some(between) => between.is_empty(reader),
        });
        self.waited = waited.collect();
        if let Some(between) = &mut self.between {
            between.note_stop(ends.is_some_and(|ends| !ends.is_empty || !ends.has_writer));
        }
    }

    /// Figures of the buffer, if there is one.
    pub(crate) fn figures(&self) -> Option<Figures> {
        self.between.as_ref().and_then(Between::figures)
    }

    /// Figures of what the fan has passed on to one of its readers, if there is one.
    pub(crate) fn fan_figures(&self, reader: usize) -> Option<Figures> {
        self.between.as_ref()?.fan_figures(reader)
    }

    /// What became of the function, if there is one, and whether it held up the rest when all
    /// were stopped.
    pub(crate) fn function(&self) -> Option<(FunctionEnd, bool)> {
        let function = self.between.as_ref()?.function()?;
        Some((function.end(), function.held_up()))
    }

    /// The end that the program before it writes to, and whoever has it from that program.
    fn write_end(&self) -> Option<RunPipe> {
        let label = "the pipe to the next stage";
        Some(RunPipe::new(self.id?, Role::Writes, label))
    }
}

/// The stop of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JointStop {
    pub(crate) reason: Reason,
    /// The place of the run that it is for; none for a limit or a cancel of the whole.
    pub(crate) by: Option<usize>,
}

/// All that came of the runs.
pub(crate) struct JoinedResult<M> {
    pub(crate) stages: Vec<Collected<M>>,
    pub(crate) shape: Shape,
    pub(crate) joints: Vec<Joint>,
    pub(crate) stop: Option<JointStop>,
    pub(crate) limit: Option<ReachedLimit>,
    pub(crate) duration: Duration,
    /// The failure of what belongs to the whole, and the place of the run that it is behind.
    pub(crate) failure: Option<(Option<usize>, Failure)>,
}

/// A run under way as those see it who are beside its loop.
#[derive(Debug)]
pub(crate) struct JoinedView {
    pub(crate) pid: i32,
    /// Views of its output pipes.
    pub(crate) gauges: PerStream<Option<Gauge>>,
}

impl<M: Memory> JoinedRuns<'_, M> {
    /// Views of all of them.
    pub(crate) fn views(&self) -> Vec<JoinedView> {
        let view = |run: &Run<'_, M>| JoinedView {
            pid: run.program.running.pid(),
            gauges: run.streams.gauges(),
        };
        self.runs.iter().map(view).collect()
    }

    /// Reaps the programs and gives all that came of the runs.
    pub(crate) fn conclude(self) -> JoinedResult<M> {
        let own_limit = self.stop.filter(|stop| stop.by.is_none());
        let own_limit = own_limit.and_then(|stop| match stop.reason {
            Reason::Timeout => self.hooks.timeout.duration(),
            Reason::IdleTimeout => self.hooks.idle_timeout.duration(),
            Reason::Finished | Reason::Cancelled | Reason::OutputLimit => None,
        });
        let own_limit = own_limit.map(ReachedLimit::Time);
        let mut stages: Vec<Collected<M>> = self.runs.into_iter().map(Run::conclude).collect();
        if let Some(limit) = own_limit {
            let stopped = stages.iter_mut().map(|stage| &mut stage.report);
            stopped
                .filter(|report| report.reason != Reason::Finished)
                .for_each(|report| report.limit = Some(limit));
        }
        let of_stage = |place: usize| stages.get(place)?.report.limit;
        let by = self.stop.and_then(|stop| stop.by);
        JoinedResult {
            limit: own_limit.or_else(|| of_stage(by?)),
            stages,
            shape: self.shape,
            joints: self.joints,
            stop: self.stop,
            duration: self.started.elapsed(),
            failure: self.failure,
        }
    }
}
