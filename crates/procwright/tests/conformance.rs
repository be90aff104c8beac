//! The cases that every front end must pass, read from `conformance/run.json`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use procwright::process::{Exit, Scope, Stop};
use procwright::spec::{SetupKind, SetupOption, SetupValue};
use procwright::terminal::Size;
use procwright::time::Timeout;
use procwright::{
    Beyond, Command, Error, Limit, Output, Reason, Sink, Spec, StdStream, StreamInfo,
};
use serde_json::Value;
use test_support::sys;

#[test]
fn run() {
    test_support::conformance("run", "rust", |case| check(case, &outcome(case)));
}

/// Sets the options that are in the library's table.
fn set_up(spec: &mut Spec, options: &serde_json::Map<String, Value>) {
    for (name, value) in options {
        let Some(option) = SetupOption::named(name) else {
            continue;
        };
        let words = || value.as_array().unwrap().iter();
        let text = || value.as_str().unwrap();
        let value = match option.kind {
            SetupKind::Flag => SetupValue::Flag(value.as_bool().unwrap()),
            SetupKind::Number => SetupValue::Number(value.as_i64().unwrap()),
            SetupKind::Numbers => {
                SetupValue::Numbers(words().map(|one| one.as_i64().unwrap()).collect())
            }
            SetupKind::Text => SetupValue::Text(text().to_owned()),
            SetupKind::Signals => {
                let signals = words().map(|one| one.as_str().unwrap().parse().unwrap());
                SetupValue::Signals(signals.collect())
            }
            SetupKind::Path => SetupValue::Path(text().into()),
        };
        // What is wrong with it the start says again.
        let _ = option.set(spec, value);
    }
}

