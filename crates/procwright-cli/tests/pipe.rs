//! `procwright pipe`: exit codes, what is said, the report, signals.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Ran, Started, child, is_gone, option, subcommand};
use rustix::process::Signal;
use serde_json::Value;
use test_support::in_time;

fn pipe(words: &[&str]) -> Command {
    let mut command = subcommand("pipe");
    command.args(words);
    command
}

fn ran(words: &[&str]) -> Ran {
    pipe(words).stdin(Stdio::null()).output().unwrap().into()
}

/// Exit code, stdout and stderr.
#[track_caller]
fn ends(words: &[&str], code: i32, stdout: &str, stderr: &str) {
    let ran = ran(words);
    assert_eq!(
        (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(code), stdout, stderr),
        "{words:?}"
    );
}

#[test]
fn a_pipeline_is_read_from_stdin_to_stdout() {
    let mut command = pipe(&["sort", "--to", "head", "-1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut run = command.spawn().unwrap();
    run.stdin.take().unwrap().write_all(b"b\na\n").unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(0), &b"a\n"[..])
    );
    ends(&["yes", "--to", "head", "-1"], 0, "y\n", "");
    ends(
        &["--separator", "::", "echo", "--to", "::", "cat"],
        0,
        "--to\n",
        "",
    );
    ends(
        &["--stdin", "null", "cat", "--to", "wc", "-c"],
        0,
        "0\n",
        "",
    );
    ends(&["echo", "alone"], 0, "alone\n", "");
}

#[test]
fn the_last_failure_is_the_exit_code() {
    let failed = "procwright: false | cat failed: stage 1 of 2 exited with code 1\n  \
                  stage 1 of 2: false exited with code 1\n  \
                  hint: --ok 1=1 if a code of 1 is no failure of stage 1\n";
    ends(&["false", "--to", "cat"], 1, "", failed);
    let ran = ran(&[
        "sh",
        "-c",
        "exit 3",
        "--to",
        "sh",
        "-c",
        "cat; exit 4",
        "--to",
        "cat",
    ]);
    assert_eq!(ran.code(), Some(4));
    assert!(
        ran.stderr
            .contains("stage 1 of 3: sh -c 'exit 3' exited with code 3"),
        "{}",
        ran.stderr
    );
    let ran = self::ran(&["sh", "-c", "kill -KILL $$", "--to", "cat"]);
    assert_eq!(ran.code(), Some(137), "{}", ran.stderr);
    let ran = self::ran(&["yes", "--to", "sh", "-c", "read x; exit 3"]);
    assert_eq!(ran.code(), Some(3));
    assert!(
        ran.stderr
            .contains("yes was killed by SIGPIPE, since the next one had failed")
    );
}

#[test]
fn a_bar_that_the_shell_did_not_take_has_a_hint() {
    let said = "procwright: there is one stage, and | is a word of it\n  \
                hint: stages are joined by --to, as in: procwright pipe sort --to head -1\n";
    ends(&["echo", "a", "|", "cat"], 0, "a | cat\n", said);
    ends(&["echo", "a|b", "--to", "tr", "|", "-"], 0, "a-b\n", "");
    let said = "procwright: there is one stage, and |& is a word of it\n  \
                hint: stages are joined by --to, and a shell sends stderr along, as in: \
                procwright pipe sh -c 'make test 2>&1' --to tee log\n";
    ends(&["echo", "a", "|&", "cat"], 0, "a |& cat\n", said);
}

#[test]
fn a_line_as_a_stage_is_told_how_stages_are_written() {
    for words in [
        &["seq 3 | wc"][..],
        &["seq 3", "--to", "wc"],
        &["seq", "3", "--to", "wc -l"],
    ] {
        let ran = ran(words);
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(127), ""));
        let hint = "hint: each word stands alone, as in: procwright pipe sort -u --to head -1; a \
                    line is run by a shell: procwright pipe sh -c 'LINE'\n";
        assert!(ran.stderr.ends_with(hint), "{}", ran.stderr);
    }
}

