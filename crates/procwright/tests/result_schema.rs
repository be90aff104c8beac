//! Results as JSON conform to `docs/reference/result.schema.json`.
#![cfg(feature = "serde")]

use test_support::schema;

use std::time::Duration;

use procwright::{Beyond, Command, Error, Limit, Sink};
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
