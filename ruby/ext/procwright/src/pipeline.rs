//! `Procwright.pipeline`.

use magnus::{Error, IntoValue, Object, RArray, RHash, RModule, Ruby, TryConvert, Value, function};
use procwright::buffer::Figures;
use procwright::error::Step;
use procwright::pipeline::{PipelineCollected, SuccessRule};
use procwright::process::Stop;
use procwright::time::Timeout;
use procwright::{Cancel, Command, Memory, Overflow, Pipeline};

use crate::arguments::{seconds, stop};
use crate::errors::{choice_error, guarded, pipeline_error, start_refused};
use crate::event_handover::EventHandover;
use crate::interruptible::{Interrupts, PauseOnInterrupt};
use crate::options::{Options, OverflowParts, each, overflow};
use crate::report;
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
        let specs = each(options.get("stages")?, |stage| {
            let hash = RHash::try_convert(stage)?;
            Options { ruby, hash }.spec()
        })?;
        let whole = Whole::from_options(options)?;
        let events = options.get::<Option<&EventHandover>>("events")?;
        let interrupts = Interrupts::try_watch().map_err(|error| {
            let argv = specs.first().map(|spec| &*spec.argv).unwrap_or_default();
            start_refused(argv, Step::Pipe, "", error)
        })?;
        let begun = turns::begin(&interrupts, || {
            let stages = specs.iter().map(|spec| {
                let stage =
                    Command::from_spec(spec.clone()).until_exit_written_as(report::UNTIL_EXIT);
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
        result(ruby, collected.map_err(|error| pipeline_error(&error))?)
    })
}

/// The options of all stages together.
struct Whole {
    timeout: Timeout,
    idle_timeout: Timeout,
    stop: Option<Stop>,
    cancel: Option<Cancel>,
    rule: SuccessRule,
    ok_codes: Vec<(usize, Vec<i32>)>,
    elastic: Vec<(usize, Overflow)>,
}

impl Whole {
    fn from_options(options: Options<'_>) -> Result<Whole, Error> {
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
        })
    }

    fn of<'a>(&self, stages: impl Iterator<Item = Command<'a>>) -> Pipeline<'a> {
        let mut pipeline = Pipeline::new(stages)
            .timeout(self.timeout)
            .idle_timeout(self.idle_timeout)
            .success_rule(self.rule);
        for (stage, codes) in &self.ok_codes {
            pipeline = pipeline.ok_codes(*stage, codes.iter().copied());
        }
        for (stage, policy) in &self.elastic {
            pipeline = pipeline.elastic(*stage, *policy);
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

fn result(ruby: &Ruby, collected: PipelineCollected<Vec<u8>>) -> Result<RHash, Error> {
    let PipelineCollected {
        report,
        mut stdout,
        stderr,
        failure,
        ..
    } = collected;
    if let Some((stage, failure)) = failure {
        let command = match stage {
            Some(place) => report.stages[place].report.command(),
            None => report.command(),
        };
        return Err(failure_error(failure, &command));
    }
    let last_words: Vec<&[u8]> = stderr
        .iter()
        .map(|one| one.as_ref().map(Memory::as_bytes).unwrap_or_default())
        .collect();
    let explanation = report.explain_to(&last_words, report::UNTIL_EXIT);
    let last = report.stages.len() - 1;
    let stages = ruby.ary_new();
    for (place, (stage, stderr)) in report.stages.iter().zip(stderr).enumerate() {
        let hash = report::hash(ruby, &stage.report)?;
        let put = |name: &str, value: Value| hash.aset(ruby.to_symbol(name), value);
        let last_words = stderr.as_deref().unwrap_or_default();
        let explanation = stage.report.explain_to(last_words, report::UNTIL_EXIT);
        put("explanation", explanation.into_value_with(ruby))?;
        let stdout = stdout.take_if(|_| place == last);
        for (name, data) in [("stdout", stdout), ("stderr", stderr)] {
            put(
                name,
                data.map(string_from_vec).transpose()?.into_value_with(ruby),
            )?;
        }
        let judgement = ruby.to_symbol(stage.judgement.name());
        put("judgement", judgement.into_value_with(ruby))?;
        let buffer = stage.elastic.as_ref();
        let buffer = buffer.map(|found| figures(ruby, found)).transpose()?;
        put("elastic", buffer.into_value_with(ruby))?;
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
    put("explanation", explanation.into_value_with(ruby))?;
    let duration = report.duration.as_secs_f64();
    put("duration", duration.into_value_with(ruby))?;
    Ok(hash)
}
