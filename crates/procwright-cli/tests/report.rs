//! The report at the end.

mod common;

use common::{child, run};
use serde_json::Value;

fn report(options: [&str; 2], words: &[String]) -> (Option<i32>, Value) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let [a, b] = options;
    let ran = run(["--report-to", file.to_str().unwrap(), a, b], words);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n'));
    (ran.code(), serde_json::from_str(&text).unwrap())
}

#[test]
fn json_after_an_ordinary_end() {
    let words = child(["exit", "3"]);
    let (code, report) = report(["--report", "json"], &words);
    assert_eq!(code, Some(3));
    assert_eq!(report["argv"], Value::from(words));
    assert_eq!(report["status"]["kind"], "exited");
    assert_eq!(report["status"]["code"], 3);
    assert_eq!(report["reason"], "finished");
    assert!(report["duration_s"].as_f64().unwrap() > 0.0);
    assert_eq!(report["survivors"], Value::Array(Vec::new()));
    // No pipe was between, and nothing is said about what was not seen.
    assert_eq!(report["stdout_info"], Value::Null);
    assert_eq!(report["stdout"], Value::Null);
}

#[test]
fn json_after_a_stop() {
    let (code, report) = report(["--idle-timeout", "200ms"], &child(["sleep-forever"]));
    assert_eq!(code, Some(124));
    assert_eq!(report["reason"], "idle_timeout");
    assert_eq!(report["status"]["kind"], "signaled");
    assert_eq!(report["status"]["name"], "SIGTERM");
    assert!(report["duration_s"].as_f64().unwrap() >= 0.2);
    assert_eq!(report["stdout_info"]["bytes"], 0);
    assert_eq!(report["stdout_info"]["complete"], false);
}

#[test]
fn what_passes_is_counted_and_not_kept() {
    let (code, report) = report(["--until", "eof"], &child(["echo", "hello"]));
    assert_eq!(code, Some(0));
    let info = &report["stdout_info"];
    assert_eq!(info["bytes"], 6);
    assert_eq!(info["kept_bytes"], 0);
    assert_eq!(info["dropped_bytes"], 0);
    assert_eq!(info["complete"], true);
}

#[test]
fn text_goes_to_stderr_and_data_to_stdout() {
    let ran = run(
        ["--report", "text", "--until", "eof"],
        &child(["echo", "hello"]),
    );
    assert_eq!(ran.stdout, "hello\n");
    for part in [
        "command ",
        "outcome ",
        "exited with code 0",
        "time ",
        "stdout ",
        "6 bytes",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn json_on_stderr_is_one_line() {
    let ran = run(["--report", "json"], &child(["exit", "0"]));
    assert_eq!(ran.stderr.lines().count(), 1);
    serde_json::from_str::<Value>(&ran.stderr).unwrap();
}
