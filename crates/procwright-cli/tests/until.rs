//! The end of a run: at the exit, or at the end of its pipes.

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::{child, is_gone, kill, procwright, run};
use rustix::process::Signal;
use test_support::in_time;

#[test]
fn at_the_exit_whoever_holds_the_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let pidfile = directory.path().join("pid");
    let report = directory.path().join("report");
    let words = child([
        "fork-holder",
        "0",
        "--say",
        "all of it",
        "--pidfile",
        pidfile.to_str().unwrap(),
    ]);
    // Into files: the holder keeps our own stdout open, too, if that is a pipe.
    let ran = run(
        ["--until", "exit", "--report-to", report.to_str().unwrap()],
        &words,
    );
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "all of it\n"));
    let holder: i32 = std::fs::read_to_string(pidfile)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(!is_gone(holder), "what was left behind is left alone");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["stdout_info"]["held_by"][0]["pid"], holder);
    assert_eq!(report["stdout_info"]["complete"], true);
    kill(holder, Signal::KILL);
}

#[test]
fn at_the_end_of_the_pipes_and_not_silently() {
    // It is held until that has been told, a second after the exit.
    let ran = in_time(Duration::from_millis(1500), |held| {
        let held = held.as_millis().to_string();
        let words = child(["fork-holder", &held, "--say", "text"]);
        let ran = run(["--until", "eof"], &words);
        ran.stderr.contains("held open by").then_some(ran)
    });
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), "text\n"));
    assert!(ran.stderr.contains("--until exit"), "{}", ran.stderr);
}

#[test]
fn at_a_silence_after_the_exit() {
    let line = "(sleep 0.1; echo late; exec sleep 1000) & echo $!";
    in_time(Duration::from_secs(3), |silence| {
        let until = format!("silent:{}s", silence.as_secs());
        let ran = run(["--until", &until], &["sh", "-c", line].map(str::to_owned));
        assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
        let (holder, rest) = ran.stdout.split_once('\n').unwrap();
        let holder = holder.parse().unwrap();
        if !is_gone(holder) {
            kill(holder, Signal::KILL);
        }
        // A busy machine may be silent for longer.
        (rest == "late\n").then_some(())
    });
    for wrong in ["silent", "silent:x", "later"] {
        let ran = run(["--until", wrong], &["true"].map(str::to_owned));
        assert_eq!(ran.code(), Some(125), "{}", ran.stderr);
        assert!(ran.stderr.contains("silent: and a time"), "{}", ran.stderr);
    }
}

#[test]
fn a_timeout_ends_the_wait_for_a_holder() {
    let directory = tempfile::tempdir().unwrap();
    let pidfile = directory.path().join("pid");
    let words = child(["fork-holder", "0", "--pidfile", pidfile.to_str().unwrap()]);
    let ran = run(["--until", "eof", "--timeout", "3s"], &words);
    assert_eq!(ran.code(), Some(124), "{}", ran.stderr);
    assert!(ran.stderr.contains("held open by"), "{}", ran.stderr);
    let hint = "hint: the program had exited; --until exit does not wait";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    let holder: i32 = std::fs::read_to_string(pidfile)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    common::assert_gone(&[holder]);
}

#[test]
fn without_pipes_nobody_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pidfile = directory.path().join("pid");
    let words = child(["fork-holder", "0", "--pidfile", pidfile.to_str().unwrap()]);
    let mut command = procwright(["--"]);
    command.args(words).stdout(Stdio::null());
    assert!(command.status().unwrap().success());
    let holder = std::fs::read_to_string(pidfile).unwrap();
    let holder: i32 = holder.trim().parse().unwrap();
    assert!(!is_gone(holder), "what was left behind is left alone");
    kill(holder, Signal::KILL);
}
