//! `pipeline`: programs that are joined by pipes, from their start to their result.

use std::sync::Arc;

use procwright::error::{SpawnError, Step};
use procwright::pipeline::{Error, PipelineCollected, SuccessRule};
use procwright::{Command, Memory, Pipeline, Stdin};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rustix::io::Errno;

use crate::attach::{Attached, drop_deferred, expect_calls};
use crate::bytes::BytesMemory;
use crate::errors::{invalid, pipeline_not_started, start_refused, system};
use crate::events::tell;
use crate::options::{CommonOptions, RawOverflow, overflow};
use crate::report::{self, UNTIL_EXIT};
use crate::run::failure_of;
use crate::signals::{WakePipe, WakeupFd};
use crate::stream::figures;
use crate::taps::StdinPieces;
use crate::values::{Cancel, Stop, choice, seconds};

/// The options of a pipeline; those of its stages are as of `run`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PipelineOptions<'py> {
    stages: Vec<CommonOptions<'py>>,
    timeout: Option<f64>,
    idle_timeout: Option<f64>,
    stop: Option<Bound<'py, Stop>>,
    cancel: Option<Bound<'py, Cancel>>,
    success: String,
    ok_codes: Vec<(usize, Vec<i32>)>,
    elastic: Vec<(usize, RawOverflow)>,
    on_event: Py<PyAny>,
}

/// Runs programs that are joined by pipes.
///
/// The interpreter lock is free meanwhile as in a run.
#[pyfunction]
#[pyo3(signature = (options, /))]
pub(crate) fn pipeline<'py>(
    py: Python<'py>,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let options: PipelineOptions<'_> = options.extract()?;
    let rule = match &*options.success {
        "forgiving" => SuccessRule::Forgiving,
        "strict" => SuccessRule::Strict,
        "last" => SuccessRule::Last,
        other => {
            let rules = "\"forgiving\", \"strict\" or \"last\"";
            return Err(choice(py, "success", other, rules));
        }
    };
    let time = |name, value| seconds(name, value).map_err(|error| invalid(py, &error));
    let timeout = time("timeout", options.timeout)?;
    let idle_timeout = time("idle_timeout", options.idle_timeout)?;
    let stop = options.stop.as_ref().map(|stop| stop.get().stop());
    let cancel = options.cancel.as_ref().map(|cancel| cancel.get().handle());
    // Kept in this frame as well, which has the lock when it drops it; the core has not. A hook
    // that is left behind is dropped by its thread.
    let on_event = Arc::new(Attached::new(options.on_event));
    let mut specs = Vec::with_capacity(options.stages.len());
    let mut next = None;
    // Kept here for the same reason.
    let mut input = None;
    for (place, stage) in options.stages.iter().enumerate() {
        let (spec, pieces) = stage.spec(py)?;
        if place == 0 {
            next = pieces;
            input = match &spec.stdin {
                Stdin::Bytes(bytes) => Some(bytes.clone()),
                _ => None,
            };
        }
        specs.push(spec);
    }
    if next.is_some() {
        expect_calls(py)?;
    }
    let argv = specs.first().map(|spec| spec.argv.clone());
    let pipe = WakePipe::new().map_err(|error| {
        let argv = argv.unwrap_or_default();
        start_refused(py, &argv, SpawnError::new(Step::Pipe, "", error))
    })?;
    let mut wakeup = WakeupFd::lend(py, &pipe)?;
    let watched = wakeup.as_mut();
    let hook = Arc::clone(&on_event);
    let ok_codes = options.ok_codes;
    let buffers = options.elastic.iter();
    let buffers = buffers.map(|(stage, policy)| Ok((*stage, overflow(py, policy)?)));
    let buffers = buffers.collect::<PyResult<Vec<_>>>()?;
    let mut next = next.map(StdinPieces::new);
    let outcome = py.detach(move || {
        let stages = specs.into_iter().map(|spec| {
            let hook = Arc::clone(&hook);
            let command = Command::from_spec(spec)
                .on_event(move |event| tell(&hook, event))
                .until_exit_written_as(UNTIL_EXIT);
            match next.take() {
                Some(next) => command.stdin_iter(next),
                None => command,
            }
        });
        let mut pipeline = Pipeline::new(stages)
            .timeout(timeout)
            .idle_timeout(idle_timeout)
            .success_rule(rule);
        for (stage, codes) in ok_codes {
            pipeline = pipeline.ok_codes(stage, codes);
        }
        for (stage, policy) in buffers {
            pipeline = pipeline.elastic(stage, policy);
        }
        if let Some(stop) = stop {
            pipeline = pipeline.stop(stop);
        }
        if let Some(cancel) = &cancel {
            pipeline = pipeline.cancel_on(cancel);
        }
        if let Some(wakeup) = watched {
            pipeline = pipeline.watch(wakeup);
        }
        pipeline.run_into::<BytesMemory>()
    });
    if let Some(wakeup) = wakeup {
        wakeup.restore(py);
    }
    drop((on_event, input));
    drop_deferred(py);
    match outcome {
        Ok(collected) => result(py, collected),
        Err(error @ Error::Forked { .. }) => {
            let number = std::io::Error::from(Errno::CHILD);
            Err(system(&number, error.to_string()))
        }
        Err(error) => Err(pipeline_not_started(py, &error)),
    }
}

