//! Specs as text conform to `docs/reference/spec.schema.json`, and refused texts are
//! refused by both.
#![cfg(feature = "serde")]

use test_support::schema;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use procwright::process::{Scope, Signal, Stop};
use procwright::spec::{Account, Defaults, IoPriority, Rlimit, SchedPolicy};
use procwright::time::Timeout;
use procwright::{Beyond, Limit, Sink, Spec, Stdin, Until};
use serde::de::DeserializeSeed;
use serde_json::{Value, json};

fn schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/spec.schema.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn conforms(value: &Value) -> Result<(), String> {
    let schema = schema();
    schema::check(&schema, &schema, value, "spec")
}

fn full() -> Spec {
    let odd = || OsString::from_vec(vec![0xff]);
    let mut spec = Spec::new([OsString::from("prog"), odd()]);
    spec.env = Some(vec![("A".into(), odd())]);
    spec.extra_env = vec![("B".into(), Some("c".into())), ("D".into(), None)];
    spec.cwd = Some(odd().into());
    spec.user = Some(Account::Name("nobody".into()));
    spec.group = Some(Account::Id(7));
    spec.extra_groups = Some(vec![Account::Id(1)]);
    spec.umask = Some(0o27);
    spec.rlimits = vec![Rlimit {
        resource: "nofile".into(),
        soft: 5,
        hard: u64::MAX,
    }];
    spec.nice = Some(-3);
    spec.process_group = Some(0);
    spec.new_session = true;
    spec.liveness = true;
    spec.die_with_parent = Some(Signal::KILL);
    spec.blocked_signals = vec![Signal::USR1];
    spec.ignored_signals = vec![Signal::HUP];
    spec.default_signals = vec![Signal::INT];
    spec.cpu_affinity = Some(vec![0, 9]);
    spec.sched_policy = Some(SchedPolicy::RoundRobin(7));
    spec.ionice = Some(IoPriority::BestEffort(6));
    spec.oom_score_adj = Some(-5);
    spec.cgroup = Some("/sys/fs/cgroup".into());
    spec.chroot = Some(odd().into());
    spec.no_new_privs = true;
    spec.new_keyring = true;
    spec.stdin = Stdin::Bytes(vec![0, 255].into());
    spec.stdout = Sink::File {
        path: "out".into(),
        append: true,
    };
    spec.stderr = Sink::Merged;
    spec.timeout = Duration::from_millis(1500).into();
    spec.idle_timeout = Duration::from_secs(2).into();
    spec.stop = Stop::new()
        .with_scope(Scope::Group)
        .with_grace(Duration::MAX);
    spec.until = Until::Exit;
    spec.limit = Some(Limit {
        bytes: 9,
        beyond: Beyond::Fail,
    });
    spec.keep_full = Some("full".into());
    spec.stall_after = Timeout::NEVER;
    spec
}

#[test]
fn what_is_written_conforms_and_comes_back() {
    for spec in [full(), Spec::new(["true"])] {
        let text = serde_json::to_value(&spec).unwrap();
        conforms(&text).unwrap();
        let back: Spec = serde_json::from_value(text).unwrap();
        assert_eq!(format!("{spec:?}"), format!("{back:?}"));
    }
}

#[test]
fn both_have_the_same_members() {
    let text = serde_json::to_value(Spec::new(["true"])).unwrap();
    let written: BTreeSet<&String> = text.as_object().unwrap().keys().collect();
    let schema = schema();
    let described = schema["properties"].as_object().unwrap();
    assert_eq!(written, described.keys().collect());
}

