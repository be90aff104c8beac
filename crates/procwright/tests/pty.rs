//! A run on a terminal of its own.

mod common;

use std::time::Duration;

use common::child;
use procwright::terminal::Size;
use procwright::{Beyond, Command, Error, Limit, Reason, Sink, Stdin, Until};

const SIZE: Size = Size {
    rows: 31,
    columns: 97,
};

fn sh(line: &str) -> Command<'static> {
    Command::shell(line.to_owned()).pty(SIZE)
}

/// The terminal's output, with a file's line ends.
#[track_caller]
fn shown(command: Command<'_>) -> String {
    let output = command.check().run().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text:?}");
    text.replace("\r\n", "\n")
}

#[test]
fn output_is_a_terminal_of_the_size_and_stdin_what_was_said() {
    let _dog = common::watchdog("output_is_a_terminal_of_the_size_and_stdin_what_was_said");
    let line = "test -t 0 || echo 0 no; test -t 1 && echo 1 yes; test -t 2 && echo 2 yes >&2; \
                stty size <&1; cat";
    assert_eq!(shown(sh(line)), "0 no\n1 yes\n2 yes\n31 97\n");
    let text = shown(sh(line).stdin_bytes("a\u{4}b\u{3}c"));
    assert_eq!(text, "0 no\n1 yes\n2 yes\n31 97\na\u{4}b\u{3}c");
}

#[test]
fn it_leads_a_session_that_the_terminal_controls() {
    let _dog = common::watchdog("it_leads_a_session_that_the_terminal_controls");
    let text = shown(sh(
        "echo $$; ps -o pid=,pgid=,sid=,tpgid= -p $$; tty <&1; echo >/dev/tty on",
    ));
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(
        words[..5].windows(2).all(|pair| pair[0] == pair[1]),
        "{words:?}"
    );
    assert!(words[5].starts_with("/dev/pts/"), "{words:?}");
    assert_eq!(words[6..], ["on"]);
    // The program has no other descriptor of this process.
    let json: serde_json::Value = serde_json::from_str(&shown(child(&["show"]).pty(SIZE))).unwrap();
    assert_eq!(json["fds"].as_object().unwrap().len(), 3, "{json}");
}

