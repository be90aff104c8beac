//! `pipeline`: programs that are joined by pipes, from their start to their result.

use std::sync::Arc;

use procwright::error::{SpawnError, Step};
use procwright::pipeline::{Error, PipelineReport, SuccessRule};
use procwright::process;
use procwright::time::Timeout;
use procwright::{Command, Failure, Overflow, Pipeline, Spec, Stdin};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use rustix::io::Errno;

use crate::attach::{Attached, drop_deferred, expect_calls};
use crate::bytes::BytesMemory;
use crate::errors::{invalid, pipeline_not_started, start_refused, system};
use crate::events::tell;
use crate::options::{CommonOptions, RawOverflow, overflow};
use crate::pipeline_function::stage_function;
use crate::report::{self, UNTIL_EXIT};
use crate::run::failure_of;
use crate::signals::{WakePipe, WakeupFd};
use crate::stream::{figures, stalled};
use crate::taps::StdinPieces;
use crate::values::{Cancel, Stop, choice, seconds};

/// The options of a pipeline; those of its stages are as of `run`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PipelineOptions<'py> {
    stages: Vec<CommonOptions<'py>>,
    timeout: Option<f64>,
    idle_timeout: Option<f64>,
    stop: Option<Bound<'py, Stop>>,
    cancel: Option<Bound<'py, Cancel>>,
    success: String,
    ok_codes: Vec<(usize, Vec<i32>)>,
    elastic: Vec<(usize, RawOverflow)>,
    /// Of each fan how many programs are before it, and how many it has.
    fans: Vec<(usize, usize)>,
    functions: Vec<(usize, Py<PyAny>)>,
    pub(crate) on_event: Py<PyAny>,
}

/// What a pipeline has for all of its stages.
pub(crate) struct Whole {
    timeout: Timeout,
    idle_timeout: Timeout,
    stop: Option<process::Stop>,
    cancel: Option<procwright::Cancel>,
    rule: SuccessRule,
    ok_codes: Vec<(usize, Vec<i32>)>,
    elastic: Vec<(usize, Overflow)>,
    fans: Vec<(usize, usize)>,
    functions: Vec<(usize, Attached<Py<PyAny>>)>,
}

impl PipelineOptions<'_> {
    /// The spec of each stage, and the `__next__` of an iterator that the first one reads.
    pub(crate) fn specs(&self, py: Python<'_>) -> PyResult<(Vec<Spec>, Option<Py<PyAny>>)> {
        let mut specs = Vec::with_capacity(self.stages.len());
        let mut first = None;
        for stage in &self.stages {
            let (spec, next) = stage.spec(py)?;
            specs.push(spec);
            // The others read what they are joined to.
            first = first.or(next);
        }
        Ok((specs, first))
    }

    pub(crate) fn whole(&self, py: Python<'_>) -> PyResult<Whole> {
        let rule = match &*self.success {
            "forgiving" => SuccessRule::Forgiving,
            "strict" => SuccessRule::Strict,
            "last" => SuccessRule::Last,
            other => {
                let rules = "\"forgiving\", \"strict\" or \"last\"";
                return Err(choice(py, "success", other, rules));
            }
        };
        let time = |name, value| seconds(name, value).map_err(|error| invalid(py, &error));
        let buffers = self.elastic.iter();
        let buffers = buffers.map(|(stage, policy)| Ok((*stage, overflow(py, policy)?)));
        if !self.functions.is_empty() {
            expect_calls(py)?;
        }
        let functions = self.functions.iter();
        let functions =
            functions.map(|(stage, function)| (*stage, Attached::new(function.clone_ref(py))));
        Ok(Whole {
            timeout: time("timeout", self.timeout)?,
            idle_timeout: time("idle_timeout", self.idle_timeout)?,
            stop: self.stop.as_ref().map(|stop| stop.get().stop()),
            cancel: self.cancel.as_ref().map(|cancel| cancel.get().handle()),
            rule,
            ok_codes: self.ok_codes.clone(),
            elastic: buffers.collect::<PyResult<_>>()?,
            fans: self.fans.clone(),
            functions: functions.collect(),
        })
    }
}