fn result(
    py: Python<'_>,
    collected: PipelineCollected<BytesMemory>,
) -> PyResult<Bound<'_, PyDict>> {
    let PipelineCollected {
        report,
        stdout,
        stderr,
        failure,
        ..
    } = collected;
    let dict = PyDict::new(py);
    let words: Vec<&[u8]> = stderr
        .iter()
        .map(|one| one.as_ref().map_or(&[][..], Memory::as_bytes))
        .collect();
    dict.set_item("explanation", report.explain_to(&words, UNTIL_EXIT))?;
    let stages = PyList::empty(py);
    let last = report.stages.len() - 1;
    let command_of = |stage: Option<usize>| match stage {
        Some(place) => report.stages[place].report.command(),
        None => report.command(),
    };
    let (error, io_error) = match failure {
        None => (None, None),
        Some((stage, failure)) => failure_of(py, failure, &command_of(stage))?,
    };
    let facts: Vec<String> = report
        .stages
        .iter()
        .zip(&words)
        .map(|(stage, stderr)| stage.report.explain_to(stderr, UNTIL_EXIT))
        .collect();
    let mut stdout = stdout;
    let parts = report.stages.iter().zip(stderr).zip(facts);
    for (place, ((stage, stderr), facts)) in parts.enumerate() {
        let one = report::dict(py, &stage.report)?;
        let stdout = stdout.take_if(|_| place == last);
        for (name, data) in [("stdout", stdout), ("stderr", stderr)] {
            let data = data.map(|data| data.into_bytes(py)).transpose()?;
            one.set_item(name, data)?;
        }
        one.set_item("explanation", facts)?;
        one.set_item("merged", None::<i32>)?;
        one.set_item("error", None::<i32>)?;
        one.set_item("io_error", None::<i32>)?;
        one.set_item("judgement", stage.judgement.name())?;
        let buffer = stage.elastic.as_ref();
        let buffer = buffer.map(|found| figures(py, found, Some(found.refused)));
        one.set_item("elastic", buffer.transpose()?)?;
        stages.append(one)?;
    }
    dict.set_item("stages", stages)?;
    dict.set_item("success", report.success())?;
    dict.set_item("rule", report.rule.name())?;
    dict.set_item("reason", report.reason.name())?;
    dict.set_item("outcome", report.outcome())?;
    dict.set_item("summary", report.summary())?;
    dict.set_item("duration_s", report.duration.as_secs_f64())?;
    dict.set_item("error", error)?;
    dict.set_item("io_error", io_error)?;
    Ok(dict)
}
