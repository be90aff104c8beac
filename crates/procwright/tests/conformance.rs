//! The cases that every front end must pass, read from `conformance/run.json`.

use std::ffi::OsString;
use std::time::Duration;

use procwright::process::{Exit, Stop};
use procwright::terminal::Size;
use procwright::time::Timeout;
use procwright::{Beyond, Command, Error, Limit, Output, Sink, Spec, StreamInfo, Until};
use serde_json::Value;

#[test]
fn run() {
    let text = include_str!("../../../conformance/run.json");
    let cases: Value = serde_json::from_str(text).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    assert!(cases.len() > 20);
    for case in cases {
        println!("{}", case["name"]);
        check(case, &outcome(case));
    }
}

fn outcome(case: &Value) -> Result<Output, Error> {
    let argv = case["argv"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| match word.as_str().unwrap() {
            "$CHILD" => test_children::path().into_os_string(),
            word => OsString::from(word),
        });
    let mut command = Command::from_spec(Spec::new(argv)).stopped_is_ok();
    if let Some(hex) = case["stdin_hex"].as_str() {
        command = command.stdin_bytes(unhex(hex));
    }
    if let Some(zeros) = case["stdin_zeros"].as_u64() {
        command = command.stdin_bytes(vec![0; usize::try_from(zeros).unwrap()]);
    }
    let none = serde_json::Map::new();
    let options = case["options"].as_object().unwrap_or(&none);
    let mut stop = Stop::default();
    let mut beyond = Beyond::HeadAndTail;
    let timeout = |value: &Value| Timeout::from_secs_f64(value.as_f64().unwrap()).unwrap();
    for (name, value) in options {
        match name.as_str() {
            "timeout" => command = command.timeout(timeout(value)),
            "idle_timeout" => command = command.idle_timeout(timeout(value)),
            "grace" => stop = stop.with_grace(Duration::from_secs_f64(value.as_f64().unwrap())),
            "until" => {
                assert_eq!(value, "exit");
                command = command.until(Until::Exit);
            }
            "stderr" => {
                command = command.stderr(match value.as_str().unwrap() {
                    "merged" => Sink::Merged,
                    "null" => Sink::Null,
                    other => panic!("stderr: {other}"),
                });
            }
            "beyond" if value == "fail" => beyond = Beyond::Fail,
            "beyond" => assert_eq!(value, "head_and_tail"),
            "limit" => {}
            "env" => {
                let env = value.as_object().unwrap().iter();
                command = command.env_replace(env.map(|(k, v)| (k, v.as_str().unwrap())));
            }
            "pty" => {
                let [rows, columns] = [0, 1].map(|i| value[i].as_u64().unwrap() as u16);
                command = command.pty(Size { rows, columns });
            }
            "cwd" => command = command.cwd(value.as_str().unwrap()),
            other => panic!("unknown option {other}"),
        }
    }
    if let Some(bytes) = options.get("limit") {
        let bytes = bytes.as_u64().unwrap();
        command = command.limit(Limit { bytes, beyond });
    }
    command.stop(stop).run()
}

fn check(case: &Value, outcome: &Result<Output, Error>) {
    let name = &case["name"];
    for (what, expected) in case["expect"].as_object().unwrap() {
        let actual = match (what.as_str(), outcome) {
            ("error", Err(Error::Invalid(_))) => "invalid".into(),
            ("error", Err(Error::Spawn { .. })) => "spawn".into(),
            ("step", Err(Error::Spawn { source, .. })) => source.step.name().into(),
            ("errno", Err(Error::Spawn { source, .. })) => source.errno().into(),
            (_, Ok(output)) => fact(what, output),
            (_, Err(error)) => panic!("{name}: {error}"),
        };
        assert_eq!(&actual, expected, "{name}: {what}: {outcome:?}");
    }
}

fn fact(what: &str, output: &Output) -> Value {
    let report = &output.report;
    let stdout_info =
        |f: fn(&StreamInfo) -> Value| report.stdout_info.as_ref().map_or(Value::Null, f);
    match what {
        "status" => match report.status {
            Exit::Code(code) => serde_json::json!({ "exited": code }),
            Exit::Signal { signal, .. } => serde_json::json!({ "signaled": signal.number() }),
            other => panic!("{other:?}"),
        },
        "reason" => report.reason.name().into(),
        "stdout" => String::from_utf8(output.stdout.clone()).unwrap().into(),
        "stderr" => String::from_utf8(output.stderr.clone()).unwrap().into(),
        "stdout_hex" => {
            let digits: String = output.stdout.iter().map(|b| format!("{b:02x}")).collect();
            digits.into()
        }
        "stdout_bytes" => output.stdout.len().into(),
        "stderr_bytes" => output.stderr.len().into(),
        "stderr_info" => report
            .stderr_info
            .as_ref()
            .map_or(Value::Null, |_| "some".into()),
        "stdout_dropped" => stdout_info(|info| info.dropped_bytes.into()),
        "complete" => stdout_info(|info| info.complete.into()),
        "held" => stdout_info(|info| (!info.held_by.is_empty()).into()),
        "survivors" => report.survivors.len().into(),
        other => panic!("unknown expectation {other}"),
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