impl Whole {
    pub(crate) fn of<'a>(self, stages: impl IntoIterator<Item = Command<'a>>) -> Pipeline<'a> {
        let mut pipeline = Pipeline::new(stages)
            .with_fans(self.fans)
            .timeout(self.timeout)
            .idle_timeout(self.idle_timeout)
            .success_rule(self.rule);
        for (stage, codes) in self.ok_codes {
            pipeline = pipeline.ok_codes(stage, codes);
        }
        for (stage, policy) in self.elastic {
            pipeline = pipeline.elastic(stage, policy);
        }
        for (stage, function) in self.functions {
            pipeline = pipeline.function(stage, stage_function(function));
        }
        if let Some(stop) = self.stop {
            pipeline = pipeline.stop(stop);
        }
        match &self.cancel {
            Some(cancel) => pipeline.cancel_on(cancel),
            None => pipeline,
        }
    }
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
    let whole = options.whole(py)?;
    let (specs, next) = options.specs(py)?;
    // Kept in this frame as well, which has the lock when it drops them; the core has not. A hook
    // that is left behind is dropped by its thread.
    let on_event = Arc::new(Attached::new(options.on_event));
    let input = match specs.first().map(|spec| &spec.stdin) {
        Some(Stdin::Bytes(bytes)) => Some(bytes.clone()),
        _ => None,
    };
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
        let mut pipeline = whole.of(stages);
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
        Ok(collected) => {
            let read = |one: Option<BytesMemory>| one.map(|data| data.into_bytes(py)).transpose();
            let outputs = collected.beside.into_iter();
            let outputs = outputs.chain([collected.stdout]).map(read);
            let outputs = outputs.collect::<PyResult<Vec<_>>>()?;
            let stderr = collected.stderr.into_iter().map(read);
            let stderr = stderr.collect::<PyResult<Vec<_>>>()?;
            let words = stderr.iter();
            let words = words.map(|one| one.as_ref().map_or(&[][..], |one| one.as_bytes(py)));
            let words = words.collect::<Vec<_>>();
            let dict = result(py, &collected.report, &outputs, &stderr, &words)?;
            put_failure(&dict, &collected.report, collected.failure)?;
            Ok(dict)
        }
        Err(error) => Err(refused(py, &error)),
    }
}

/// The exception of a pipeline that has no result.
pub(crate) fn refused(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Forked { .. } => {
            let number = std::io::Error::from(Errno::CHILD);
            system(&number, error.to_string())
        }
        Error::Stalled(error) => stalled(py, error),
        Error::Lost { .. } => PyRuntimeError::new_err(error.to_string()),
        error => pipeline_not_started(py, error),
    }
}

/// The result, with what was captured of stdout of the last stages and of stderr of each, and the
/// last words of each.
pub(crate) fn result<'py>(
    py: Python<'py>,
    report: &PipelineReport,
    outputs: &[Option<Py<PyBytes>>],
    stderr: &[Option<Py<PyBytes>>],
    words: &[&[u8]],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("explanation", report.explain_to(words, UNTIL_EXIT))?;
    let stages = PyList::empty(py);
    let last = report.stages.len() - outputs.len();
    for (place, stage) in report.stages.iter().enumerate() {
        let one = report::dict(py, &stage.report)?;
        let of_last = place
            .checked_sub(last)
            .and_then(|nth| outputs[nth].as_ref());
        one.set_item("stdout", of_last)?;
        one.set_item("stderr", &stderr[place])?;
        let facts = stage.report.explain_to(words[place], UNTIL_EXIT);
        one.set_item("explanation", facts)?;
        one.set_item("merged", None::<i32>)?;
        one.set_item("error", None::<i32>)?;
        one.set_item("io_error", None::<i32>)?;
        one.set_item("judgement", stage.judgement.name())?;
        let buffer = stage.elastic.as_ref();
        let buffer = buffer.map(|found| figures(py, found, Some(found.refused)));
        one.set_item("elastic", buffer.transpose()?)?;
        let fan = stage.fan.as_ref();
        let fan = fan.map(|found| figures(py, found, Some(found.refused)));
        one.set_item("fan", fan.transpose()?)?;
        let function = stage.function.as_ref();
        let function = function.map(|found| (found.end.name(), found.judgement.name()));
        one.set_item("function", function)?;
        stages.append(one)?;
    }
    dict.set_item("stages", stages)?;
    dict.set_item("success", report.success())?;
    dict.set_item("rule", report.rule.name())?;
    dict.set_item("reason", report.reason.name())?;
    dict.set_item("outcome", report.outcome())?;
    dict.set_item("summary", report.summary())?;
    dict.set_item("duration_s", report.duration.as_secs_f64())?;
    Ok(dict)
}

/// Puts into a result what it is to raise, if a failure has ended the pipeline.
pub(crate) fn put_failure(
    dict: &Bound<'_, PyDict>,
    report: &PipelineReport,
    failure: Option<(Option<usize>, Failure)>,
) -> PyResult<()> {
    let command_of = |stage: Option<usize>| match stage {
        Some(place) => report.stages[place].report.command(),
        None => report.command(),
    };
    let (error, io_error) = match failure {
        None => (None, None),
        Some((stage, failure)) => failure_of(dict.py(), failure, &command_of(stage))?,
    };
    dict.set_item("error", error)?;
    dict.set_item("io_error", io_error)
}