#[test]
fn stderr_arrives_with_stdout_unless_it_goes_elsewhere() {
    let _dog = common::watchdog("stderr_arrives_with_stdout_unless_it_goes_elsewhere");
    let line = "echo a; echo b >&2; echo c";
    for sink in [Sink::Capture, Sink::Relay, Sink::Merged] {
        let output = sh(line).stderr(sink).run().unwrap();
        assert_eq!(output.stdout, b"a\r\nb\r\nc\r\n");
        assert!(output.report.stderr_info.is_none());
        let info = output.report.stdout_info.unwrap();
        assert_eq!((info.bytes, info.complete), (9, true));
        assert_eq!(info.blocked, None, "nobody can know");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("errors");
    let append = false;
    let file = Sink::File {
        path: path.clone(),
        append,
    };
    assert_eq!(shown(sh(line).stderr(file)), "a\nc\n");
    assert_eq!(std::fs::read(path).unwrap(), b"b\n");
}

#[test]
fn nothing_is_lost() {
    let _dog = common::watchdog("nothing_is_lost");
    // 1 MiB of lines of all lengths.
    let mut text = String::new();
    for i in 0.. {
        if text.len() >= 1 << 20 {
            break;
        }
        text.push_str(&format!("{i} {}\n", "x".repeat(i % 300)));
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &text).unwrap();
    let path = file.path().to_str().unwrap();
    for until in [Until::Eof, Until::Exit] {
        let output = Command::new("cat")
            .arg(path)
            .pty(SIZE)
            .until(until)
            .run()
            .unwrap();
        let expected = text.replace('\n', "\r\n");
        assert!(
            output.stdout == expected.as_bytes(),
            "{} of {}",
            output.stdout.len(),
            expected.len()
        );
        assert!(output.report.stdout_info.unwrap().complete);
    }
}

/// Bytes between the two ends of the terminal survive the program's exit.
#[test]
fn what_was_written_right_before_the_exit_is_there() {
    let _dog = common::watchdog("what_was_written_right_before_the_exit_is_there");
    for round in 0..common::scaled(60, 2000) {
        let bytes = 1 + (round * 977) % 12_000;
        let bytes = bytes.to_string();
        for until in [Until::Eof, Until::Exit] {
            let flood = child(&["flood", "--out", &bytes, "--chunk", "16384"]);
            let output = flood.pty(SIZE).until(until).run().unwrap();
            // Every line end is one byte longer on a terminal.
            let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
            let written = output.stdout.len() - lines;
            assert_eq!(written.to_string(), bytes, "{until:?}");
        }
    }
}

#[test]
fn a_program_may_let_go_of_its_terminal_and_come_back() {
    let _dog = common::watchdog("a_program_may_let_go_of_its_terminal_and_come_back");
    let line = "echo a; exec >/dev/null 2>&1; sleep 0.05; echo b >/dev/tty; exec >/dev/tty; echo c";
    assert_eq!(shown(sh(line)), "a\nb\nc\n");
}

#[test]
fn who_holds_the_terminal_after_the_exit_is_told() {
    let _dog = common::watchdog("who_holds_the_terminal_after_the_exit_is_told");
    let line = "trap '' HUP; sleep 1000 & echo $!";
    let output = sh(line).until(Until::Exit).run().unwrap();
    let info = output.report.stdout_info.unwrap();
    let pid: i32 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let held: Vec<_> = info.held_by.iter().map(|holder| holder.pid).collect();
    common::sys::kill(pid, libc::SIGKILL);
    assert_eq!(held, [pid]);
    assert!(info.held_by_complete && info.complete);
    // The holder is waited for, unless the caller asks otherwise.
    let line = "trap '' HUP; (sleep 0.3; echo late) & echo early";
    assert_eq!(shown(sh(line)), "early\nlate\n");
}

#[test]
fn a_timeout_names_the_holder_and_leaves_nobody() {
    let _dog = common::watchdog("a_timeout_names_the_holder_and_leaves_nobody");
    let line = "trap '' HUP; sleep 1000 & echo $!; exec sleep 1000";
    let output = common::in_time(Duration::from_millis(300), |limit| {
        let error = sh(line).timeout(limit).run().unwrap_err();
        // Both have become sleep by then.
        let told = "stdout was held open by sleep";
        let is_told = error.to_string().contains(told);
        let Error::Stopped(output) = error else {
            panic!("{error}");
        };
        assert_eq!(output.report.reason, Reason::Timeout);
        is_told.then_some(output)
    });
    assert!(output.report.survivors.is_empty());
    let pid: i32 = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap();
    // The process may not be reaped yet by the one that adopted it.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(
        stat.as_ref().is_ok_and(|stat| stat.contains(") Z ")) || stat.is_err(),
        "{stat:?}"
    );
}

#[test]
fn limits_see_a_terminal() {
    let _dog = common::watchdog("limits_see_a_terminal");
    let limit = Limit {
        bytes: 5000,
        beyond: Beyond::Fail,
    };
    let endless = sh("while :; do echo y; done");
    let error = endless.limit(limit).run().unwrap_err();
    assert_eq!(error.output().unwrap().report.reason, Reason::OutputLimit);
    assert_eq!(error.output().unwrap().stdout.len(), 5000);
    let silent = sh("exec sleep 1000").idle_timeout(Duration::from_millis(100));
    let error = silent.run().unwrap_err();
    assert_eq!(error.output().unwrap().report.reason, Reason::IdleTimeout);
}

#[test]
fn what_cannot_be_had_with_it_is_refused() {
    let refused = |command: Command<'_>, what: &str| {
        let error = command.pty(SIZE).run().unwrap_err();
        let Error::Invalid(invalid) = error else {
            panic!("{what}: {error}");
        };
        assert_eq!(invalid.what(), what, "{invalid}");
    };
    let program = || Command::new("/nonexistent");
    refused(program().stdout(Sink::Inherit), "stdout");
    refused(program().stdout(Sink::Null), "stdout");
    refused(program().stderr(Sink::Inherit), "stderr");
    refused(program().process_group(0), "process_group");
    refused(program().merged(), "merged");
    refused(program().stdin(Stdin::Pipe), "stdin");
    refused(program().on_stderr_line(|_| Ok(())), "a callback or copy");
}
