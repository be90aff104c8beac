//! A pipeline whose caller takes turns with it, and what comes of it in the end.

use std::collections::BTreeMap;

use super::error::Error;
use super::judgement::{StageEnd, SuccessRule, judge};
use super::report::{PipelineCollected, PipelineReport, StageReport};
use crate::run::{Demand, JoinedResult, JoinedRuns, Joint, Reason};
use crate::spool::Memory;
use procwright_os::fork::ProcessOwned;

/// A pipeline that was started, and whose caller takes turns with it: what
/// [`Pipeline::begin_into`](super::Pipeline::begin_into) gives. It is to a pipeline what
/// [`Ongoing`](crate::Ongoing) is to a run, with all that this says of turns, of a drop before
/// the end, and of forks.
///
/// ```
/// use procwright::{Command, Reason, Sink};
///
/// let forever = Command::new("yes").pipe(Command::new("cat").stdout(Sink::Null));
/// let mut pipeline = forever.begin_into::<Vec<u8>>()?;
/// pipeline.kill();
/// let collected = pipeline.finish()?;
/// assert_eq!(collected.report.reason, Reason::Cancelled);
/// # Ok::<(), procwright::pipeline::Error>(())
/// ```
pub struct OngoingPipeline<'a, M> {
    runs: ProcessOwned<JoinedRuns<'a, M>>,
    /// The commands as a shell takes them.
    command: String,
    rule: SuccessRule,
    ok_codes: BTreeMap<usize, Vec<i32>>,
}

impl<'a, M: Memory> OngoingPipeline<'a, M> {
    pub(super) fn new(
        runs: JoinedRuns<'a, M>,
        command: String,
        rule: SuccessRule,
        ok_codes: BTreeMap<usize, Vec<i32>>,
    ) -> OngoingPipeline<'a, M> {
        OngoingPipeline {
            runs: ProcessOwned::new(runs),
            command,
            rule,
            ok_codes,
        }
    }

    /// Goes on until the watch asks for a pause, and returns whether all are over.
    ///
    /// # Blocking
    /// Until then.
    pub fn proceed(&mut self) -> bool {
        self.runs.drive() || !self.runs.is_ours()
    }

    /// Has all stopped, as a cancel does. Nothing more if they are being stopped, or over.
    pub fn stop(&mut self) {
        self.runs.demand(Demand::Stop);
    }

    /// Has all stopped without more grace, but for those that are over.
    pub fn kill(&mut self) {
        self.runs.demand(Demand::Kill);
    }

    /// Goes on to the end, without pauses, and gives what came of it.
    ///
    /// # Blocking
    /// Until then.
    ///
    /// # Errors
    /// [`Error::Forked`] only.
    pub fn finish(mut self) -> Result<PipelineCollected<M>, Error> {
        while !self.proceed() {}
        match self.runs.is_ours() {
            true => {
                let result = self.runs.into_inner().conclude();
                Ok(concluded(result, self.rule, &self.ok_codes))
            }
            false => Err(Error::Forked {
                command: self.command,
            }),
        }
    }
}

impl<M> std::fmt::Debug for OngoingPipeline<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OngoingPipeline")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

fn concluded<M: Memory>(
    result: JoinedResult<M>,
    rule: SuccessRule,
    ok_codes: &BTreeMap<usize, Vec<i32>>,
) -> PipelineCollected<M> {
    let ends = result.stages.iter().enumerate().map(|(place, stage)| {
        let stderr = stage.stderr.as_ref();
        StageEnd {
            report: &stage.report,
            stderr: stderr.map(Memory::as_bytes).unwrap_or_default(),
            ok_codes: ok_codes.get(&place).map(Vec::as_slice).unwrap_or_default(),
        }
    });
    let ends: Vec<StageEnd<'_>> = ends.collect();
    let judgements = judge(rule, &ends, &result.shape, &result.joints, result.stop);
    let mut failure = result.failure;
    let mut stages = Vec::with_capacity(result.stages.len());
    let mut stdouts = Vec::with_capacity(result.shape.last().len());
    let mut stderr = Vec::with_capacity(result.stages.len());
    let parts = result.stages.into_iter().zip(judgements);
    for (place, (stage, (judgement, function))) in parts.enumerate() {
        if let Some(own) = stage.failure {
            failure.get_or_insert((Some(place), own));
        }
        if !result.shape.is_read(place) {
            stdouts.push(stage.stdout);
        }
        stderr.push(stage.stderr);
        let before = result.shape.before(place);
        let fan = before.and_then(|(before, reader)| result.joints[before].fan_figures(reader));
        stages.push(StageReport {
            report: stage.report,
            judgement,
            elastic: result.joints.get(place).and_then(Joint::figures),
            function,
            fan,
        });
    }
    let stops = stages.iter().filter_map(|stage| stage.report.stop_duration);
    PipelineCollected {
        report: PipelineReport {
            reason: result.stop.map_or(Reason::Finished, |stop| stop.reason),
            limit: result.limit,
            duration: result.duration,
            stop_duration: stops.max(),
            rule,
            stages,
            shape: result.shape,
        },
        stdout: stdouts.pop().flatten(),
        beside: stdouts,
        stderr,
        failure,
    }
}
