//! Results as JSON are what `docs/reference/result.schema.json` says.
#![cfg(feature = "serde")]

use std::time::Duration;

use procwright::{Beyond, Command, Error, Limit, Sink};
use serde_json::{Value, json};

fn schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/result.schema.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Checks `value` against the part `rule` of the schema `root`. Knows the words
/// that the schema uses and refuses others, so that none is taken for checked.
fn check(root: &Value, rule: &Value, value: &Value, path: &str) -> Result<(), String> {
    let err = |what: String| Err(format!("{path}: {what}: {value}"));
    let number = || value.as_f64().unwrap_or(f64::NAN);
    for (word, says) in rule.as_object().unwrap() {
        let fine = match word.as_str() {
            "$schema" | "$id" | "title" | "$defs" => true,
            "$ref" => {
                let pointer = says.as_str().unwrap().strip_prefix('#').unwrap();
                check(root, root.pointer(pointer).unwrap(), value, path)?;
                true
            }
            "oneOf" => {
                let rules = says.as_array().unwrap();
                let results = rules.iter().map(|rule| check(root, rule, value, path));
                let results: Vec<_> = results.collect();
                if results.iter().filter(|result| result.is_ok()).count() != 1 {
                    return err(format!("not exactly one: {results:?}"));
                }
                true
            }
            "type" => match says {
                Value::Array(types) => types.iter().any(|name| is_type(name, value)),
                name => is_type(name, value),
            },
            "const" => says == value,
            "enum" => says.as_array().unwrap().contains(value),
            "minimum" => number() >= says.as_f64().unwrap(),
            "maximum" => number() <= says.as_f64().unwrap(),
            "minItems" => value.as_array().unwrap().len() as u64 >= says.as_u64().unwrap(),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, says, item, &format!("{path}[{index}]"))?;
                }
                true
            }
            "required" => {
                let names = says.as_array().unwrap().iter();
                let missing: Vec<_> = names
                    .filter(|name| value.get(name.as_str().unwrap()).is_none())
                    .collect();
                if !missing.is_empty() {
                    return err(format!("lacks {missing:?}"));
                }
                true
            }
            "properties" => {
                for (name, rule) in says.as_object().unwrap() {
                    if let Some(member) = value.get(name) {
                        check(root, rule, member, &format!("{path}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = rule["properties"].as_object().unwrap();
                let object = value.as_object().into_iter().flatten();
                let mut unknown = object.filter(|(name, _)| !known.contains_key(*name));
                unknown.next().is_none()
            }
            other => panic!("this test does not know {other:?}"),
        };
        if !fine {
            return err(format!("{word} {says}"));
        }
    }
    Ok(())
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("this test does not know the type {other:?}"),
    }
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
