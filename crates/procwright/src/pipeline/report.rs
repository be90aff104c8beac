//! What came of a pipeline.

use std::fmt::Write as _;
use std::time::Duration;

use super::judgement::{FunctionReport, Judgement, SuccessRule};
use crate::buffer::Figures;
use crate::run::{Failure, FunctionEnd, ReachedLimit, Reason, Report, Shape, predicate};

/// Everything about a pipeline but its data.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PipelineReport {
    /// What became of each stage, the first one first.
    pub stages: Vec<StageReport>,
    /// Why it is over.
    pub reason: Reason,
    /// The limit for which it was stopped, its own or that of a stage.
    pub limit: Option<ReachedLimit>,
    /// Time from the start to the end of the last stage that ended.
    pub duration: Duration,
    /// How long the stop took, which is a part of that; none if none was needed.
    pub stop_duration: Option<Duration>,
    /// The rule by which it succeeds.
    pub rule: SuccessRule,
    pub(super) shape: Shape,
}

/// What became of one stage.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StageReport {
    /// Everything about its run. What passes to the next stage is not seen here: stdout has
    /// figures at the last stage alone, or at each of a [fan](super::Pipeline::fan) at the end.
    pub report: Report,
    /// What its end means for the whole.
    pub judgement: Judgement,
    /// Figures of the [elastic buffer](super::Pipeline::elastic) behind it; none without one.
    pub elastic: Option<Figures>,
    /// Of a program of a [fan](super::Pipeline::fan) that has a stage before it: figures of what was
    /// passed on to it, of which `bytes_in` came for it and `bytes_out` were written to its stdin.
    /// None of others.
    pub fan: Option<Figures>,
    /// What became of the [function](super::Pipeline::pipe_fn) behind it; none without one.
    pub function: Option<FunctionReport>,
}

/// The result of a pipeline that ended by itself, or that was to be returned anyway.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PipelineOutput {
    /// Everything but the data.
    pub report: PipelineReport,
    /// The captured stdout of the last stage; empty if it was not captured.
    pub stdout: Vec<u8>,
    /// The captured stdout of each program of a [fan](super::Pipeline::fan) but the last, whose is
    /// `stdout`; empty without a fan. See [`stdout_of`](PipelineOutput::stdout_of).
    pub beside: Vec<Vec<u8>>,
    /// The captured stderr of each stage; empty where it was not captured.
    pub stderr: Vec<Vec<u8>>,
}

/// The result of a pipeline whose data went into memory of the caller's own kind, as that of
/// [`Pipeline::run_into`](super::Pipeline::run_into).
#[derive(Debug)]
#[non_exhaustive]
pub struct PipelineCollected<M> {
    /// Everything but the data.
    pub report: PipelineReport,
    /// The captured stdout of the last stage, none if it was not captured.
    pub stdout: Option<M>,
    /// The captured stdout of each program of a [fan](super::Pipeline::fan) but the last, none
    /// where it was not captured; empty without a fan.
    pub beside: Vec<Option<M>>,
    /// The captured stderr of each stage, none where it was not captured; of a spawned one its
    /// end, as all of it went to a reader.
    pub stderr: Vec<Option<M>>,
    /// The failure that ended it, if one did, and the stage that it belongs to; none of these
    /// for one of the whole.
    pub failure: Option<(Option<usize>, Failure)>,
}

impl PipelineOutput {
    /// True if it ended by itself, and well by its rule.
    pub fn success(&self) -> bool {
        self.report.success()
    }

    /// The captured stdout of a stage, which counts from 0: of the last one, and of each program of
    /// a [fan](super::Pipeline::fan). Empty of others, and where it was not captured.
    pub fn stdout_of(&self, stage: usize) -> &[u8] {
        let of = self.report.stages.len();
        match of.checked_sub(stage + 1) {
            Some(0) => &self.stdout,
            Some(behind) => match self.beside.len().checked_sub(behind) {
                Some(nth) => &self.beside[nth],
                None => &[],
            },
            None => &[],
        }
    }

    /// The text of an error: [`PipelineReport::explain`] with what was captured.
    pub fn explain(&self) -> String {
        let stderr: Vec<&[u8]> = self.stderr.iter().map(Vec::as_slice).collect();
        self.report.explain(&stderr)
    }
}

impl PipelineReport {
    /// True if it ended by itself, and well by its rule.
    pub fn success(&self) -> bool {
        let mut stages = self.stages.iter();
        let is_well = |stage: &StageReport| {
            let function = stage.function.is_none_or(|one| one.judgement.is_well());
            function && stage.judgement.is_well()
        };
        self.reason == Reason::Finished && stages.all(is_well)
    }

    /// The commands as a shell takes them, with `|` between, those of a fan as `{a, b}`; of a long
    /// one the beginning and the end.
    pub fn command(&self) -> String {
        let commands = self.stages.iter().map(|stage| stage.report.command());
        joined(commands, &self.shape)
    }