#[test]
fn the_other_ways_to_write_it() {
    for (member, value) in [
        ("extra_env", json!({"A": false, "B": null, "C": "x"})),
        ("rlimits", json!({"core": [0, "unlimited"]})),
        ("stdin", json!("inherit")),
        ("stdin", json!({"file": "in"})),
        ("stdout", json!("relay")),
        ("stdout", json!({"file": "out"})),
        ("timeout", json!(5)),
        ("timeout", json!(-1)),
        ("grace_of_stop", json!(null)),
        ("user", json!(0)),
        ("umask", json!(null)),
        ("blocked_signals", json!(["USR1", "RTMIN+1"])),
        ("cpu_affinity", json!([0])),
        ("cpu_affinity", json!(null)),
        ("sched_policy", json!("batch")),
        ("ionice", json!("best-effort")),
        ("oom_score_adj", json!(1000)),
        ("cgroup", json!("/sys/fs/cgroup/jobs")),
        ("limit", json!({"bytes": 5})),
        ("pty", json!({"rows": 50, "columns": 132})),
        ("stop", json!({"scope": "process"})),
        ("until", json!("eof")),
        ("until", json!("silent:2m")),
    ] {
        let text = match member {
            "grace_of_stop" => json!({"argv": ["a"], "stop": {"grace": value}}),
            member => json!({"argv": ["a"], member: value}),
        };
        conforms(&text).unwrap();
        serde_json::from_value::<Spec>(text.clone())
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn what_cannot_be_meant_is_refused_by_both() {
    for text in [
        json!({}),
        json!({"argv": "make"}),
        json!({"argv": [3]}),
        json!({"argv": null}),
        json!({"argv": ["a"], "timeot": 1}),
        json!({"argv": ["a"], "timeout": "5m"}),
        json!({"argv": ["a"], "stdin": null}),
        json!({"argv": ["a"], "stdout": "pipe"}),
        json!({"argv": ["a"], "stdout": {"file": "a", "append": "b"}}),
        json!({"argv": ["a"], "extra_env": {"A": true}}),
        json!({"argv": ["a"], "rlimits": {"nofile": 5}}),
        json!({"argv": ["a"], "rlimits": {"nofile": [1, 2, 3]}}),
        json!({"argv": ["a"], "rlimits": {"nofile": ["none", 3]}}),
        json!({"argv": ["a"], "stop": {"scope": "all"}}),
        json!({"argv": ["a"], "stop": {"patience": 3}}),
        json!({"argv": ["a"], "limit": 5}),
        json!({"argv": ["a"], "pty": true}),
        json!({"argv": ["a"], "pty": {"rows": 50}}),
        json!({"argv": ["a"], "user": -3}),
        json!({"argv": ["a"], "user": 4_294_967_295_u32}),
        json!({"argv": ["a"], "group": 4_294_967_295_u32}),
        json!({"argv": ["a"], "extra_groups": [1, 4_294_967_295_u32]}),
        json!({"argv": ["a"], "new_session": "yes"}),
        json!({"argv": ["a"], "blocked_signals": "USR1"}),
        json!({"argv": ["a"], "blocked_signals": [10]}),
        json!({"argv": ["a"], "ignored_signals": null}),
        json!({"argv": ["a"], "cpu_affinity": [-1]}),
        json!({"argv": ["a"], "cpu_affinity": "0-3"}),
        json!({"argv": ["a"], "sched_policy": 5}),
        json!({"argv": ["a"], "ionice": "best-effort:8"}),
        json!({"argv": ["a"], "ionice": 3}),
        json!({"argv": ["a"], "oom_score_adj": "high"}),
        json!({"argv": ["a"], "chroot": true}),
        json!({"argv": ["a"], "no_new_privs": null}),
        json!({"argv": ["a"], "new_keyring": 1}),
    ] {
        assert!(conforms(&text).is_err(), "{text}");
        assert!(
            serde_json::from_value::<Spec>(text.clone()).is_err(),
            "{text}"
        );
    }
    // Only a list of names could express these.
    for text in [
        json!({"argv": ["a"], "die_with_parent": "NONE"}),
        json!({"argv": ["a"], "default_signals": ["NONE"]}),
        json!({"argv": ["a"], "sched_policy": "deadline"}),
        json!({"argv": ["a"], "sched_policy": "fifo"}),
        json!({"argv": ["a"], "sched_policy": "rr:100"}),
        json!({"argv": ["a"], "stop": {"signal": "NONE"}}),
        json!({"argv": [{"base64": "%"}]}),
    ] {
        assert!(
            serde_json::from_value::<Spec>(text.clone()).is_err(),
            "{text}"
        );
    }
}

#[test]
fn defaults_stand_for_what_is_not_said_and_for_nothing_else() {
    let read = |text: Value| {
        let defaults = Defaults {
            argv: Some(vec!["mine".into()]),
            stdin: Stdin::Inherit,
            stdout: Sink::Inherit,
            stderr: Sink::Null,
        };
        defaults.deserialize(text).unwrap()
    };
    let spec = read(json!({}));
    assert_eq!(spec.argv, ["mine"]);
    assert!(matches!(
        (spec.stdin, spec.stdout, spec.stderr),
        (Stdin::Inherit, Sink::Inherit, Sink::Null)
    ));
    let spec =
        read(json!({"argv": ["its"], "stdin": "null", "stdout": "capture", "stderr": "merged"}));
    assert_eq!(spec.argv, ["its"]);
    assert!(matches!(
        (spec.stdin, spec.stdout, spec.stderr),
        (Stdin::Null, Sink::Capture, Sink::Merged)
    ));
}
