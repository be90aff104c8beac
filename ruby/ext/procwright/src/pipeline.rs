//! `Procwright.pipeline`.

use std::sync::Arc;

use magnus::{Error, IntoValue, Object, RArray, RHash, RModule, Ruby, TryConvert, Value, function};
use procwright::buffer::Figures;
use procwright::error::Step;
use procwright::pipeline::{PipelineReport, SuccessRule};
use procwright::process::Stop;
use procwright::time::Timeout;
use procwright::{Cancel, Command, Failure, Foreign, Overflow, Pipeline, Spec};

use crate::arguments::{seconds, stop};
use crate::errors::{choice_error, exception, guarded, pipeline_error, start_refused};
use crate::event_handover::EventHandover;
use crate::function_handover::{self, FunctionCall, FunctionHandover};
use crate::interruptible::{Interrupts, PauseOnInterrupt};
use crate::options::{Options, OverflowParts, each, overflow};
use crate::report::{self, UNTIL_EXIT};
use crate::run::failure_error;
use crate::string::string_from_vec;
use crate::turns;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("pipeline", function!(pipeline, 1))
}

/// Runs programs that are joined by pipes. This thread has Ruby's lock only for interrupts.
fn pipeline(ruby: &Ruby, hash: RHash) -> Result<RHash, Error> {
    guarded(|| {
        let options = Options { ruby, hash };
        let specs = specs(options)?;
        let whole = Whole::from_options(options)?;
        let events = options.get::<Option<&EventHandover>>("events")?;
        let interrupts = Interrupts::try_watch().map_err(|error| {
            let argv = specs.first().map(|spec| &*spec.argv).unwrap_or_default();
            start_refused(argv, Step::Pipe, "", error)
        })?;
        let begun = turns::begin(&interrupts, || {
            let stages = specs.iter().map(|spec| {
                let stage = Command::from_spec(spec.clone()).until_exit_written_as(UNTIL_EXIT);
                match events {
                    Some(events) => stage.on_event(events.hook()),
                    None => stage,
                }
            });
            whole
                .of(stages)
                .watch(PauseOnInterrupt(&interrupts))
                .begin_into::<Vec<u8>>()
        })?;
        let ongoing = begun.map_err(|error| pipeline_error(&error))?;
        let collected = turns::drive(&interrupts, ongoing)?;
        let collected = collected.map_err(|error| pipeline_error(&error))?;
        let report = collected.report;
        raise_failure(&report, collected.failure)?;
        let last_words = collected.stderr.iter();
        let last_words = last_words.map(|one| one.as_deref().unwrap_or_default());
        let texts = Explanations::of(&report, &last_words.collect::<Vec<_>>());
        let outputs = collected.beside.into_iter().chain([collected.stdout]);
        let outputs = strings(ruby, outputs)?;
        let stderr = strings(ruby, collected.stderr)?;
        result(ruby, &report, outputs, stderr, texts)
    })
}

/// What was captured as strings, in an array of Ruby's, since its collector does not look into a Vec.
fn strings(
    ruby: &Ruby,
    captured: impl IntoIterator<Item = Option<Vec<u8>>>,
) -> Result<RArray, Error> {
    let array = ruby.ary_new();
    for data in captured {
        array.push(data.map(string_from_vec).transpose()?)?;
    }
    Ok(array)
}

/// The specs of the stages.
pub(crate) fn specs(options: Options<'_>) -> Result<Vec<Spec>, Error> {
    let ruby = options.ruby;
    each(options.get("stages")?, |stage| {
        let hash = RHash::try_convert(stage)?;
        Options { ruby, hash }.spec()
    })
}

/// The options of all stages together.
pub(crate) struct Whole {
    timeout: Timeout,
    idle_timeout: Timeout,
    stop: Option<Stop>,
    cancel: Option<Cancel>,
    rule: SuccessRule,
    ok_codes: Vec<(usize, Vec<i32>)>,
    elastic: Vec<(usize, Overflow)>,
    /// Of each fan how many programs are before it, and how many it has.
    fans: Vec<(usize, usize)>,
    /// By the stages that they are behind.
    functions: Vec<(usize, Arc<FunctionCall>)>,
}

impl Whole {
    pub(crate) fn from_options(options: Options<'_>) -> Result<Whole, Error> {
        let name: String = options.get("success")?;
        let rules = [
            SuccessRule::Forgiving,
            SuccessRule::Strict,
            SuccessRule::Last,
        ];
        let Some(rule) = rules.into_iter().find(|rule| rule.name() == name) else {
            let rules = ":forgiving, :strict or :last";
            return Err(choice_error("success", &name, rules));
        };
        Ok(Whole {
            timeout: seconds("timeout", options.get("timeout")?)?,
            idle_timeout: seconds("idle_timeout", options.get("idle_timeout")?)?,
            stop: options
                .get::<Option<RArray>>("stop")?
                .map(stop)
                .transpose()?,
            cancel: options.cancel()?,
            rule,
            ok_codes: each(options.get("ok_codes")?, TryConvert::try_convert)?,
            elastic: each(options.get("elastic")?, |behind| {
                let (stage, policy) = <(usize, OverflowParts)>::try_convert(behind)?;
                Ok((stage, overflow(policy)?))
            })?,
            fans: each(options.get("fans")?, TryConvert::try_convert)?,
            functions: each(options.get("functions")?, |behind| {
                let (stage, function) = <(usize, &FunctionHandover)>::try_convert(behind)?;
                Ok((stage, function.call()))
            })?,
        })
    }