#[test]
fn rules_and_codes() {
    let strict = ran(&["--success", "strict", "yes", "--to", "head", "-1"]);
    assert_eq!(strict.code(), Some(141));
    ends(
        &["--success", "last", "false", "--to", "echo", "x"],
        0,
        "x\n",
        "",
    );
    ends(
        &["--ok", "2=1", "echo", "a", "--to", "grep", "b"],
        0,
        "",
        "",
    );
    let other = ran(&["--ok", "1=1,2", "echo", "a", "--to", "grep", "b"]);
    assert_eq!(other.code(), Some(1));
}

#[test]
fn stderr_is_kept_back_by_quiet() {
    let noisy = "echo noise >&2; cat >/dev/null";
    ends(
        &["--quiet", "echo", "a", "--to", "sh", "-c", noisy],
        0,
        "",
        "",
    );
    let python = "import sys\nwhile True: print('y')";
    let ran = ran(&["--quiet", "python3", "-c", python, "--to", "head", "-1"]);
    assert_eq!(
        (ran.code(), ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(0), "y\n", "")
    );
    let fails = self::ran(&["--quiet", "sh", "-c", "echo why >&2; exit 2", "--to", "cat"]);
    assert_eq!(fails.code(), Some(2));
    assert!(
        fails.stderr.contains("the end of stderr:\n      why"),
        "{}",
        fails.stderr
    );
}

