//! `--explain-after` and `--explain-to`.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods)] // Tests may sleep.

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Ran, procwright, run, subcommand};

#[test]
fn why_it_has_not_ended_is_told_and_it_goes_on() {
    let mut command = procwright(["--explain-after", "300ms", "--", "sh", "-c", "cat; exit 3"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    let begin = "procwright: sh -c 'cat; exit 3' has not ended after 0.3 s: ";
    assert!(line.starts_with(begin), "{line}");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn a_file_has_who_waits_for_whom() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hang.txt");
    fs::write(&file, "of yesterday").unwrap();
    let mut command = procwright(["--explain-after", "300ms", "--explain-to"]);
    command.arg(&file).args(["cat"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let text = loop {
        let text = fs::read_to_string(&file).unwrap();
        if text.contains("Looked twice") {
            break text;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(
        text.starts_with("cat has not ended after 0.3 s: "),
        "{text}"
    );
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_limit_that_is_too_short_for_a_look_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hang.txt");
    let ran = run(
        ["--timeout", "300ms", "--explain-to", file.to_str().unwrap()],
        &["sleep".to_owned(), "60".to_owned()],
    );
    assert_eq!(ran.code(), Some(124));
    let text = fs::read_to_string(&file).unwrap();
    let said = "that takes a limit of a second or more, and this one was 0.3 s.";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_limit_leaves_what_it_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let [file, report] = ["hang.txt", "report.json"].map(|name| folder.path().join(name));
    for limit in [1, 2, 4, 8, 20] {
        let mut command = procwright(["--timeout", &format!("{limit}s"), "--explain-to"]);
        command.arg(&file).arg("--report-to");
        command.arg(&report).arg("cat");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Its input stays open until it is over.
        let stdin = child.stdin.take();
        let ran = Ran::from(child.wait_with_output().unwrap());
        drop(stdin);
        assert_eq!(ran.code(), Some(124));
        let text = fs::read_to_string(&file).unwrap();
        let begin = format!("cat timed out after {limit} s (stopped in ");
        assert!(text.starts_with(&begin), "{text}");
        if !text.contains("\n  why: cat (") {
            // On a busy machine that takes a longer limit.
            assert!(text.contains("were not over when it came"), "{text}");
            continue;
        }
        assert!(text.contains("waits for input on stdin, pipe "), "{text}");
        assert!(text.contains("Looked twice"), "{text}");
        assert!(ran.stderr.contains("\n  why: cat ("), "{}", ran.stderr);
        let report: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
        let why = report["why"].as_str().unwrap();
        assert!(text.contains(&format!("\n  why: {why}\n")), "{why}\n{text}");
        return;
    }
    panic!("a look is over within 5 s, a quarter of the longest limit");
}

/// What the command writes to stderr with a limit that leaves enough time to find out why, while
/// stdin stays open.
fn said_of_why(name: &str, words: &[&str]) -> String {
    let said = ["1s", "2s", "4s", "8s", "20s"]
        .into_iter()
        .find_map(|limit| {
            let mut child = subcommand(name)
                .args(["--timeout", limit])
                .args(words)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let stdin = child.stdin.take();
            let ran = Ran::from(child.wait_with_output().unwrap());
            drop(stdin);
            ran.stderr.contains("why: ").then_some(ran.stderr)
        });
    said.expect("a look is over within 5 s, a quarter of the longest limit")
}

#[test]
fn a_pipeline_names_the_stage_that_is_waited_for_and_why() {
    let said = said_of_why("pipe", &["cat", "--to", "wc", "-l"]);
    let begin = "stage 1 of 2 held up the rest: cat timed out";
    assert!(said.contains(begin), "{said}");
    assert!(said.contains("\n    why: cat ("), "{said}");
    assert!(said.contains("waits for input on stdin, pipe "), "{said}");
}

#[test]
fn a_map_says_of_each_command_why_it_came_to_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let path = fifo.to_str().unwrap();
    // Whose end to write is open here, and silent.
    let _writer = fs::File::options().read(true).write(true).open(path);
    let said = said_of_why("map", &["cat", ":::", path]);
    assert!(said.contains(" timed out after "), "{said}");
    assert!(said.contains("\n  why: cat ("), "{said}");
}

#[test]
fn without_a_hang_there_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hang.txt");
    let path = file.to_str().unwrap();
    let options = ["--timeout", "60s", "--explain-to", path];
    assert_eq!(run(options, &["true".to_owned()]).code(), Some(0));
    assert!(!file.exists());
    // One that was there is empty: what it said was of another run.
    fs::write(&file, "of yesterday").unwrap();
    assert_eq!(run(options, &["true".to_owned()]).code(), Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let ran = run(["--explain-to", "hang.txt"], &["true".to_owned()]);
    assert_eq!(ran.code(), Some(125));
    let said = "--explain-to has nothing to explain\n  hint: give --timeout, --idle-timeout or";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let options = ["--explain-after", "1s", "--explain-to", "/no/such/file"];
    let ran = run(options, &["true".to_owned()]);
    assert_eq!(ran.code(), Some(125));
    assert!(ran.stderr.contains("/no/such/file"), "{}", ran.stderr);
}