    pub(crate) fn of<'a>(&self, stages: impl Iterator<Item = Command<'a>>) -> Pipeline<'a> {
        let mut pipeline = Pipeline::new(stages)
            .with_fans(self.fans.iter().copied())
            .timeout(self.timeout)
            .idle_timeout(self.idle_timeout)
            .success_rule(self.rule);
        for (stage, codes) in &self.ok_codes {
            pipeline = pipeline.ok_codes(*stage, codes.iter().copied());
        }
        for (stage, policy) in &self.elastic {
            pipeline = pipeline.elastic(*stage, *policy);
        }
        for (stage, call) in &self.functions {
            pipeline = pipeline.function(*stage, function_handover::hook(call));
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

/// What a buffer has done, under the names that it has as JSON.
fn figures(ruby: &Ruby, found: &Figures) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    for (name, bytes) in found.counts_at_the_end() {
        hash.aset(ruby.to_symbol(name), bytes)?;
    }
    hash.aset(ruby.to_symbol("blocked_s"), found.refused.as_secs_f64())?;
    Ok(hash)
}

/// What is said of a pipeline, and of each of its stages: made while the last words are still the
/// core's, so that these may become Ruby's without a copy.
pub(crate) struct Explanations {
    whole: String,
    stages: Vec<String>,
}

impl Explanations {
    pub(crate) fn of(report: &PipelineReport, last_words: &[&[u8]]) -> Explanations {
        let stages = report.stages.iter().zip(last_words);
        let of_stage = stages.map(|(stage, words)| stage.report.explain_to(words, UNTIL_EXIT));
        Explanations {
            stages: of_stage.collect(),
            whole: report.explain_to(last_words, UNTIL_EXIT),
        }
    }
}

/// The result, with what was captured of stdout of the last stages and of stderr of each, a string
/// or nil.
pub(crate) fn result(
    ruby: &Ruby,
    report: &PipelineReport,
    outputs: RArray,
    stderr: RArray,
    texts: Explanations,
) -> Result<RHash, Error> {
    let nth = |array: RArray, place: usize| -> Result<Value, Error> {
        array.entry(isize::try_from(place).unwrap_or(isize::MAX))
    };
    let last = report.stages.len() - outputs.len();
    let stages = ruby.ary_new();
    for (place, (stage, text)) in report.stages.iter().zip(texts.stages).enumerate() {
        let hash = report::hash(ruby, &stage.report)?;
        let put = |name: &str, value: Value| hash.aset(ruby.to_symbol(name), value);
        put("explanation", text.into_value_with(ruby))?;
        let stdout = place.checked_sub(last).map(|place| nth(outputs, place));
        put("stdout", stdout.transpose()?.into_value_with(ruby))?;
        put("stderr", nth(stderr, place)?)?;
        let judgement = ruby.to_symbol(stage.judgement.name());
        put("judgement", judgement.into_value_with(ruby))?;
        for (name, found) in [("elastic", &stage.elastic), ("fan", &stage.fan)] {
            let found = found.as_ref().map(|found| figures(ruby, found));
            put(name, found.transpose()?.into_value_with(ruby))?;
        }
        let function = stage.function.map(|found| {
            let names = [found.end.name(), found.judgement.name()];
            ruby.ary_new_from_values(&names.map(|name| ruby.to_symbol(name)))
        });
        put("function", function.into_value_with(ruby))?;
        stages.push(hash)?;
    }
    let hash = ruby.hash_new();
    let put = |name: &str, value: Value| hash.aset(ruby.to_symbol(name), value);
    put("stages", stages.into_value_with(ruby))?;
    put("success", report.success().into_value_with(ruby))?;
    let rule = ruby.to_symbol(report.rule.name());
    put("rule", rule.into_value_with(ruby))?;
    let reason = ruby.to_symbol(report.reason.name());
    put("reason", reason.into_value_with(ruby))?;
    put("outcome", report.outcome().into_value_with(ruby))?;
    put("summary", report.summary().into_value_with(ruby))?;
    put("explanation", texts.whole.into_value_with(ruby))?;
    let duration = report.duration.as_secs_f64();
    put("duration", duration.into_value_with(ruby))?;
    Ok(hash)
}

/// What a pipeline is to raise that a failure has ended.
pub(crate) fn raise_failure(
    report: &PipelineReport,
    failure: Option<(Option<usize>, Failure)>,
) -> Result<(), Error> {
    let Some((stage, failure)) = failure else {
        return Ok(());
    };
    if let (Some(place), Failure::Foreign(Foreign::Function, error)) = (stage, &failure) {
        return Err(exception("function_failed", (place, error.to_string())));
    }
    let command = match stage {
        Some(place) => report.stages[place].report.command(),
        None => report.command(),
    };
    Err(failure_error(failure, &command))
}
