//! The set-up of a program's process, by flags that are made from the library's table.

mod common;

use common::{Ran, subcommand};
use serde_json::{Value, json};

fn run(options: &[&str], argv: &[&str]) -> Ran {
    let mut command = subcommand("run");
    Ran::from(command.args(options).arg("--").args(argv).output().unwrap())
}

fn show(options: &[&str]) -> Value {
    let ran = run(options, &[test_children::path().to_str().unwrap(), "show"]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn each_is_seen_in_the_program() {
    let ours = show(&[])["cpus"].clone();
    let last = ours.as_array().unwrap().last().unwrap();
    let seen = show(&[
        "--block-signal=USR1,SIGTERM",
        "--block-signal=12",
        "--ignore-signal=WINCH",
        "--cpu-affinity",
        &format!("{last}-{last},{last}"),
        "--sched-policy=batch",
        "--ionice=best-effort:7",
        "--oom-score-adj=1000",
        "--no-new-privs",
    ]);
    assert_eq!(seen["sig_blocked"], json!([10, 12, 15]));
    assert!(seen["sig_ignored"].as_array().unwrap().contains(&json!(28)));
    assert_eq!(seen["cpus"], json!([last]));
    assert_eq!(
        (&seen["sched_policy"], &seen["ioprio"]),
        (&json!(3), &json!(2 << 13 | 7))
    );
    assert_eq!(
        (&seen["oom_score_adj"], &seen["no_new_privs"]),
        (&json!(1000), &json!(1))
    );
}

/// What the shell in front ignores is passed on, unless the default action is asked for.
#[test]
fn what_the_caller_ignores_can_have_its_default() {
    let ignored = |flag: &str| {
        let program = test_children::path();
        let line = format!(
            "trap '' PIPE HUP; exec \"$0\" run {flag} -- {} show",
            program.display()
        );
        let mut shell = std::process::Command::new("sh");
        let ran = shell.args(["-c", &line, env!("CARGO_BIN_EXE_procwright")]);
        let ran = Ran::from(ran.output().unwrap());
        let seen: Value = serde_json::from_str(&ran.stdout).unwrap();
        let all = seen["sig_ignored"].as_array().unwrap().clone();
        [1, 13].map(|signal| all.contains(&json!(signal)))
    };
    assert_eq!(ignored(""), [true, true]);
    assert_eq!(ignored("--ignore-signal=USR1"), [true, true]);
    assert_eq!(ignored("--default-signal=PIPE"), [true, false]);
    assert_eq!(ignored("--default-signal=PIPE,HUP"), [false, false]);
}

#[test]
fn they_are_part_of_the_spec() {
    let ran = run(
        &[
            "--dry-run",
            "--ionice=idle",
            "--cpu-affinity=0-1",
            "--chroot=/srv",
        ],
        &["x"],
    );
    let spec: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&spec["ionice"], &spec["cpu_affinity"], &spec["chroot"]),
        (&json!("idle"), &json!([0, 1]), &json!("/srv"))
    );
    assert_eq!(spec["ignored_signals"], json!([]));
}

#[test]
fn bad_values_are_refused_before_anything_starts() {
    for (option, words) in [
        (
            "--block-signal=KILL",
            "--block-signal has SIGKILL, which no process can block",
        ),
        ("--block-signal=X", "this is no signal"),
        ("--cpu-affinity=3-1", "the first number of a range"),
        ("--cpu-affinity=-1", "numbers of processors"),
        (
            "--cpu-affinity=9000",
            "--cpu-affinity has 9000, and no kernel",
        ),
        ("--cpu-affinity=", "numbers of processors"),
        (
            "--ionice=x",
            "--ionice is \"x\", which is not known: use \"none\"",
        ),
        (
            "--sched-policy=fifo",
            "--sched-policy is \"fifo\", which is not known",
        ),
        (
            "--oom-score-adj=1001",
            "--oom-score-adj is 1001, which is out of range",
        ),
        ("--oom-score-adj=x", "this is no number"),
    ] {
        let ran = run(&[option], &["/nonexistent"]);
        assert_eq!(ran.code(), Some(125), "{option}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{option}: {}", ran.stderr);
    }
    let ran = run(
        &["--default-signal=INT", "--ignore-signal=INT"],
        &["/nonexistent"],
    );
    assert_eq!(ran.code(), Some(125));
    assert!(
        ran.stderr.contains("which is in ignored_signals as well"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_the_system_refuses_is_named() {
    for (option, words) in [
        ("--cpu-affinity=0,8191", "sched_setaffinity \"0,8191\": "),
        ("--cgroup=/usr", "cgroup.procs \"/usr\": "),
        (
            "--chroot=/nonexistent/root",
            "chroot \"/nonexistent/root\": ",
        ),
    ] {
        let ran = run(&[option], &["true"]);
        assert_eq!(ran.code(), Some(125), "{option}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{option}: {}", ran.stderr);
        let name = option[2..].split('=').next().unwrap().replace('-', "_");
        assert!(
            ran.stderr.contains(&format!("hint: {name}: ")),
            "{option}: {}",
            ran.stderr
        );
    }
}

#[test]
fn map_has_them_too() {
    let mut map = subcommand("map");
    map.args([
        "--ionice=idle",
        "--no-new-privs",
        "sh",
        "-c",
        "exec \"$0\" show",
    ]);
    let ran = Ran::from(
        map.arg(test_children::path())
            .args([":::", "item"])
            .output()
            .unwrap(),
    );
    let seen: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&seen["ioprio"], &seen["no_new_privs"]),
        (&json!(3 << 13), &json!(1))
    );
}