#[test]
fn wrong_usage_is_told_before_anything_starts() {
    for (words, said) in [
        (&["--to", "cat"][..], "unexpected argument"),
        (&["cat", "--to"], "stage 2 has no program"),
        (&["cat", "--to", "--to", "cat"], "stage 2 has no program"),
        (&["--ok", "0=1", "cat"], "write the stage from 1"),
        (
            &["--ok", "3=1", "cat", "--to", "cat"],
            "--ok names stage 3, and there are 2\n",
        ),
        (
            &["--ok", "2=1", "cat"],
            "--ok names stage 2, and there is 1\n",
        ),
        (&["--success", "maybe", "cat"], "invalid value"),
    ] {
        let ran = ran(words);
        assert_eq!(ran.code(), Some(125), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
    let missing = ran(&["echo", "x", "--to", "no-such-program"]);
    assert_eq!((missing.code(), missing.stdout.as_str()), (Some(127), ""));
    assert!(
        missing.stderr.contains("stage 2 of 2, no-such-program"),
        "{}",
        missing.stderr
    );
    let directory = ran(&["echo", "x", "--to", "/"]);
    assert_eq!(directory.code(), Some(126), "{}", directory.stderr);
}

#[test]
fn the_stage_that_hangs_is_named() {
    in_time(Duration::from_millis(300), |limit| {
        let limits = ["--timeout", &option(limit), "--grace", "0"];
        let stages = ["yes", "--to", "sleep", "1000", "--to", "cat"];
        let ran = ran(&[&limits[..], &stages].concat());
        assert_eq!(ran.code(), Some(124));
        // The first has filled its pipe by then.
        let named = "stage 2 of 3 held up the rest: sleep 1000";
        ran.stderr.contains(named).then_some(())
    });
    let silent = self::ran(&["--idle-timeout", "300ms", "sleep", "1000", "--to", "cat"]);
    assert_eq!(silent.code(), Some(124));
    assert!(
        silent.stderr.contains("was silent for 0.3 s"),
        "{}",
        silent.stderr
    );
    let much = self::ran(&["--limit", "100", "yes", "--to", "cat"]);
    assert_eq!(much.code(), Some(124), "{}", much.stderr);
}

#[test]
fn the_report_has_every_stage() {
    let ran = ran(&[
        "--report", "json", "yes", "--to", "cat", "--to", "head", "-1",
    ]);
    let report: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(report["success"], true);
    assert_eq!(report["rule"], "forgiving");
    let stages = report["stages"].as_array().unwrap();
    let judged: Vec<&str> = stages
        .iter()
        .map(|one| one["judgement"].as_str().unwrap())
        .collect();
    assert_eq!(judged, ["forgiven", "forgiven", "success"]);
    assert_eq!(stages[0]["status"]["name"], "SIGPIPE");
    let text = self::ran(&["--report", "text", "false", "--to", "cat"]);
    let lines: Vec<&str> = text.stderr.lines().collect();
    let row = |stage: &str| {
        let row = lines.iter().find(|line| line.starts_with(stage)).unwrap();
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(
        row("1  ").starts_with("1 false exited with code 1 failed"),
        "{}",
        text.stderr
    );
    assert!(
        row("2  ").starts_with("2 cat exited with code 0 success"),
        "{}",
        text.stderr
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report");
    self::ran(&[
        "--report-to",
        file.to_str().unwrap(),
        "true",
        "--to",
        "true",
    ]);
    let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(report["outcome"], "ended well");
}

#[test]
fn a_buffer_lets_a_stage_end_at_its_own_speed() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let made = Command::new("mkfifo").arg(&gate).status().unwrap();
    assert!(made.success());
    // Without a buffer each would wait for the other.
    let first = format!(
        "head -c 4000000 /dev/zero; echo written > {}",
        gate.display()
    );
    let second = format!("read line < {}; wc -c", gate.display());
    for which in [
        &["--elastic", "all"][..],
        &["--elastic", "1"],
        &["--elastic", "2,1"],
        &["--elastic", "1", "--elastic", "2"],
        &["--elastic", "2", "--elastic", "1"],
        &["--elastic", "all", "--elastic", "1"],
    ] {
        let stages = [
            "sh", "-c", &first, "--to", "sh", "-c", &second, "--to", "cat",
        ];
        let ran = ran(&[&["--report", "json"][..], which, &stages].concat());
        assert_eq!(ran.stdout.trim(), "4000000");
        let report: Value = serde_json::from_str(&ran.stderr).unwrap();
        let stages = report["stages"].as_array().unwrap();
        assert_eq!(stages[0]["elastic"]["bytes_out"], 4_000_000);
        assert_eq!(stages[1]["elastic"].is_null(), which == ["--elastic", "1"]);
        assert!(stages[2]["elastic"].is_null());
    }
    let text = ran(&[
        "--report",
        "text",
        "--elastic",
        "1",
        "echo",
        "x",
        "--to",
        "cat",
    ]);
    let last = text.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("buffer behind 1: 2 bytes in, 2 bytes out, at most "),
        "{last}"
    );
    for (which, said) in [
        ("2", "--elastic names stage 2, and behind it is none"),
        ("0", "write all, or the stages from 1"),
        ("some", "write all, or the stages from 1"),
    ] {
        let ran = self::ran(&["--elastic", which, "echo", "x", "--to", "cat"]);
        assert_eq!(ran.code(), Some(125));
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn programs_side_by_side_at_the_end_get_all() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let save = format!("exec cat >{}", copy.display());
    let words = ["seq", "9", "--to", "sh", "-c", &save, "--and", "wc", "-l"];
    ends(&words, 0, "9\n", "");
    assert_eq!(
        std::fs::read_to_string(copy).unwrap(),
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    );
    // Both write to stdout, in any order.
    for options in [&[][..], &["--until", "exit", "--limit", "1MiB"]] {
        let words = ["seq", "9", "--to", "tail", "-1", "--and", "head", "-1"];
        let ran = ran(&[options, &words].concat());
        let mut lines: Vec<&str> = ran.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!((ran.code(), lines), (Some(0), vec!["1", "9"]));
    }
    let own = [
        "--and-separator",
        ",",
        "echo",
        "--and",
        "--to",
        "cat",
        ",",
        "true",
    ];
    ends(&own, 0, "--and\n", "");
    let ran = ran(&[
        "yes",
        "--to",
        "head",
        "-1",
        "--and",
        "sh",
        "-c",
        "read x; exit 3",
    ]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(3), "y\n"));
    let said = "yes | {head -1, sh -c 'read x; exit 3'} failed: stage 3 of 3 exited with code 3";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn programs_side_by_side_at_the_start_write_lines_to_the_next() {
    let words = ["echo", "pear", "--and", "echo", "apple", "--to", "sort"];
    ends(&words, 0, "apple\npear\n", "");
    // They read nothing, whatever the command's own stdin is.
    let mut command = pipe(&["cat", "--and", "cat", "--to", "wc", "-c"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let run = command.spawn().unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "0\n");
}

#[test]
fn what_stands_side_by_side_is_in_the_report() {
    let words = [
        "--report", "text", "echo", "x", "--to", "cat", "--and", "wc", "-c",
    ];
    let text = ran(&words).stderr;
    let last: Vec<&str> = text.lines().rev().take(2).collect();
    for (line, number) in last.iter().rev().zip(2..) {
        let begin = format!("copied to {number}: 2 bytes in, 2 bytes out, at most ");
        assert!(line.starts_with(&begin), "{text}");
    }
    // Nothing is behind the last, and one buffer before each of them.
    let all = [
        "--report",
        "json",
        "--elastic",
        "all",
        "echo",
        "x",
        "--to",
        "cat",
    ];
    let ran = ran(&[&all[..], &["--to", "cat", "--and", "cat"]].concat());
    let report: Value = serde_json::from_str(&ran.stderr).unwrap();
    let of_each = |name: &str| -> Vec<bool> {
        let stages = report["stages"].as_array().unwrap().iter();
        stages.map(|stage| stage[name]["bytes_out"] == 2).collect()
    };
    assert_eq!(of_each("elastic"), [true, false, false, false]);
    assert_eq!(of_each("fan"), [false, false, true, true]);
}

#[test]
fn what_cannot_stand_side_by_side_is_refused() {
    for (words, said) in [
        (&["cat", "--and"][..], "stage 2 has no program"),
        (&["cat", "--and", "--to", "cat"], "stage 2 has no program"),
        (&["cat", "--and", "cat"], "put a program before it"),
        (
            &["--stdin", "null", "cat", "--and", "cat", "--to", "cat"],
            "--stdin is for one program, and 2 stand at the start",
        ),
        (
            &["--elastic", "1", "cat", "--and", "cat", "--to", "cat"],
            "--elastic names stage 1, which stands beside another",
        ),
        (
            &["--elastic", "2", "cat", "--to", "cat", "--and", "cat"],
            "--elastic names stage 2, and behind it is none",
        ),
        (
            &["--separator=--and", "cat"],
            "--and is --separator and --and-separator",
        ),
    ] {
        let ran = self::ran(words);
        assert_eq!(ran.code(), Some(125), "{words:?}");
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn a_signal_stops_all_and_ends_the_command() {
    let mut command = subcommand("pipe");
    command.args(child(["sleep-forever", "--print-ready"]));
    command.args(["--to", "cat"]);
    let run = Started::of(command);
    let stages = run.pids.clone();
    run.kill(Signal::TERM);
    let ran = run.finish();
    assert_eq!(ran.signal(), Some(Signal::TERM.as_raw()));
    assert!(!stages.is_empty() && stages.into_iter().all(is_gone));
}

#[test]
fn ctrl_c_is_no_news() {
    use std::os::unix::process::CommandExt;
    let (mut keyboard, slave) = common::terminal();
    let mut command = subcommand("pipe");
    command.args(child(["sleep-forever", "--print-ready"]));
    command.args(["--to", "cat"]).stdin(slave);
    // SAFETY: both are plain system calls.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let run = Started::of(command);
    keyboard.write_all(b"\x03").unwrap();
    let ran = run.finish();
    assert_eq!((ran.signal(), ran.stderr.as_str()), (Some(2), ""));
}

#[test]
fn an_inherited_sigpipe_is_not_ignored_by_stages() {
    let program = pipe(&[]).get_program().to_owned();
    let ignoring = |options: &[&str]| -> Ran {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' PIPE; exec \"$0\" pipe \"$@\""]);
        command.arg(&program).args(options);
        command.args(["--report", "json", "yes", "--to", "head", "-1"]);
        command.stdin(Stdio::null()).output().unwrap().into()
    };
    let ran = ignoring(&["--quiet"]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(report["stages"][0]["status"]["name"], "SIGPIPE");
    let ran = ignoring(&["--quiet", "--ignore-signal", "PIPE"]);
    let report: Value = serde_json::from_str(&ran.stderr).unwrap();
    assert_eq!(report["stages"][0]["status"]["code"], 1, "{}", ran.stderr);
    assert_eq!(report["stages"][0]["judgement"], "forgiven");
}

#[test]
fn a_reader_of_ours_that_goes_away_is_no_news() {
    let mut run = pipe(&["yes", "--to", "cat"]);
    let mut run = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(run.stdout.take());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
