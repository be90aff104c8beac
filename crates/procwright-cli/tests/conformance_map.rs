//! The cases that every front end must pass, read from `conformance/map.json`: here by flags, with
//! the items behind `:::`, and the report for what came of it.

mod common;

use std::path::Path;
use std::process::Output;

use common::subcommand;
use serde_json::{Value, json};
use test_support::watchdog;

#[test]
fn map() {
    let _watchdog = watchdog("conformance_map");
    test_support::conformance("map", "command", check);
}

fn check(case: &Value) {
    let name = &case["name"];
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    let mut output = run(case, &case["items"], &journal, &[]);
    if let Some(again) = case.get("again") {
        if again["without_ends"] == true {
            forget_ends(&journal);
        }
        let flags = again.as_object().unwrap().keys().filter_map(|name| {
            Some(match name.as_str() {
                "rerun_failed" => "--rerun-failed",
                "rerun_unknown" => "--rerun-unknown",
                "items" | "without_ends" => return None,
                other => panic!("unknown {other}"),
            })
        });
        let flags: Vec<_> = ["--resume"].into_iter().chain(flags).collect();
        output = run(case, &again["items"], &journal, &flags);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = match case["expect"]["error"].as_str() {
        Some("invalid") => return assert_eq!(output.status.code(), Some(125), "{name}: {said}"),
        Some(other) => panic!("unknown error {other}"),
        None => serde_json::from_str(said.lines().last().unwrap()).unwrap(),
    };
    for (what, expected) in case["expect"].as_object().unwrap() {
        let actual = match what.as_str() {
            "stdout" => String::from_utf8_lossy(&output.stdout).into(),
            "failures" => failures(&report["failures"], expected),
            "statuses_before" => statuses_before(&report["runs"]),
            _ => report
                .get(what)
                .unwrap_or_else(|| panic!("unknown expectation {what}"))
                .clone(),
        };
        assert_eq!(&actual, expected, "{name}: {what}: {said}");
    }
    assert_eq!(output.status.code(), Some(code(&report)), "{name}: {said}");
}

/// The exit code that belongs to a report.
fn code(report: &Value) -> i32 {
    let bad = ["failed", "stopped", "failed_before", "unknown"];
    let bad = bad.map(|name| report[name].as_u64().unwrap());
    match report["stopped_by"].as_str() {
        Some("deadline") => 124,
        _ if bad.iter().sum::<u64>() > 0 => 1,
        _ => 0,
    }
}

fn run(case: &Value, items: &Value, journal: &Path, flags: &[&str]) -> Output {
    let mut command = subcommand("map");
    command.args(["--ordered", "--report", "json"]).args(flags);
    if case.get("again").is_some() {
        command.arg("--journal").arg(journal);
    }
    for (name, value) in case["options"].as_object().into_iter().flatten() {
        match name.as_str() {
            "extra_env" => {
                for (name, value) in value.as_object().unwrap() {
                    command
                        .arg("--env")
                        .arg(format!("{name}={}", value.as_str().unwrap()));
                }
            }
            "ok_codes" => {
                for code in value.as_array().unwrap() {
                    command.arg("--ok").arg(code.to_string());
                }
            }
            "parallel" | "stop_after_failures" | "deadline" | "timeout" | "cwd" => {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                command
                    .arg(format!("--{}", name.replace('_', "-")))
                    .arg(text);
            }
            other => panic!("unknown option {other}"),
        }
    }
    for word in case["argv"].as_array().unwrap() {
        match word.as_str().unwrap() {
            "$CHILD" => command.arg(test_children::path()),
            word => command.arg(word),
        };
    }
    command.arg(":::");
    command.args(
        items
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item.as_str().unwrap()),
    );
    command.output().unwrap()
}

/// Takes the ends out of a journal, as if its writer had been killed before each of them.
fn forget_ends(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.split_inclusive('\n');
    let kept: String = lines
        .filter(|line| !line.contains(r#""event":"ended""#))
        .collect();
    assert_ne!(kept, text);
    std::fs::write(path, kept).unwrap();
}

/// How those ended that were not run since the journal tells of them.
fn statuses_before(runs: &Value) -> Value {
    let before = runs.as_array().unwrap().iter();
    let before = before.filter(|run| run["before"] == true).map(|run| {
        let status = &run["status"];
        let status = match status["kind"].as_str() {
            None => Value::Null,
            Some("exited") => json!({"exited": status["code"]}),
            Some("signaled") => json!({"signaled": status["signal"]}),
            Some(_) => status.clone(),
        };
        (run["index"].to_string(), status)
    });
    Value::Object(before.collect())
}

/// The failures, each as `expected` has it if that is in its line.
fn failures(reported: &Value, expected: &Value) -> Value {
    let failed = reported.as_array().unwrap().iter();
    let named: serde_json::Map<_, _> = failed
        .map(|one| {
            let (place, line) = (one["index"].to_string(), &one["summary"]);
            let wanted = &expected[&place];
            let has = |wanted: &str| line.as_str().unwrap().contains(wanted);
            let fits = wanted.as_str().is_none_or(has);
            (place, if fits { wanted } else { line }.clone())
        })
        .collect();
    json!(named)
}
