//! The cases of a pipeline that every front end must pass, read from
//! `conformance/pipeline.json`: here as words and flags, which come back as output, exit code and
//! report. stderr is kept back, as the others capture it.

mod common;

use std::io::{self, Write as _};
use std::process::{Output, Stdio};

use common::subcommand;
use serde_json::{Map, Value, json};
use test_support::{sys, watchdog};

/// What stands between stages, and between programs side by side: words of none.
const SEPARATOR: &str = "::next::";
const BESIDE: &str = "::beside::";

#[test]
fn pipeline() {
    let _watchdog = watchdog("conformance_pipeline");
    test_support::conformance("pipeline", "command", check);
}

/// Runs it: what came, and the report, null if there is none.
fn outcome(case: &Value) -> (Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let mut command = subcommand("pipe");
    command.args([
        "--quiet",
        "--separator",
        SEPARATOR,
        "--and-separator",
        BESIDE,
    ]);
    command.arg("--report-to").arg(&report);
    let none = Map::new();
    for (name, value) in case["options"].as_object().unwrap_or(&none) {
        let flag = format!("--{}", name.replace('_', "-"));
        match name.as_str() {
            // The command has its exit code for these, and one kind of limit.
            "raise" | "check" | "beyond" => {}
            "no_new_privs" => drop(command.arg(flag)),
            "signal" => drop(command.arg("--stop").arg(value.as_str().unwrap())),
            "timeout" | "idle_timeout" | "grace" | "limit" | "until" | "cwd" | "success" => {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                command.arg(flag).arg(text);
            }
            "extra_env" => {
                for (name, value) in value.as_object().unwrap() {
                    let pair = format!("{name}={}", value.as_str().unwrap());
                    command.arg("--env").arg(pair);
                }
            }
            "ok_codes" => {
                for (stage, codes) in value.as_object().unwrap() {
                    let stage: usize = stage.parse().unwrap();
                    let codes = codes.as_array().unwrap().iter().map(Value::to_string);
                    let codes: Vec<String> = codes.collect();
                    let codes = format!("{}={}", stage + 1, codes.join(","));
                    command.arg("--ok").arg(codes);
                }
            }
            "elastic" => {
                let stages = value.as_array().unwrap().iter();
                let stages = stages.map(|stage| (stage.as_u64().unwrap() + 1).to_string());
                let stages: Vec<String> = stages.collect();
                command.arg(flag).arg(stages.join(","));
            }
            other => panic!("unknown option {other}"),
        }
    }
    command.arg("--");
    for (place, words) in case["stages"].as_array().unwrap().iter().enumerate() {
        if place > 0 {
            command.arg(SEPARATOR);
        }
        for (place, words) in programs(words).into_iter().enumerate() {
            if place > 0 {
                command.arg(BESIDE);
            }
            for word in words.as_array().unwrap() {
                match word.as_str().unwrap() {
                    "$CHILD" => command.arg(test_children::path()),
                    word => command.arg(word),
                };
            }
        }
    }
    let data = stdin(case);
    if data.is_some() {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let feeding = child.stdin.take().map(|mut stdin| {
        std::thread::spawn(move || {
            // Whoever reads no more is none of ours.
            let _ = stdin.write_all(&data.unwrap_or_default());
        })
    });
    let output = child.wait_with_output().unwrap();
    feeding
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    // Empty where nothing was started.
    let report = std::fs::read(report).unwrap_or_default();
    (output, serde_json::from_slice(&report).unwrap_or_default())
}

/// The programs of a stage: those of a fan, or the one that it is.
fn programs(stage: &Value) -> Vec<&Value> {
    let fan = stage["fan"].as_array();
    fan.map_or_else(|| vec![stage], |programs| programs.iter().collect())
}

fn stdin(case: &Value) -> Option<Vec<u8>> {
    if let Some(zeros) = case["stdin_zeros"].as_u64() {
        return Some(vec![0; usize::try_from(zeros).unwrap()]);
    }
    let digits = case["stdin_hex"].as_str()?.as_bytes().chunks(2);
    let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
    Some(
        digits
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect(),
    )
}

fn check(case: &Value) {
    let name = case["name"].as_str().unwrap();
    let (output, report) = outcome(case);
    let expect = &case["expect"];
    let code = output.status.code();
    let said = String::from_utf8_lossy(&output.stderr);
    match expect["error"].as_str() {
        Some("invalid") => assert_eq!(code, Some(125), "{name}: {said}"),
        Some("spawn") => {
            let errno = i32::try_from(expect["errno"].as_i64().unwrap()).unwrap();
            let error = io::Error::from_raw_os_error(errno);
            let step = expect["step"].as_str().unwrap();
            let expected = match (step, error.kind()) {
                ("exec", io::ErrorKind::NotFound) => 127,
                ("exec", _) => 126,
                _ => 125,
            };
            assert_eq!(code, Some(expected), "{name}: {said}");
            let mut words = vec![format!(": {step} "), error.to_string()];
            if let Some(stage) = expect["stage"].as_u64() {
                let stages = case["stages"].as_array().unwrap().iter();
                let of: usize = stages.map(|stage| programs(stage).len()).sum();
                words.push(format!("stage {} of {of}, ", stage + 1));
            }
            for words in words {
                assert!(said.contains(&words), "{name}: {words}: {said}");
            }
        }
        _ => {
            for (what, expected) in expect.as_object().unwrap() {
                let actual = match what.as_str() {
                    "error" => continue,
                    "says" => {
                        let words = expected.as_array().unwrap().iter();
                        let found = words.filter(|words| said.contains(words.as_str().unwrap()));
                        found.cloned().collect()
                    }
                    what => fact(what, &output, &report),
                };
                assert_eq!(&actual, expected, "{name}: {what}: {said}{report:#}");
            }
            check_code(name, code, &report);
            if report["reason"] == "finished" {
                end_holders(&report);
            }
        }
    }
}

/// Checks the exit code that belongs to a report: that of the last stage that is to blame.
fn check_code(name: &str, code: Option<i32>, report: &Value) {
    let failed = report["stages"].as_array().unwrap().iter().rev();
    let mut failed = failed.filter(|stage| stage["judgement"] == "failed");
    let expected = match (report["success"].as_bool().unwrap(), failed.next()) {
        (true, _) => 0,
        (false, _) if report["reason"] != "finished" => 124,
        (false, Some(stage)) => match stage["status"]["kind"].as_str() {
            Some("exited") => stage["status"]["code"].as_i64().unwrap(),
            _ => 128 + stage["status"]["signal"].as_i64().unwrap(),
        },
        (false, None) => panic!("{name}: nobody is to blame"),
    };
    assert_eq!(code.map(i64::from), Some(expected), "{name}: {report:#}");
}

/// Ends those that a pipeline which was not stopped has left.
fn end_holders(report: &Value) {
    for holder in held_by(report) {
        let pid = i32::try_from(holder["pid"].as_i64().unwrap()).unwrap();
        sys::end(pid);
    }
}

/// Those that hold stdout of the last stage.
fn held_by(report: &Value) -> &[Value] {
    let stages = report["stages"].as_array().unwrap();
    let held_by = stages.last().unwrap()["stdout_info"]["held_by"].as_array();
    held_by.map(Vec::as_slice).unwrap_or_default()
}

fn fact(what: &str, output: &Output, report: &Value) -> Value {
    let stages = || report["stages"].as_array().unwrap().iter();
    let of_each = |name: &str| stages().map(|stage| stage[name].clone()).collect();
    let stdout = &output.stdout;
    match what {
        "success" | "rule" | "reason" | "outcome" => report[what].clone(),
        "judgements" => of_each("judgement"),
        "statuses" => stages()
            .map(|stage| match stage["status"]["kind"].as_str().unwrap() {
                "exited" => json!({ "exited": stage["status"]["code"] }),
                "signaled" => json!({ "signaled": stage["status"]["signal"] }),
                other => panic!("{other}"),
            })
            .collect(),
        "stdout" => String::from_utf8(stdout.clone()).unwrap().into(),
        "stdout_hex" => {
            let hex = stdout.iter().map(|byte| format!("{byte:02x}"));
            hex.collect::<String>().into()
        }
        "stdout_bytes" => stdout.len().into(),
        "passed_on" => stages()
            .map(|stage| stage["elastic"]["bytes_out"].clone())
            .collect(),
        "fanned_out" => stages()
            .map(|stage| stage["fan"]["bytes_out"].clone())
            .collect(),
        "held" => (!held_by(report).is_empty()).into(),
        "survivors" => {
            let survivors = stages().map(|stage| stage["survivors"].as_array().unwrap().len());
            survivors.sum::<usize>().into()
        }
        other => panic!("unknown expectation {other}"),
    }
}
