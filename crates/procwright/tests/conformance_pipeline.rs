//! The cases of a pipeline that every front end must pass, read from
//! `conformance/pipeline.json`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::time::Duration;

use procwright::pipeline::{Error, PipelineOutput, StageInput, StageOutput, SuccessRule};
use procwright::process::{Exit, Stop};
use procwright::spec::{SetupOption, SetupValue};
use procwright::time::Timeout;
use procwright::{
    Beyond, BoxError, Command, Foreign, Limit, Overflow, Pipeline, Reason, Sink, Spec,
};
use serde_json::{Map, Value, json};
use test_support::{sys, watchdog};

#[test]
fn pipeline() {
    let _watchdog = watchdog("conformance_pipeline");
    test_support::conformance("pipeline", "rust", |case| check(case, &outcome(case)));
}

/// A stage: its words, and options of its own.
fn stage<'a>(stage: &Value, of_all: &Map<String, Value>) -> Command<'a> {
    let words = stage.as_array().or_else(|| stage["argv"].as_array());
    let argv = words.unwrap().iter().map(|word| match word.as_str() {
        Some("$CHILD") => test_children::path().into_os_string(),
        word => word.unwrap().into(),
    });
    let mut options: BTreeMap<&String, &Value> = of_all.iter().collect();
    let own = stage.as_object();
    options.extend(
        own.into_iter()
            .flatten()
            .filter(|(name, _)| *name != "argv"),
    );
    let mut spec = Spec::new(argv);
    for (name, value) in options {
        match name.as_str() {
            "until" => spec.until = value.as_str().unwrap().parse().unwrap(),
            "timeout" => spec.timeout = timeout(value),
            "stderr" => spec.stderr = sink(value),
            "cwd" => spec.cwd = Some(value.as_str().unwrap().into()),
            "extra_env" => {
                for (name, value) in value.as_object().unwrap() {
                    let value = value.as_str().map(Into::into);
                    spec.extra_env.push((name.into(), value));
                }
            }
            "limit" => {
                let beyond = match of_all["beyond"].as_str() {
                    Some("fail") => Beyond::Fail,
                    Some("head_and_tail") => Beyond::HeadAndTail,
                    other => panic!("{other:?}"),
                };
                let bytes = value.as_u64().unwrap();
                spec.limit = Some(Limit { bytes, beyond });
            }
            "beyond" => {}
            name => {
                let option = SetupOption::named(name);
                let option = option.unwrap_or_else(|| panic!("unknown option {name}"));
                let value = SetupValue::Flag(value.as_bool().unwrap());
                option.set(&mut spec, value).unwrap();
            }
        }
    }
    Command::from_spec(spec)
}

type Function = fn(&mut StageInput, &mut StageOutput) -> Result<(), BoxError>;

fn function(name: &str) -> Function {
    match name {
        "copy" => |input, output| {
            io::copy(input, output)?;
            Ok(())
        },
        "upcase" => |input, output| {
            for line in BufReader::new(input).lines() {
                writeln!(output, "{}", line?.to_uppercase())?;
            }
            Ok(())
        },
        "first_line" => first_line,
        "fail" => |input, output| {
            first_line(input, output)?;
            Err("on purpose".into())
        },
        other => panic!("unknown function {other}"),
    }
}

fn first_line(input: &mut StageInput, output: &mut StageOutput) -> Result<(), BoxError> {
    let mut line = Vec::new();
    BufReader::new(input).read_until(b'\n', &mut line)?;
    Ok(output.write_all(&line)?)
}

fn outcome(case: &Value) -> Result<PipelineOutput, Error> {
    let mut of_stages = case["options"].as_object().cloned().unwrap_or_default();
    let mut take = |name: &str| of_stages.remove(name);
    let rule = take("success");
    let (ok_codes, elastic) = (take("ok_codes"), take("elastic"));
    let time = ["timeout", "idle_timeout"].map(&mut take);
    let [check, raise] = ["check", "raise"].map(&mut take);
    let (signal, grace, stdout) = (take("signal"), take("grace"), take("stdout"));
    let stages = case["stages"].as_array().unwrap();
    let last = stages.len().wrapping_sub(1);
    let mut pipeline = Pipeline::new([]);
    for (place, words) in stages.iter().enumerate() {
        if let Some(name) = words["function"].as_str() {
            pipeline = pipeline.pipe_fn(function(name));
            continue;
        }
        if let Some(programs) = words["fan"].as_array() {
            pipeline = pipeline.fan(programs.iter().map(|words| stage(words, &of_stages)));
            continue;
        }
        let mut stage = stage(words, &of_stages);
        if let Some(hex) = case["stdin_hex"].as_str().filter(|_| place == 0) {
            stage = stage.stdin_bytes(unhex(hex));
        }
        if let Some(zeros) = case["stdin_zeros"].as_u64().filter(|_| place == 0) {
            stage = stage.stdin_bytes(vec![0; usize::try_from(zeros).unwrap()]);
        }
        if let Some(place) = stdout.as_ref().filter(|_| place == last) {
            stage = stage.stdout(sink(place));
        }
        pipeline = pipeline.pipe(stage);
    }
    if let Some(rule) = rule {
        pipeline = pipeline.success_rule(match rule.as_str().unwrap() {
            "forgiving" => SuccessRule::Forgiving,
            "strict" => SuccessRule::Strict,
            "last" => SuccessRule::Last,
            other => panic!("{other}"),
        });
    }
    for (stage, codes) in ok_codes.iter().flat_map(|codes| codes.as_object().unwrap()) {
        let codes = codes.as_array().unwrap().iter();
        let codes = codes.map(|code| i32::try_from(code.as_i64().unwrap()).unwrap());
        pipeline = pipeline.ok_codes(stage.parse().unwrap(), codes);
    }
    for stage in elastic.iter().flat_map(|stages| stages.as_array().unwrap()) {
        let stage = usize::try_from(stage.as_u64().unwrap()).unwrap();
        pipeline = pipeline.elastic(stage, Overflow::default());
    }
    let [whole, silence] = time;
    if let Some(time) = whole {
        pipeline = pipeline.timeout(timeout(&time));
    }
    if let Some(time) = silence {
        pipeline = pipeline.idle_timeout(timeout(&time));
    }
    let mut stop = Stop::default();
    if let Some(signal) = signal {
        stop = stop.with_signal(signal.as_str().unwrap().parse().unwrap());
    }
    if let Some(grace) = grace {
        stop = stop.with_grace(Duration::from_secs_f64(grace.as_f64().unwrap()));
    }
    if check.is_some() {
        pipeline = pipeline.check();
    }
    if raise.is_none() {
        pipeline = pipeline.stopped_is_ok();
    }
    pipeline.stop(stop).run()
}

