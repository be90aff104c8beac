//! The lines of `procwright wait --json` are what
//! `docs/reference/wait.schema.json` says.

use test_support::schema;

mod common;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use common::target::{Target, Waiter, wait};
use rustix::process::Signal;
use schema::check;
use serde_json::{Value, json};

const NOBODY: i32 = i32::MAX;

fn the_schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/wait.schema.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A line, which conforms.
#[track_caller]
fn line(text: &str) -> Value {
    let value = serde_json::from_str(text).unwrap();
    let schema = the_schema();
    check(&schema, &schema, &value, "line").unwrap();
    value
}

#[test]
fn a_code_and_a_signal() {
    let (a, b) = (Target::new(["term-exit", "7"]), Target::sleeper());
    let mut waiter = Waiter::new(["--json", &a.arg(), &b.arg()]);
    let began = jiff::Timestamp::now();
    a.kill(Signal::TERM);
    let told = line(&waiter.line());
    assert_eq!(told["pid"], a.pid());
    assert_eq!(told["inode"], json!(a.id().inode()));
    assert_eq!(told["name"], "test-child");
    assert_eq!(told["event"], "exited");
    assert_eq!(told["status"], json!({"kind": "exited", "code": 7}));
    assert_eq!(told["mechanism"], "pidfd");
    let ended: jiff::Timestamp = told["ended_at"].as_str().unwrap().parse().unwrap();
    // The time is cut to milliseconds.
    assert!(ended.as_millisecond() >= began.as_millisecond());
    b.kill(Signal::KILL);
    let told = line(&waiter.line());
    let killed = json!({"kind": "signaled", "signal": 9, "name": "SIGKILL", "core": false});
    assert_eq!((&told["pid"], &told["status"]), (&json!(b.pid()), &killed));
    assert_eq!(waiter.finish().stdout, "");
}

#[test]
fn a_reap() {
    let mut target = Target::zombie("2");
    let mut waiter = Waiter::new(["--json", "--event", "reaped", &target.arg()]);
    target.reap();
    let told = line(&waiter.line());
    assert_eq!(told["event"], "reaped");
    // Kernels before 6.15 forget the status.
    let told = &told["status"];
    let known = *told == json!({"kind": "exited", "code": 2});
    assert!(
        known || *told == json!({"kind": "unknown", "why": "not_told"}),
        "{told}"
    );
}

#[test]
fn gone_before() {
    let target = Target::sleeper();
    let other = match target.id().inode() {
        Some(inode) => Some(inode + 1),
        None => {
            common::skip("gone_before, with an inode", "needs Linux 6.9");
            None
        }
    };
    let mut cases = vec![(NOBODY, None)];
    cases.extend(other.map(|inode| (target.pid(), Some(inode))));
    for (pid, inode) in cases {
        let id = procwright::process::Id::new(pid, inode).unwrap();
        let ran = wait(["--json", &id.to_string()]);
        let expected = json!({
            "pid": pid,
            "inode": inode,
            "name": null,
            "event": "exited",
            "status": {"kind": "unknown", "why": "gone_before"},
            "waited_s": 0.0,
            "ended_at": null,
            "mechanism": null,
        });
        assert_eq!((ran.code(), line(&ran.stdout)), (Some(0), expected));
    }
}

/// The status of another user's process may not be read before it is reaped.
#[test]
fn another_users_zombie() {
    let name = "another_users_zombie";
    if !rustix::process::geteuid().is_root() {
        return common::skip(name, "needs root");
    }
    // The command may lie where another user cannot reach it.
    let directory = tempfile::tempdir().unwrap();
    let open = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let path = directory.path().join("procwright");
    let own = env!("CARGO_BIN_EXE_procwright");
    // Another process writes the file: a child of another test could still have it
    // open for writing, and it could not be executed.
    assert!(
        Command::new("cp")
            .arg(own)
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );

    let target = Target::zombie("3");
    let mut command = Command::new(&path);
    command.uid(65534).gid(65534);
    let output = command
        .args(["wait", "--json", &target.arg()])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let told = line(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(
        told["status"],
        json!({"kind": "unknown", "why": "not_reaped"})
    );
    assert_eq!(told["name"], "test-child");

    let mut command = Command::new(&path);
    command.uid(65534).gid(65534);
    let output = command.args(["wait", &target.arg()]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(", it is not known how: it was not our child"),
        "{text}"
    );
}

#[test]
fn the_check_itself_finds_faults() {
    let ran = wait(["--json", &Target::zombie("1").arg()]);
    let good = line(&ran.stdout);
    let faults: [(&str, Value); 6] = [
        ("/pid", json!(0)),
        ("/inode", json!("1")),
        ("/event", json!("born")),
        ("/status", json!({"kind": "unknown", "why": "bored"})),
        ("/ended_at", json!("2026-01-02 03:04:05")),
        ("/waited_s", json!(-1)),
    ];
    let schema = the_schema();
    for (pointer, wrong) in faults {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = wrong;
        assert!(check(&schema, &schema, &bad, "").is_err(), "{pointer}");
    }
    let mut bad = good;
    bad["surprise"] = Value::Null;
    assert!(check(&schema, &schema, &bad, "").is_err());
}
