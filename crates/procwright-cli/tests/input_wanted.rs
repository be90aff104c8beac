//! `--input-wanted`: a program that waits for input is told of, and stopped if that is wanted.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use common::{Ran, procwright, run};
use serde_json::Value;

const ASKS: &str = "printf 'Go on? '; read answer; echo $answer; exit 3";

/// The result while stdin stays open and nobody writes.
fn unanswered(mut command: Command) -> Ran {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let ran = Ran::from(child.wait_with_output().unwrap());
    drop(stdin);
    ran
}

fn report(path: &std::path::Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_wait_is_told_and_the_program_goes_on_when_it_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let mut command = procwright(["--input-wanted", "tell", "--report-to"]);
    command.arg(&path).args(["sh", "-c", ASKS]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let stderr = child.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut line).unwrap();
    assert!(line.starts_with("procwright: sh -c "), "{line}");
    assert!(line.contains(" wants input: sh ("), "{line}");
    assert!(line.contains(" waits for input on stdin, pipe "), "{line}");
    assert!(line.contains(", and asks: \"Go on? \""), "{line}");
    child.stdin.take().unwrap().write_all(b"yes\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code(), &*ran.stdout), (Some(3), "Go on? yes\n"));
    let report = report(&path);
    assert_eq!(report["reason"], "finished");
    assert_eq!(report["input_wanted"]["prompt"], "Go on? ");
    assert_eq!(report["input_wanted"]["terminal"], false);
}

#[test]
fn a_program_that_asks_where_nobody_answers_is_stopped_and_not_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let mut command = procwright(["--input-wanted", "fail", "--retry", "2", "--report-to"]);
    command.arg(&path).args(["sh", "-c", ASKS]);
    let ran = unanswered(command);
    assert_eq!((ran.code(), &*ran.stdout), (Some(124), "Go on? "));
    assert!(ran.stderr.contains(" wants input: sh ("), "{}", ran.stderr);
    let said = "\n  it is stopped, as --input-wanted says\n  hint: --stdin FILE gives it an answer";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let report = report(&path);
    assert_eq!(report["reason"], "cancelled");
    assert_eq!(report["attempts"], 1);
    let asked = &report["input_wanted"];
    assert_eq!(asked["pid"], report["pid"]);
    let text = asked["text"].as_str().unwrap();
    assert!(ran.stderr.contains(text), "{text}");
}

#[test]
fn a_question_at_a_terminal_is_one_too() {
    let mut command = procwright(["--input-wanted", "fail", "--pty", "--report", "text"]);
    command.args([
        "sh",
        "-c",
        "exec < /dev/tty; printf 'Password: '; read word",
    ]);
    let ran = unanswered(command);
    assert_eq!((ran.code(), &*ran.stdout), (Some(124), "Password: "));
    let (told, report) = ran.stderr.split_once("\ncommand ").unwrap();
    let said = " waits for input on its terminal, /dev/pts/";
    assert!(told.contains(said), "{told}");
    let outcome = "\noutcome    was stopped, as it waited for input; ";
    assert!(report.contains(outcome), "{report}");
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("; asked: \"Password: \""), "{report}");
}

#[test]
fn the_first_of_a_tree_that_waits_is_named() {
    let mut command = procwright(["--input-wanted", "fail"]);
    command.args(["sh", "-c", "sleep 600 & echo begun; cat; true"]);
    let ran = unanswered(command);
    assert_eq!((ran.code(), &*ran.stdout), (Some(124), "begun\n"));
    assert!(ran.stderr.contains(" wants input: cat ("), "{}", ran.stderr);
}

#[test]
fn what_does_not_wait_for_input_is_let_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    // The looks begin after 0.1 s of silence.
    for line in ["sleep 0.5; exit 3", "sleep 0.5 | cat; exit 3"] {
        let mut command = procwright(["--input-wanted", "fail", "--report-to"]);
        command.arg(&path).args(["sh", "-c", line]);
        let ran = unanswered(command);
        assert_eq!((ran.code(), &*ran.stderr), (Some(3), ""), "{line}");
        assert_eq!(report(&path)["input_wanted"], Value::Null);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let ran = run(["--input-wanted", "ask"], &["true".to_owned()]);
    assert_eq!(ran.code(), Some(125));
    assert!(ran.stderr.contains("tell, fail"), "{}", ran.stderr);
    let ran = run(
        ["--input-wanted", "fail", "--dry-run"],
        &["true".to_owned()],
    );
    assert_eq!(ran.code(), Some(0));
    assert!(ran.stderr.contains("--input-wanted"), "{}", ran.stderr);
}
