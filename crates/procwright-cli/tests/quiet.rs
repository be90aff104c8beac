//! Output that is shown only if the run fails.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use common::{Ran, child, procwright};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};

fn quiet(options: &[&str], words: &[&str]) -> Command {
    let mut command = procwright(["--quiet"]);
    command.args(options).arg("--");
    command.args(child(["says"])).args(words);
    command
}

fn ran(mut command: Command) -> Ran {
    command.output().unwrap().into()
}

#[test]
fn a_success_says_nothing() {
    let ran = ran(quiet(&[], &["out:one\\n", "err:two\\n"]));
    assert_eq!(
        (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "", "")
    );
}

#[test]
fn a_failure_says_all_of_it_where_it_belongs() {
    let ran = ran(quiet(
        &[],
        &["out:one\\n", "err:two\\n", "out:rest", "exit:7"],
    ));
    assert_eq!(
        (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(7), "one\nrest", "two\n")
    );
}

#[test]
fn of_attempts_that_another_follows_nothing_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = procwright(["--quiet", "--retry", "2", "--backoff", "1ms", "--"]);
    command.args(["sh", "-c", "echo no; [ -e up ] || { touch up; exit 3; }"]);
    command.current_dir(directory.path());
    let ran = ran(command);
    assert_eq!(
        (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "", "")
    );
}

#[test]
fn a_signal_and_a_stop_are_failures() {
    let mut command = procwright(["--quiet", "--"]);
    command
        .args(child(["obey"]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    // `obey` reports a line that it does not know, and fails.
    run.stdin
        .take()
        .unwrap()
        .write_all(b"lead\nsignal 9\n")
        .unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(137), &b"leads\n"[..])
    );

    let mut command = quiet(&["--timeout", "3s"], &["out:begun", "ack"]);
    let mut run = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = run.stdin.take();
    let output = run.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(124), &b"begun"[..])
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("timed out"));
}

#[test]
fn our_own_signal_shows_it_too() {
    // A log that tells when the program has spoken.
    let dir = tempfile::tempdir().unwrap();
    let fifo = common::fifo(&dir.path().join("log"));
    let mut command = procwright(["--quiet", "--log"]);
    command.arg(dir.path().join("log")).arg("--");
    command.args(child(["sleep-forever", "--print-ready"]));
    let run = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(fifo).read_line(&mut ready).unwrap();
    common::kill(run.id().cast_signed(), Signal::TERM);
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(15));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), ready);
}

#[test]
fn more_than_the_memory_goes_to_disk_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = procwright(["--quiet", "--limit", "40000000", "--"]);
    command.args(child(["flood", "--out", "30000000", "--err", "40000001"]));
    command.env("PROCWRIGHT_SPOOL_DIR", dir.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(124));
    let pattern = |stream, length| test_children::Pattern::new(stream, length);
    // The output that came before the limit is shown.
    let length = output.stdout.len();
    assert_eq!(
        pattern(test_children::Stream::Stdout, length).mismatch(0, &output.stdout),
        None
    );
    let err = &output.stderr[..40_000_000];
    assert_eq!(
        pattern(test_children::Stream::Stderr, err.len()).mismatch(0, err),
        None
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_disk_that_is_full_keeps_the_program_going() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = procwright(["--quiet", "--limit", "40000000", "--"]);
    command.args(child(["flood", "--out", "40000001"]));
    command.env("PROCWRIGHT_SPOOL_DIR", dir.path());
    // SAFETY: a plain system call.
    unsafe {
        command.pre_exec(|| {
            let current = Some(20_000_000);
            setrlimit(
                Resource::Fsize,
                Rlimit {
                    current,
                    maximum: None,
                },
            )?;
            Ok(())
        });
    }
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{stderr}");
    assert!(
        stderr.contains("cannot keep all of the output: File too large"),
        "{stderr}"
    );
    let missing = stderr
        .split("procwright: ")
        .find_map(|line| line.split_once(" bytes of the output are missing here"));
    let missing: usize = missing.unwrap().0.parse().unwrap();
    assert_eq!(output.stdout.len() + missing, 40_000_000);
    // Beginning and end are there.
    let pattern = test_children::Pattern::new(test_children::Stream::Stdout, 40_000_000);
    let head = 16 << 20;
    assert_eq!(pattern.mismatch(0, &output.stdout[..head]), None);
    let tail = &output.stdout[output.stdout.len() - (512 << 10)..];
    assert_eq!(pattern.mismatch(40_000_000 - tail.len() as u64, tail), None);
}

#[test]
fn memory_only() {
    let mut command = procwright(["--quiet", "--limit", "40000000", "--"]);
    command
        .args(child(["flood", "--out", "40000001"]))
        .env("PROCWRIGHT_SPOOL", "0");
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("no more than 16 MiB"), "{stderr}");
    assert!(output.stdout.len() >= 16 << 20 && output.stdout.len() < 20 << 20);
    let mut command = quiet(&[], &["exit:1"]);
    command.env("PROCWRIGHT_SPOOL_DIR", "/no/such");
    assert_eq!(ran(command).code(), Some(125));
}

#[test]
fn with_tags_and_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let options = ["--tag", "--log", log.to_str().unwrap()];
    let ran = ran(quiet(&options, &["out:one\\n", "exit:1"]));
    assert!(
        ran.stdout.ends_with(" out | one\n") && ran.stdout.len() == 23,
        "{}",
        ran.stdout
    );
    assert_eq!(fs::read_to_string(&log).unwrap(), "one\n");
}

#[test]
fn who_has_seen_enough_can_end_it() {
    // The reader takes nothing, and Ctrl-C still ends it.
    let mut command = procwright(["--quiet", "--limit", "1000000", "--"]);
    command.args(child(["flood", "--out", "1000001"]));
    let mut run = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Output is shown, so the run is over.
    run.stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut [0; 1])
        .unwrap();
    common::kill(run.id().cast_signed(), Signal::INT);
    assert_eq!(run.wait().unwrap().signal(), Some(2));
}
