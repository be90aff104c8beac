//! The cases that every front end must pass.

use std::panic::{RefUnwindSafe, catch_unwind};
use std::path::PathBuf;

use serde_json::{Map, Value};

/// Checks the cases of `conformance/SUBJECT.json` but for those that this front end has a reason to
/// be without, and writes what came of each to where `ci/conformance.py` compares all front ends.
///
/// # Panics
/// When a case has failed, after all have been tried.
pub fn conformance(subject: &str, front_end: &str, check: impl Fn(&Value) + RefUnwindSafe) {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let text = std::fs::read_to_string(format!("{top}/conformance/{subject}.json")).unwrap();
    let data: Value = serde_json::from_str(&text).unwrap();
    let mut results = Map::new();
    for case in data["cases"].as_array().unwrap() {
        if case["without"][front_end].is_string() {
            continue;
        }
        let passed = catch_unwind(|| check(case)).is_ok();
        let result = if passed { "passed" } else { "failed" };
        results.insert(case["name"].as_str().unwrap().to_owned(), result.into());
    }
    let folder = std::env::var_os("CONFORMANCE_RESULTS")
        .map_or_else(|| format!("{top}/target/conformance").into(), PathBuf::from);
    std::fs::create_dir_all(&folder).unwrap();
    let file = match subject {
        "run" => format!("{front_end}.json"),
        _ => format!("{subject}-{front_end}.json"),
    };
    let text = serde_json::to_string_pretty(&results).unwrap();
    std::fs::write(folder.join(file), text).unwrap();
    let mut failed = results.iter().filter(|(_, result)| *result != "passed");
    assert!(failed.next().is_none(), "{results:#?}");
}
