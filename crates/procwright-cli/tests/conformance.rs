//! The cases that every front end must pass, read from `conformance/run.json`: here each
//! goes to the command as a spec, and comes back as output, exit code and report.

mod common;

use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use common::procwright;
use procwright::Spec;
use serde_json::{Map, Value, json};
use test_support::sys;

#[test]
fn run() {
    test_support::conformance("run", "command", check);
}

/// The spec of a case. Options have the names of the spec's members, but for those that
/// are one word for a table.
fn spec(case: &Value) -> Value {
    let words = case["argv"].as_array().unwrap().iter();
    let argv = words.map(|word| match word.as_str() {
        Some("$CHILD") => test_children::path().into_os_string(),
        Some(word) => word.into(),
        None => std::ffi::OsString::from_vec(unhex(word["hex"].as_str().unwrap())),
    });
    // The library's own conversion also writes words that are no text.
    let mut spec = Spec::new(argv);
    if let Some(hex) = case["stdin_hex"].as_str() {
        spec.stdin = procwright::Stdin::Bytes(unhex(hex).into());
    }
    if let Some(zeros) = case["stdin_zeros"].as_u64() {
        let zeros = vec![0; usize::try_from(zeros).unwrap()];
        spec.stdin = procwright::Stdin::Bytes(zeros.into());
    }
    let written = serde_json::to_value(&spec).unwrap();
    let mut spec = Map::new();
    for name in ["argv", "stdin", "stdout", "stderr"] {
        spec.insert(name.to_owned(), written[name].clone());
    }
    let none = Map::new();
    let mut stop = Map::new();
    for (name, value) in case["options"].as_object().unwrap_or(&none) {
        match name.as_str() {
            // The command has its exit code for these.
            "raise" | "check" | "shell" | "beyond" => {}
            "signal" | "grace" | "scope" => drop(stop.insert(name.clone(), value.clone())),
            "limit" => {
                let limit = json!({ "bytes": value, "beyond": case["options"]["beyond"] });
                spec.insert(name.clone(), limit);
            }
            "pty" => {
                let size = json!({ "rows": value[0], "columns": value[1] });
                spec.insert(name.clone(), size);
            }
            _ => drop(spec.insert(name.clone(), value.clone())),
        }
    }
    spec.insert("stop".to_owned(), stop.into());
    spec.into()
}

/// Runs it: what came, and the report, null if there is none.
fn outcome(case: &Value) -> (Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let [spec_file, report] = ["spec.json", "report.json"].map(|name| folder.path().join(name));
    let mut spec = spec(case);
    let mut command = procwright(["--spec"]);
    command.arg(&spec_file).arg("--report-to").arg(&report);
    if case["options"]["shell"].is_boolean() {
        let argv = spec.as_object_mut().unwrap().remove("argv").unwrap();
        command.args(["--shell", argv[0].as_str().unwrap()]);
    }
    std::fs::write(&spec_file, spec.to_string()).unwrap();
    let output = command.output().unwrap();
    // Empty where nothing was started.
    let report = std::fs::read(report).unwrap_or_default();
    (output, serde_json::from_slice(&report).unwrap_or_default())
}

fn check(case: &Value) {
    let name = case["name"].as_str().unwrap();
    let (output, report) = outcome(case);
    let expect = &case["expect"];
    let end = output.status;
    let said = String::from_utf8_lossy(&output.stderr);
    match expect["error"].as_str() {
        Some("invalid") => assert_eq!(end.code(), Some(125), "{name}: {said}"),
        Some("spawn") => {
            let errno = i32::try_from(expect["errno"].as_i64().unwrap()).unwrap();
            let error = io::Error::from_raw_os_error(errno);
            let step = expect["step"].as_str().unwrap();
            let code = match (step, error.kind()) {
                ("exec", io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => 127,
                ("exec", _) => 126,
                _ => 125,
            };
            assert_eq!(end.code(), Some(code), "{name}: {said}");
            let words = format!(": {step} ");
            assert!(said.contains(&words), "{name}: {said}");
            assert!(said.contains(&error.to_string()), "{name}: {said}");
        }
        _ => {
            for (what, expected) in expect.as_object().unwrap() {
                if what != "error" {
                    let actual = fact(what, &output, &report);
                    assert_eq!(&actual, expected, "{name}: {what}: {said}{report:#}");
                }
            }
            let ok_codes = case["options"]["ok_codes"].as_array();
            let expected = code(&report, ok_codes.map_or(&[], Vec::as_slice));
            assert_eq!(expected, (end.code(), end.signal()), "{name}: {said}");
            if report["reason"] == "finished" {
                end_holders(&report);
            }
        }
    }
}

/// Ends those that a run which was not stopped has left.
fn end_holders(report: &Value) {
    let holders = report["stdout_info"]["held_by"].as_array();
    for holder in holders.into_iter().flatten() {
        let pid = i32::try_from(holder["pid"].as_i64().unwrap()).unwrap();
        sys::end(pid);
    }
}

/// The exit code that belongs to a report, or the signal.
fn code(report: &Value, ok_codes: &[Value]) -> (Option<i32>, Option<i32>) {
    let number = |value: &Value| i32::try_from(value.as_i64().unwrap()).unwrap();
    let status = &report["status"];
    match (report["reason"].as_str().unwrap(), status["kind"].as_str()) {
        ("finished", Some("exited")) if ok_codes.contains(&status["code"]) => (Some(0), None),
        ("finished", Some("exited")) => (Some(number(&status["code"])), None),
        ("finished", _) if status["name"] == "SIGINT" => (None, Some(number(&status["signal"]))),
        ("finished", _) => (Some(128 + number(&status["signal"])), None),
        _ => (Some(124), None),
    }
}

fn fact(what: &str, output: &Output, report: &Value) -> Value {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().into();
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let len = |list: &Value| list.as_array().unwrap().len();
    let out = &report["stdout_info"];
    match what {
        "status" => match report["status"]["kind"].as_str().unwrap() {
            "exited" => json!({ "exited": report["status"]["code"] }),
            "signaled" => json!({ "signaled": report["status"]["signal"] }),
            other => panic!("{other}"),
        },
        "reason" => report["reason"].clone(),
        "stdout" => text(&output.stdout),
        "stderr" => text(&output.stderr),
        "stdout_hex" => hex(&output.stdout).into(),
        "stderr_hex" => hex(&output.stderr).into(),
        "stdout_bytes" => output.stdout.len().into(),
        "stderr_bytes" => output.stderr.len().into(),
        "stderr_info" if report["stderr_info"].is_null() => Value::Null,
        "stderr_info" => "some".into(),
        "stdout_dropped" => out["dropped_bytes"].clone(),
        "complete" => out["complete"].clone(),
        "held" => (len(&out["held_by"]) > 0).into(),
        "survivors" => len(&report["survivors"]).into(),
        other => panic!("unknown expectation {other}"),
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
