//! Results as JSON conform to `docs/reference/result.schema.json`.
#![cfg(feature = "serde")]

use test_support::schema;

use std::time::Duration;

use procwright::{Beyond, Command, Error, Limit, Overflow, Sink, pipeline};
use schema::check;
use serde_json::{Value, json};

fn schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/result.schema.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[track_caller]
fn conforms(value: &Value) {
    let schema = schema();
    check(&schema, &schema, value, "result").unwrap();
}

fn child(words: &[&str]) -> Command<'static> {
    Command::new(test_children::path()).args(words)
}

#[test]
fn an_ordinary_result() {
    let output = child(&["flood", "--out", "10", "--err", "10"])
        .merged()
        .run()
        .unwrap();
    conforms(&output.to_json());
    conforms(&output.report.to_json());
    assert_eq!(
        output.to_json()["status"],
        json!({"kind": "exited", "code": 0})
    );
}

#[test]
fn data_and_arguments_that_are_no_text() {
    use std::os::unix::ffi::OsStringExt;
    let odd = std::ffi::OsString::from_vec(b"\xff".to_vec());
    let output = child(&["args"]).arg(odd).run().unwrap().to_json();
    conforms(&output);
    assert_eq!(output["argv"][2], json!({"base64": "/w=="}));
    assert_eq!(output["stdout"], json!({"base64": "/wA="}));
    assert_eq!(output["stderr"], "");
}

#[test]
fn a_stopped_run() {
    let error = child(&["flood-forever"])
        .timeout(Duration::from_millis(100))
        .limit(Limit {
            bytes: 100,
            beyond: Beyond::HeadAndTail,
        })
        .run()
        .unwrap_err();
    let Error::Stopped(output) = error else {
        panic!("{error}");
    };
    let json = output.to_json();
    conforms(&json);
    assert_eq!(json["reason"], "timeout");
    assert_eq!(json["stdout_info"]["kept_bytes"], 100);
    assert_eq!(json["stdout_info"]["dropped_at"], 50);
}

#[test]
fn nothing_between() {
    let output = child(&["exit", "3"])
        .stdout(Sink::Null)
        .stderr(Sink::Null)
        .run()
        .unwrap();
    let json = output.to_json();
    conforms(&json);
    assert_eq!(json["stdout"], Value::Null);
    assert_eq!(json["stdout_info"], Value::Null);
}

#[test]
fn a_pipeline() {
    let schema = schema();
    let rule = &schema["$defs"]["pipeline"];
    let conforms = |value: &Value| check(&schema, rule, value, "pipeline");
    let ran = child(&["flood", "--out", "10", "--err", "10"])
        .pipe(child(&["exit", "3"]))
        .elastic(0, Overflow::default())
        .run()
        .unwrap();
    conforms(&ran.to_json()).unwrap();
    conforms(&ran.report.to_json()).unwrap();
    assert_eq!(ran.to_json()["stages"][1]["judgement"], "failed");
    let flood = child(&["flood", "--out", "10"]);
    let fanned = flood.fan([child(&["cat"]), child(&["cat"])]).run().unwrap();
    conforms(&fanned.to_json()).unwrap();
    assert_eq!(fanned.to_json()["stages"][1]["fan"]["bytes_out"], 10);
    assert!(!fanned.to_json()["stages"][1]["stdout"].is_null());
    let stopped = child(&["flood-forever"])
        .pipe(child(&["sleep-forever"]))
        .timeout(Duration::from_millis(100));
    let Err(pipeline::Error::Stopped(stopped)) = stopped.run() else {
        panic!("not stopped");
    };
    conforms(&stopped.to_json()).unwrap();
    let mut bad = stopped.to_json();
    bad["stages"][0]
        .as_object_mut()
        .unwrap()
        .remove("judgement");
    assert!(conforms(&bad).is_err());
}

#[test]
fn the_check_itself_finds_faults() {
    let good = child(&["exit", "0"]).run().unwrap().to_json();
    let faults: [(&str, Value); 4] = [
        ("/pid", json!("7")),
        ("/reason", json!("bored")),
        ("/status", json!({"kind": "exited"})),
        ("/stdout_info/bytes", json!(-1)),
    ];
    let schema = schema();
    for (pointer, wrong) in faults {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert!(check(&schema, &schema, &bad, "").is_err(), "{pointer}");
    }
    let mut bad = good;
    bad["surprise"] = Value::Null;
    assert!(check(&schema, &schema, &bad, "").is_err());
}