    /// How it came out, in a line without the commands: `ended well`, `failed: stage 2 of 3
    /// exited with code 3`, `timed out after 2 s (stopped in 0.011 s)`.
    pub fn outcome(&self) -> String {
        let stopped = self
            .reason
            .stopped_after(self.limit, self.duration, self.stop_duration);
        stopped.unwrap_or_else(|| self.own_outcome())
    }

    fn own_outcome(&self) -> String {
        if self.success() {
            return "ended well".to_owned();
        }
        let failed = self.failed().map(|(place, stage)| {
            let outcome = stage.report.outcome();
            format!("stage {} of {} {outcome}", place + 1, self.stages.len())
        });
        let functions = self.failed_functions().map(|(place, function)| {
            let name = self.function_name(place);
            format!("{name} {}", told(function.end))
        });
        let failed: Vec<String> = failed.chain(functions).collect();
        format!("failed: {}", failed.join(", "))
    }

    /// The commands and the outcome, in a line.
    pub fn summary(&self) -> String {
        format!("{} {}", self.command(), self.outcome())
    }

    /// The stages that are to blame, with their places.
    pub fn failed(&self) -> impl Iterator<Item = (usize, &StageReport)> {
        let stages = self.stages.iter().enumerate();
        stages.filter(|(_, stage)| stage.judgement == Judgement::Failed)
    }

    /// The functions that are to blame, with the places of the stages before them.
    fn failed_functions(&self) -> impl Iterator<Item = (usize, FunctionReport)> {
        let stages = self.stages.iter().enumerate();
        let functions = stages.filter_map(|(place, stage)| Some((place, stage.function?)));
        functions.filter(|(_, function)| function.judgement == Judgement::Failed)
    }

    fn function_name(&self, place: usize) -> String {
        format!(
            "the function behind stage {} of {}",
            place + 1,
            self.stages.len()
        )
    }

    /// The text of an error: the outcome, each stage that is to blame with what is known of it
    /// and the end of its `stderr`, and the stages that ended only because of those.
    pub fn explain(&self, stderr: &[&[u8]]) -> String {
        self.explain_to(stderr, "Until::Exit")
    }

    /// [`explain`](Self::explain) for users of a front end, in which
    /// [`Until::Exit`](crate::Until::Exit) is written as `until_exit`.
    pub fn explain_to(&self, stderr: &[&[u8]], until_exit: &str) -> String {
        let mut text = self.summary();
        let of = self.stages.len();
        let was_held_up = matches!(self.reason, Reason::Timeout | Reason::IdleTimeout);
        for (place, stage) in self.failed() {
            let stderr = stderr.get(place).copied().unwrap_or_default();
            let what = match was_held_up && stage.report.reason != Reason::Finished {
                true => " held up the rest",
                false => "",
            };
            let facts = stage.report.explain_to(stderr, until_exit);
            let facts = facts.replace('\n', "\n  ");
            let _ = write!(text, "\n  stage {} of {of}{what}: {facts}", place + 1);
        }
        for (place, function) in self.failed_functions() {
            let name = self.function_name(place);
            let _ = match function.end {
                FunctionEnd::Cancelled => write!(text, "\n  {name} held up the rest"),
                end => write!(text, "\n  {name} {}", told(end)),
            };
        }
        let stages = self.stages.iter().enumerate();
        for (place, stage) in stages.filter(|(_, one)| one.judgement == Judgement::Collateral) {
            let command = stage.report.command();
            let ended = predicate(stage.report.status);
            let why = match stage.report.reason {
                Reason::Finished if self.shape.behind(place).len() > 1 => {
                    "all that read it had ended, and not all well"
                }
                Reason::Finished => "the next one had failed",
                _ => "all were stopped",
            };
            let _ = write!(
                text,
                "\n  stage {} of {of}: {command} {ended}, since {why}",
                place + 1
            );
        }
        text
    }
}

/// What a function has come to, as a predicate.
fn told(end: FunctionEnd) -> &'static str {
    match end {
        FunctionEnd::Returned => "returned",
        FunctionEnd::BrokenPipe => "wrote what nobody reads",
        FunctionEnd::Failed => "failed",
        FunctionEnd::Cancelled => "was cut short",
        FunctionEnd::Running => "has not returned, and its thread goes on",
    }
}

/// Commands with `|` between; those that stand side by side as one.
pub(super) fn joined(commands: impl Iterator<Item = String>, shape: &Shape) -> String {
    let commands: Vec<String> = commands.collect();
    let row = shape.row().map(|place| match &commands[place] {
        [one] => one.clone(),
        many => format!("{{{}}}", shortened(many, ", ", "programs")),
    });
    shortened(&row.collect::<Vec<_>>(), " | ", "stages")
}

/// All of these, or of many the beginning and the end.
fn shortened(parts: &[String], between: &str, what: &str) -> String {
    match parts {
        [first, second, third, .., last] if parts.len() > 6 => {
            let left_out = format!("[… {} {what} …]", parts.len() - 4);
            [first, second, third, &left_out, last]
                .map(String::as_str)
                .join(between)
        }
        all => all.join(between),
    }
}