fn outcome(case: &Value) -> Result<Output, Error> {
    let words = case["argv"].as_array().unwrap().iter();
    let mut argv = words.map(|word| match word.as_str() {
        Some("$CHILD") => test_children::path().into_os_string(),
        Some(word) => OsString::from(word),
        None => OsString::from_vec(unhex(word["hex"].as_str().unwrap())),
    });
    let none = serde_json::Map::new();
    let options = case["options"].as_object().unwrap_or(&none);
    let mut spec = match options.contains_key("shell") {
        true => Spec::shell(argv.next_back().unwrap()),
        false => Spec::new(argv),
    };
    set_up(&mut spec, options);
    let mut command = Command::from_spec(spec);
    if !options.contains_key("raise") {
        command = command.stopped_is_ok();
    }
    if let Some(hex) = case["stdin_hex"].as_str() {
        command = command.stdin_bytes(unhex(hex));
    }
    if let Some(zeros) = case["stdin_zeros"].as_u64() {
        command = command.stdin_bytes(vec![0; usize::try_from(zeros).unwrap()]);
    }
    let mut stop = Stop::default();
    let mut beyond = Beyond::HeadAndTail;
    let timeout = |value: &Value| Timeout::from_secs_f64(value.as_f64().unwrap()).unwrap();
    for (name, value) in options {
        match name.as_str() {
            "timeout" => command = command.timeout(timeout(value)),
            "idle_timeout" => command = command.idle_timeout(timeout(value)),
            "grace" => stop = stop.with_grace(Duration::from_secs_f64(value.as_f64().unwrap())),
            "signal" => stop = stop.with_signal(value.as_str().unwrap().parse().unwrap()),
            "scope" => {
                stop = stop.with_scope(match value.as_str().unwrap() {
                    "process" => Scope::Process,
                    "group" => Scope::Group,
                    other => panic!("{other}"),
                })
            }
            "until" => command = command.until(value.as_str().unwrap().parse().unwrap()),
            "stdout" => command = command.stdout(sink(value)),
            "stderr" => command = command.stderr(sink(value)),
            "beyond" if value == "fail" => beyond = Beyond::Fail,
            "beyond" => assert_eq!(value, "head_and_tail"),
            "limit" | "shell" | "raise" => {}
            "check" => command = command.check(),
            "ok_codes" => {
                let codes = value.as_array().unwrap().iter();
                let codes = codes.map(|code| i32::try_from(code.as_i64().unwrap()).unwrap());
                command = command.ok_codes(codes);
            }
            "merged" => command = command.merged(),
            // `set_up` has set it.
            name if SetupOption::named(name).is_some() => {}
            "umask" => command = command.umask(u32::try_from(value.as_u64().unwrap()).unwrap()),
            "rlimits" => {
                for (name, value) in value.as_object().unwrap() {
                    let [soft, hard] = [0, 1].map(|i| value[i].as_u64().unwrap());
                    command = command.rlimit(name, soft, hard);
                }
            }
            "extra_env" => {
                for (name, value) in value.as_object().unwrap() {
                    command = match value.as_str() {
                        Some(value) => command.env(name, value),
                        None => command.env_remove(name),
                    };
                }
            }
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

fn sink(value: &Value) -> Sink {
    match value.as_str().unwrap() {
        "merged" => Sink::Merged,
        "null" => Sink::Null,
        other => panic!("{other}"),
    }
}

fn check(case: &Value, outcome: &Result<Output, Error>) {
    let name = &case["name"];
    for (what, expected) in case["expect"].as_object().unwrap() {
        let actual = match (what.as_str(), outcome) {
            ("error", Err(Error::Invalid(_))) => "invalid".into(),
            ("error", Err(Error::Spawn { .. })) => "spawn".into(),
            ("step", Err(Error::Spawn { source, .. })) => source.step.name().into(),
            ("errno", Err(Error::Spawn { source, .. })) => source.errno().into(),
            ("error", Err(Error::Failed(_))) => "failed".into(),
            ("error", Err(Error::Stopped(output))) => output.report.reason.name().into(),
            ("error", Ok(_)) => Value::Null,
            (_, Ok(output)) => fact(what, output),
            (_, Err(error)) => match error.output() {
                // An error is accepted only where one is expected, along with its
                // output.
                Some(output) if case["expect"]["error"].is_string() => fact(what, output),
                _ => panic!("{name}: {error}"),
            },
        };
        assert_eq!(&actual, expected, "{name}: {what}: {outcome:?}");
    }
    // A run that was not stopped has left them.
    if let Ok(output) = outcome
        && let (Reason::Finished, Some(info)) = (output.report.reason, &output.report.stdout_info)
    {
        for holder in &info.held_by {
            sys::end(holder.pid);
        }
    }
}

fn fact(what: &str, output: &Output) -> Value {
    let report = &output.report;
    let of = |info: &Option<StreamInfo>, f: fn(&StreamInfo) -> Value| {
        info.as_ref().map_or(Value::Null, f)
    };
    let stdout_info = |f| of(&report.stdout_info, f);
    match what {
        "status" => match report.status {
            Exit::Code(code) => serde_json::json!({ "exited": code }),
            Exit::Signal { signal, .. } => serde_json::json!({ "signaled": signal.number() }),
            other => panic!("{other:?}"),
        },
        "reason" => report.reason.name().into(),
        "stdout" => String::from_utf8(output.stdout.clone()).unwrap().into(),
        "stderr" => String::from_utf8(output.stderr.clone()).unwrap().into(),
        "stdout_hex" => hex(&output.stdout).into(),
        "stderr_hex" => hex(&output.stderr).into(),
        "stdout_bytes" => output.stdout.len().into(),
        "stderr_bytes" => output.stderr.len().into(),
        "stderr_info" => report
            .stderr_info
            .as_ref()
            .map_or(Value::Null, |_| "some".into()),
        "stdout_dropped" => stdout_info(|info| info.dropped_bytes.into()),
        "stderr_dropped" => of(&report.stderr_info, |info| info.dropped_bytes.into()),
        "merged" => merged(output),
        "ambiguous" => {
            let segments = output.merged.as_deref().unwrap();
            segments.iter().any(|one| one.ambiguous).into()
        }
        "complete" => stdout_info(|info| info.complete.into()),
        "held" => stdout_info(|info| (!info.held_by.is_empty()).into()),
        "survivors" => report.survivors.len().into(),
        other => panic!("unknown expectation {other}"),
    }
}

/// The pieces of both streams in the order of reading; neighbours of one stream are
/// joined.
fn merged(output: &Output) -> Value {
    let mut rest = [&output.stdout[..], &output.stderr[..]];
    let mut pieces: Vec<(&str, String)> = Vec::new();
    for segment in output.merged.as_deref().unwrap() {
        let (name, rest) = match segment.stream {
            StdStream::Stdout => ("stdout", &mut rest[0]),
            StdStream::Stderr => ("stderr", &mut rest[1]),
        };
        let (piece, left) = rest.split_at(usize::try_from(segment.bytes).unwrap());
        *rest = left;
        let piece = std::str::from_utf8(piece).unwrap();
        match pieces.last_mut() {
            Some((last, text)) if *last == name => text.push_str(piece),
            _ => pieces.push((name, piece.to_owned())),
        }
    }
    serde_json::json!(pieces)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
