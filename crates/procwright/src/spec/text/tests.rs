use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use super::*;
use crate::spec::Beyond;
use procwright_os::time::Timeout;
use procwright_process::{Scope, Signal};

/// Everything that can be written, away from its default.
fn full() -> Spec {
    let mut spec = Spec::new(["prog", "-x"]);
    spec.argv.push(OsString::from_vec(vec![b'b', 0xff]));
    spec.env = Some(vec![("A".into(), OsString::from_vec(vec![0xfe]))]);
    spec.extra_env = vec![("B".into(), Some("c".into())), ("D".into(), None)];
    spec.cwd = Some("/tmp".into());
    spec.user = Some(Account::Name("nobody".into()));
    spec.group = Some(Account::Id(7));
    spec.extra_groups = Some(vec![Account::Id(1)]);
    spec.umask = Some(0o27);
    spec.rlimits = vec![Rlimit {
        resource: "nofile".into(),
        soft: 5,
        hard: u64::MAX,
    }];
    spec.nice = Some(3);
    spec.process_group = Some(0);
    spec.new_session = true;
    spec.foreground = true;
    spec.die_with_parent = Some(Signal::KILL);
    spec.blocked_signals = vec![Signal::USR1];
    spec.ignored_signals = vec![Signal::HUP];
    spec.default_signals = vec![Signal::INT];
    spec.cpu_affinity = Some(vec![0, 9]);
    spec.sched_policy = Some(SchedPolicy::RoundRobin(7));
    spec.ionice = Some(IoPriority::BestEffort(6));
    spec.oom_score_adj = Some(-5);
    spec.cgroup = Some("/sys/fs/cgroup".into());
    spec.chroot = Some("/srv".into());
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
    spec.stop = Stop::kill().with_scope(Scope::Group);
    spec.until = Until::Exit;
    spec.limit = Some(Limit {
        bytes: 9,
        beyond: Beyond::Fail,
    });
    spec.keep_full = Some("full".into());
    spec.merged = true;
    spec.ok_codes = vec![1, 2];
    spec.stall_after = Timeout::NEVER;
    spec
}

#[test]
fn what_is_written_comes_back() {
    for spec in [full(), Spec::new(["true"])] {
        let text = serde_json::to_string(&spec).unwrap();
        let back: Spec = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{spec:?}"), format!("{back:?}"), "{text}");
    }
}

#[test]
fn only_argv_is_needed() {
    let spec: Spec = serde_json::from_str(r#"{"argv": ["true"]}"#).unwrap();
    assert_eq!(format!("{spec:?}"), format!("{:?}", Spec::new(["true"])));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for (text, part) in [
        (r#"{"argv": ["a"], "timeot": 1}"#, "timeot"),
        (r#"{"argv": ["a"], "stop": {"signal": "NONE"}}"#, "NONE"),
        (
            r#"{"argv": ["a"], "stop": {"scope": "all"}}"#,
            "`process`, `group`, `tree`",
        ),
        (r#"{"argv": [{"base64": "%"}]}"#, "base64"),
    ] {
        let error = serde_json::from_str::<Spec>(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn what_has_no_text_is_refused_before_the_first_byte() {
    let null = || {
        let file = std::fs::File::open("/dev/null").unwrap();
        std::sync::Arc::new(OwnedFd::from(file))
    };
    let odd = || OsString::from_vec(vec![0xff]);
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Spec));
    let changes: [Change<'_>; 7] = [
        ("stdin has a descriptor", &|spec| {
            spec.stdin = Stdin::Fd(null())
        }),
        ("stdout has a descriptor", &|spec| {
            spec.stdout = Sink::Fd(null())
        }),
        ("stderr has a descriptor", &|spec| {
            spec.stderr = Sink::Fd(null())
        }),
        ("pass_fds has a descriptor", &|spec| {
            spec.pass_fds = vec![(null(), 3)]
        }),
        ("channel is for", &|spec| {
            spec.channel = Some(Channel::FromChild)
        }),
        ("env has the name", &|spec| {
            spec.env = Some(vec![(odd(), "x".into())])
        }),
        ("env has the name", &|spec| {
            spec.extra_env = vec![(odd(), None)]
        }),
    ];
    for (part, change) in changes {
        let mut spec = Spec::new(["a"]);
        change(&mut spec);
        let mut written = Vec::new();
        let error = serde_json::to_writer(&mut written, &spec)
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(String::from_utf8_lossy(&written), "", "{part}");
    }
}
