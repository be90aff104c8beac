//! Stages of pipelines, and what has come of them.

use procwright::pipeline::{
    Error, Judgement, PipelineOutput, PipelineReport, StageInput, StageOutput,
};
use procwright::{BoxError, Command, Pipeline};

pub(crate) fn shell(line: &str) -> Command<'static> {
    Command::shell(line)
}

pub(crate) fn cat() -> Command<'static> {
    Command::new("cat")
}

/// A function that passes on all that it reads.
pub(crate) fn copy(input: &mut StageInput, output: &mut StageOutput) -> Result<(), BoxError> {
    std::io::copy(input, output)?;
    Ok(())
}

pub(crate) fn judgements(report: &PipelineReport) -> Vec<Judgement> {
    report.stages.iter().map(|stage| stage.judgement).collect()
}

/// The output of a pipeline that has to be stopped.
#[track_caller]
pub(crate) fn stopped(pipeline: Pipeline<'_>) -> PipelineOutput {
    match pipeline.run() {
        Err(Error::Stopped(output)) => *output,
        other => panic!("{other:?}"),
    }
}
