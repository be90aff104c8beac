//! The cases that every front end must pass, read from `conformance/map.json`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZero;
use std::path::Path;

use procwright::map::{Ended, Error, Journal, Map, Outcome, Progress, StoppedBy};
use procwright::process::Exit;
use procwright::time::Timeout;
use procwright::{Collected, Spec};
use serde_json::{Value, json};
use test_support::watchdog;

#[test]
fn map() {
    let _watchdog = watchdog("conformance_map");
    test_support::conformance("map", "rust", check);
}

/// What came of a map.
struct Done {
    ended: Vec<Ended>,
    progress: Progress,
    stopped_by: Option<StoppedBy>,
}

fn check(case: &Value) {
    let name = &case["name"];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let again = case.get("again");
    let journal = again.map(|_| Journal::create(&path).unwrap());
    let mut done = run(case, &case["items"], journal);
    if let Some(again) = again {
        done.unwrap();
        if again["without_ends"] == true {
            forget_ends(&path);
        }
        let mut journal = Journal::resume(&path).unwrap();
        for (name, value) in again.as_object().unwrap() {
            journal = match name.as_str() {
                "rerun_failed" => journal.rerun_failed(),
                "rerun_unknown" => journal.rerun_unknown(),
                "items" | "without_ends" => journal,
                other => panic!("unknown {other}: {value}"),
            };
        }
        done = run(case, &again["items"], Some(journal));
    }
    for (what, expected) in case["expect"].as_object().unwrap() {
        let actual = match (what.as_str(), &done) {
            ("error", Err(Error::Invalid(_))) => "invalid".into(),
            ("error", Err(error)) => panic!("{error}"),
            ("error", Ok(_)) => Value::Null,
            (_, Err(error)) => panic!("{name}: {error}"),
            ("failures", Ok(done)) => failures(&done.ended, expected),
            (_, Ok(done)) => fact(what, done),
        };
        assert_eq!(&actual, expected, "{name}: {what}");
    }
}

fn run(case: &Value, items: &Value, journal: Option<Journal>) -> Result<Done, Error> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let words = case["argv"].as_array().unwrap().iter();
    let words = words.map(|word| match word.as_str() {
        Some("$CHILD") => test_children::path().into_os_string(),
        Some(word) => OsString::from(word),
        None => panic!("{word} is no word"),
    });
    let words: Vec<_> = words.collect();
    let items: Vec<_> = items.as_array().unwrap().iter().map(text).collect();
    let mut common = Spec::new([] as [&str; 0]);
    let mut rules: Vec<(&str, &Value)> = Vec::new();
    for (name, value) in case["options"].as_object().into_iter().flatten() {
        let seconds = || Timeout::from_secs_f64(value.as_f64().unwrap()).unwrap();
        match name.as_str() {
            "timeout" => common.timeout = seconds(),
            "ok_codes" => {
                let codes = value.as_array().unwrap().iter();
                common.ok_codes = codes
                    .map(|code| i32::try_from(code.as_i64().unwrap()).unwrap())
                    .collect();
            }
            "cwd" => common.cwd = Some(text(value).into()),
            "extra_env" => {
                let env = value.as_object().unwrap().iter();
                common.extra_env = env.map(|(k, v)| (k.into(), Some(text(v).into()))).collect();
            }
            _ => rules.push((name, value)),
        }
    }
    let commands = items.into_iter().map(move |item| {
        let mut spec = common.clone();
        spec.argv.clone_from(&words);
        spec.argv.push(item.into());
        spec
    });
    let mut map = Map::new(commands).ordered();
    for (name, value) in rules {
        let number = || value.as_u64().unwrap();
        map = match name {
            "parallel" => map.parallel(usize::try_from(number()).unwrap()),
            "stop_after_failures" => map.stop_after_failures(NonZero::new(number()).unwrap()),
            "deadline" => map.deadline(Timeout::from_secs_f64(value.as_f64().unwrap()).unwrap()),
            other => panic!("unknown option {other}"),
        };
    }
    if let Some(journal) = journal {
        map = map.journal(journal);
    }
    let mut running = map.start()?;
    let ended = (&mut running).collect::<Result<_, _>>()?;
    Ok(Done {
        ended,
        progress: running.progress(),
        stopped_by: running.stopped_by(),
    })
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

fn fact(what: &str, done: &Done) -> Value {
    let progress = &done.progress;
    match what {
        "commands" => progress.taken.into(),
        "succeeded" => progress.succeeded.into(),
        "failed" => progress.failed.into(),
        "stopped" => progress.stopped.into(),
        "succeeded_before" => progress.succeeded_before.into(),
        "failed_before" => progress.failed_before.into(),
        "unknown" => progress.unknown.into(),
        "stopped_by" => done.stopped_by.map(StoppedBy::name).into(),
        "statuses_before" => {
            let before = done
                .ended
                .iter()
                .filter(|one| matches!(one.outcome, Outcome::Before(_) | Outcome::Unknown(_)));
            before
                .map(|one| (one.index.to_string(), status(one)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        "stdout" => {
            let all = done.ended.iter().filter_map(|one| match &one.outcome {
                Outcome::Ran(collected) => stdout(collected),
                _ => None,
            });
            String::from_utf8(all.flatten().copied().collect())
                .unwrap()
                .into()
        }
        other => panic!("unknown expectation {other}"),
    }
}

fn status(ended: &Ended) -> Value {
    match ended.status() {
        None => Value::Null,
        Some(Exit::Code(code)) => json!({"exited": code}),
        Some(Exit::Signal { signal, .. }) => json!({"signaled": signal.number()}),
        Some(other) => other.to_string().into(),
    }
}

fn stdout(collected: &Collected<Vec<u8>>) -> Option<&Vec<u8>> {
    collected.stdout.as_ref()
}

/// The failures, each as `expected` has it if that is in its line.
fn failures(ended: &[Ended], expected: &Value) -> Value {
    let failed = ended.iter().filter(|one| !one.success());
    let named: BTreeMap<_, _> = failed
        .map(|one| {
            let (place, line) = (one.index.to_string(), one.summary());
            let wanted = &expected[&place];
            let fits = wanted.as_str().is_none_or(|wanted| line.contains(wanted));
            (place, if fits { wanted.clone() } else { line.into() })
        })
        .collect();
    json!(named)
}
