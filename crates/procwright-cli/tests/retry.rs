//! `--retry` and `--backoff`.
#![allow(clippy::disallowed_methods)] // Tests may sleep.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Ran, child, kill, procwright, run};
use rustix::process::Signal;

fn attempts(ran: &Ran) -> usize {
    ran.stderr.matches("procwright: attempt ").count()
}

#[test]
fn each_failure_is_told_and_the_last_one_counts() {
    let ran = run(["--retry", "2", "--backoff", "1ms"], &child(["exit", "3"]));
    assert_eq!(ran.code(), Some(3));
    assert_eq!(
        ran.stderr,
        "procwright: attempt 1 of 3 failed: exited with code 3; next in 0.001 s\n\
         procwright: attempt 2 of 3 failed: exited with code 3; next in 0.002 s\n"
    );
}

#[test]
fn the_pause_is_doubled_and_kept() {
    let began = Instant::now();
    let ran = run(
        ["--retry", "2", "--backoff", "100ms"],
        &child(["exit", "1"]),
    );
    assert_eq!(attempts(&ran), 2);
    assert!(began.elapsed() >= Duration::from_millis(300));
}

#[test]
fn success_is_the_end_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("count");
    // The third time is lucky.
    let line = format!(
        "echo >> {0}; test $(wc -l < {0}) -ge 3",
        file.to_str().unwrap()
    );
    let ran = run(["--retry", "9", "--backoff", "0", "--shell"], &[line]);
    assert_eq!((ran.code(), attempts(&ran)), (Some(0), 2));
    assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), 3);
}

#[test]
fn codes_that_are_no_failure_are_the_end_of_it() {
    let options =
        |codes: &'static str| ["--quiet", "--retry", "1", "--backoff", "0", "--ok", codes];
    let says = |code: &str| child(["says", "out:a", code]);
    let ran = run(options("1,3"), &says("exit:3"));
    assert_eq!((ran.code(), attempts(&ran)), (Some(0), 0));
    assert_eq!(ran.stdout, "");
    // The last of two attempts is shown.
    let ran = run(options("1,3"), &says("exit:2"));
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(2), "a"));
    let wrong = run(["--ok", "256"], &child(["exit", "0"]));
    assert_eq!(wrong.code(), Some(125));
    assert!(wrong.stderr.contains("256"), "{}", wrong.stderr);
    let dry = run(["--dry-run", "--ok", "1"], &child(["exit", "0"]));
    let spec: serde_json::Value = serde_json::from_str(&dry.stdout).unwrap();
    assert_eq!(spec["ok_codes"], serde_json::json!([1]));
}

#[test]
fn signals_and_limits_are_failures() {
    let ran = run(
        ["--retry", "1", "--backoff", "0"],
        &child(["signal-self", "KILL"]),
    );
    assert_eq!(ran.code(), Some(137));
    assert!(
        ran.stderr
            .contains("attempt 1 of 2 failed: killed by SIGKILL; ")
    );
    let ran = procwright(["--retry", "1", "--backoff", "0", "--timeout", "100ms", "--"])
        .args(child(["sleep-forever"]))
        .output()
        .unwrap();
    let ran = Ran::from(ran);
    assert_eq!((ran.code(), attempts(&ran)), (Some(124), 1));
    assert_eq!(
        ran.stderr.matches("sleep-forever timed out after").count(),
        2
    );
}

#[test]
fn what_cannot_be_started_is_not_tried_again() {
    let ran = run(["--retry", "3"], &["no-such-program".to_owned()]);
    assert_eq!((ran.code(), attempts(&ran)), (Some(127), 0));
    let ran = run(["--retry", "3"], &["/dev/null".to_owned()]);
    assert_eq!((ran.code(), attempts(&ran)), (Some(126), 0));
}

#[test]
fn nor_is_what_sigint_ended() {
    let ran = run(["--retry", "3"], &child(["signal-self", "INT"]));
    assert_eq!((ran.signal(), attempts(&ran)), (Some(2), 0));
}

/// A run in the pause before its second attempt.
fn pausing() -> (std::process::Child, BufReader<std::process::ChildStderr>) {
    let mut command = procwright(["--retry", "3", "--backoff", "1h", "--"]);
    command.args(child(["exit", "1"])).stderr(Stdio::piped());
    let mut procwright = command.spawn().unwrap();
    let mut stderr = BufReader::new(procwright.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("next in 1 h 0 min"), "{line}");
    (procwright, stderr)
}

#[test]
fn a_signal_ends_the_pause_and_us() {
    use std::os::unix::process::ExitStatusExt;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (mut procwright, mut stderr) = pausing();
        kill(procwright.id().cast_signed(), signal);
        let status = procwright.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()));
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}

#[test]
fn what_fails_after_ctrl_c_is_not_tried_again() {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::process::CommandExt;
    let (mut keyboard, slave) = common::terminal();
    // The program answers SIGINT by an exit code, as many do: the read ends when the
    // trap has run.
    let line = "trap 'exit 5' INT; echo ready $$; read line";
    let mut command = procwright(["--retry", "3", "--backoff", "0", "--shell", line]);
    command.stdin(slave);
    // SAFETY: both are plain system calls.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin().as_fd())?;
            Ok(())
        });
    }
    let started = common::Started::of(command);
    keyboard.write_all(b"\x03").unwrap();
    let ran = started.finish();
    assert_eq!((ran.code(), attempts(&ran)), (Some(5), 0), "{}", ran.stderr);
}

#[test]
fn the_pause_sleeps() {
    let (mut procwright, _stderr) = pausing();
    let pid = procwright.id();
    // A procwright that pauses is asleep, and has not run when it is looked at again.
    let ticks = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        let switches: Vec<String> = switches.map(str::to_owned).collect();
        (status.contains("State:\tS"), switches)
    };
    // It may sleep for a moment on the way to the pause. One that looked again and again would
    // never be seen like this.
    loop {
        let before = ticks();
        std::thread::sleep(Duration::from_millis(300));
        if before.0 && ticks() == before {
            break;
        }
    }
    kill(pid.cast_signed(), Signal::KILL);
    procwright.wait().unwrap();
}

#[test]
fn the_report_counts_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let options = ["--retry", "2", "--backoff", "100ms", "--report-to"];
    let ran = procwright(options)
        .arg(&file)
        .args(child(["exit", "3"]))
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(3));
    let text = std::fs::read_to_string(&file).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["attempts"], 3);
    assert!(report["total_s"].as_f64().unwrap() >= 0.3);
    let ran = run(
        ["--retry", "1", "--backoff", "0", "--report", "text"],
        &child(["exit", "3"]),
    );
    assert!(ran.stderr.contains("\nattempts   2, "), "{}", ran.stderr);
}

#[test]
fn an_inherited_stdin_goes_on_and_a_file_begins_anew() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lines");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    // Byte by byte, as a shell reads.
    let line = || vec!["read line; echo $line; exit 1".to_owned()];
    let mut command = procwright(["--retry", "1", "--backoff", "0", "--shell"]);
    let output = command
        .args(line())
        .stdin(std::fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"one\ntwo\n");
    let file = file.to_str().unwrap();
    let ran = run(
        ["--retry", "1", "--backoff", "0", "--shell", "--stdin", file],
        &line(),
    );
    assert_eq!(ran.stdout, "one\none\n");
}