fn timeout(value: &Value) -> Timeout {
    Timeout::from_secs_f64(value.as_f64().unwrap()).unwrap()
}

fn sink(value: &Value) -> Sink {
    match value.as_str().unwrap() {
        "merged" => Sink::Merged,
        "null" => Sink::Null,
        other => panic!("{other}"),
    }
}

fn check(case: &Value, outcome: &Result<PipelineOutput, Error>) {
    let name = &case["name"];
    let expect = case["expect"].as_object().unwrap();
    for (what, expected) in expect {
        let actual = match (what.as_str(), outcome) {
            ("error", Err(Error::Invalid { .. })) => "invalid".into(),
            ("error", Err(Error::Spawn { .. })) => "spawn".into(),
            ("stage", Err(Error::Spawn { stage, .. })) => (*stage).into(),
            ("step", Err(Error::Spawn { source, .. })) => source.step.name().into(),
            ("errno", Err(Error::Spawn { source, .. })) => source.errno().into(),
            (
                "error",
                Err(Error::Foreign {
                    what: Foreign::Function,
                    ..
                }),
            ) => "function".into(),
            ("error", Err(Error::Failed(_))) => "failed".into(),
            ("error", Err(Error::Stopped(output))) => output.report.reason.name().into(),
            ("error", Ok(_)) => Value::Null,
            ("says", Err(error)) => {
                let text = error.to_string();
                let words = expected.as_array().unwrap().iter();
                let said = words.filter(|words| text.contains(words.as_str().unwrap()));
                said.cloned().collect()
            }
            (_, Ok(output)) => fact(what, output),
            (_, Err(error)) => match error.output() {
                // An error is accepted only where one is expected, along with its output.
                Some(output) if expect.contains_key("error") => fact(what, output),
                _ => panic!("{name}: {error}"),
            },
        };
        assert_eq!(&actual, expected, "{name}: {what}: {outcome:?}");
    }
    // A pipeline that was not stopped has left them.
    if let Ok(output) = outcome
        && output.report.reason == Reason::Finished
    {
        let last = &output.report.stages.last().unwrap().report;
        let held_by = last.stdout_info.iter().flat_map(|info| &info.held_by);
        held_by.for_each(|holder| sys::end(holder.pid));
    }
}

fn fact(what: &str, output: &PipelineOutput) -> Value {
    let report = &output.report;
    let stages = || report.stages.iter();
    match what {
        "success" => output.success().into(),
        "rule" => report.rule.name().into(),
        "reason" => report.reason.name().into(),
        "outcome" => report.outcome().into(),
        "judgements" => stages().map(|stage| stage.judgement.name()).collect(),
        "reasons" => stages().map(|stage| stage.report.reason.name()).collect(),
        "statuses" => stages()
            .map(|stage| match stage.report.status {
                Exit::Code(code) => json!({ "exited": code }),
                Exit::Signal { signal, .. } => json!({ "signaled": signal.number() }),
                other => panic!("{other:?}"),
            })
            .collect(),
        "stdout" => text(&output.stdout),
        "stdouts" => {
            let of_fan = output.beside.iter().chain([&output.stdout]);
            of_fan.map(|stdout| text(stdout)).collect()
        }
        "fanned_out" => stages()
            .map(|stage| stage.fan.map(|figures| figures.bytes_out))
            .collect(),
        "stdout_hex" => {
            let hex = output.stdout.iter().map(|byte| format!("{byte:02x}"));
            hex.collect::<String>().into()
        }
        "stdout_bytes" => output.stdout.len().into(),
        "stderrs" => stages()
            .zip(&output.stderr)
            .map(|(stage, stderr)| match stage.report.stderr_info {
                Some(_) => text(stderr),
                None => Value::Null,
            })
            .collect(),
        "passed_on" => stages()
            .map(|stage| stage.elastic.map(|figures| figures.bytes_out))
            .collect(),
        "functions" => stages()
            .map(|stage| {
                stage
                    .function
                    .map(|its| [its.end.name(), its.judgement.name()])
            })
            .map(|names| json!(names))
            .collect(),
        "held" => {
            let last = &report.stages.last().unwrap().report;
            let info = last.stdout_info.as_ref();
            info.is_some_and(|info| !info.held_by.is_empty()).into()
        }
        "survivors" => {
            let survivors = stages().map(|stage| stage.report.survivors.len());
            survivors.sum::<usize>().into()
        }
        other => panic!("unknown expectation {other}"),
    }
}

fn text(bytes: &[u8]) -> Value {
    String::from_utf8(bytes.to_vec()).unwrap().into()
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
    digits
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}
