//! `PROCWRIGHT_TRACE`.

mod common;

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use common::{Ran, child, option, procwright};
use test_support::in_time;

/// Trace of a run with these options, without the parts that differ each time.
fn traced(options: &[&str], words: &[String]) -> (Ran, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace");
    let mut command = procwright(options);
    command.arg("--").args(words).env("PROCWRIGHT_TRACE", &file);
    let running = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = running.id();
    let ran = Ran::from(running.wait_with_output().unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| {
        let (head, rest) = line.split_once("] +").unwrap();
        let serial = head.strip_prefix(&format!("procwright[{pid}.")).unwrap();
        let (time, event) = rest.split_once(' ').unwrap();
        assert!(time.parse::<f64>().unwrap() >= 0.0);
        assert_eq!(time.split_once('.').unwrap().1.len(), 3);
        format!("{serial} {event}")
    });
    (ran, lines.collect())
}

#[test]
fn a_start_and_an_end() {
    let (ran, lines) = traced(&[], &child(["exit", "3"]));
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(3), ""));
    let [start, exit, end] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert!(start.starts_with("1 start pid ") && start.ends_with("test-child exit 3"));
    assert_eq!(exit, "1 the program has exited");
    assert!(end.starts_with("1 end: exited with code 3 after "), "{end}");
}

#[test]
fn a_stop_that_comes_to_sigkill() {
    let lines = in_time(Duration::from_millis(200), |limit| {
        let options = ["--timeout", &option(limit), "--grace", "100ms"];
        let (_, lines) = traced(&options, &child(["ignore-term"]));
        // It ignores the signal by then.
        lines[2].contains("kill: ").then_some(lines)
    });
    let events: Vec<&str> = lines.iter().map(|line| &line[2..]).collect();
    assert!(events[0].starts_with("start pid "));
    assert_eq!(
        events[1..4],
        [
            "stop, timeout: SIGTERM to the tree, SIGKILL after 0.1 s",
            "kill: SIGKILL to all that are left",
            "the program has exited",
        ]
    );
    assert!(events[4].starts_with("end, timeout: killed by SIGKILL after "));
}

#[test]
fn attempts_have_serials_and_a_start_that_fails_is_told() {
    let options = ["--retry", "1", "--backoff", "0"];
    let (_, lines) = traced(&options, &child(["exit", "1"]));
    let serials: String = lines.iter().map(|line| &line[..1]).collect();
    assert_eq!(serials, "111222");
    let (ran, lines) = traced(&[], &["no-such-program".to_owned()]);
    assert_eq!(ran.code(), Some(127));
    assert!(lines[0].starts_with("1 not started, no-such-program: exec"));
    assert!(!lines[0].contains("hint"), "{}", lines[0]);
}

#[test]
fn who_holds_the_pipes() {
    // It is held until that has been told, a second after the exit.
    let held = in_time(Duration::from_millis(1500), |held| {
        let words = child(["fork-holder", &held.as_millis().to_string()]);
        let (_, lines) = traced(&["--until", "eof"], &words);
        lines.into_iter().find(|line| line.starts_with("1 held: "))
    });
    assert!(held.contains("held open by test-child"), "{held}");
}

fn with(value: &str) -> Ran {
    let mut command = procwright(["--"]);
    command
        .args(child(["exit", "0"]))
        .env("PROCWRIGHT_TRACE", value);
    command.output().unwrap().into()
}

#[test]
fn to_stderr_or_nowhere() {
    let ran = with("1");
    assert_eq!(ran.stderr.lines().count(), 3);
    assert!(
        ran.stderr
            .lines()
            .all(|line| line.starts_with("procwright["))
    );
    for off in ["", "0"] {
        assert_eq!(with(off).stderr, "");
    }
}

#[test]
fn a_file_is_appended_to_and_one_that_cannot_be_is_told_of_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace");
    for _ in 0..2 {
        assert_eq!(with(file.to_str().unwrap()).stderr, "");
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.matches(" start pid ").count(), 2);
    let ran = with("/no/such/directory/trace");
    assert_eq!(ran.code(), Some(0));
    assert_eq!(
        ran.stderr.matches("cannot write PROCWRIGHT_TRACE").count(),
        1
    );
}

#[test]
fn a_command_stays_on_its_line() {
    let (_, lines) = traced(&[], &child(["args", "a\nb\x1b[31m", &"x".repeat(9000)]));
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains(r"a\nb\u{1b}[31m") && lines[0].len() < 4096);
}

#[test]
fn nobody_waits_for_whoever_reads_it() {
    // A pipe that is full from the beginning, and is not read before the end.
    let (mut reader, writer) = std::io::pipe().unwrap();
    let filler = writer.try_clone().unwrap();
    let full = fill(&filler);
    drop(filler);
    let mut command = procwright(["--"]);
    command
        .args(child(["exit", "0"]))
        .env("PROCWRIGHT_TRACE", "1");
    let mut running = command.stderr(writer).spawn().unwrap();
    drop(command);
    assert_eq!(running.wait().unwrap().code(), Some(0));
    let mut text = Vec::new();
    reader.read_to_end(&mut text).unwrap();
    assert_eq!(text.len(), full);
}

/// Writes until nothing more goes in; how much did.
fn fill(pipe: &std::io::PipeWriter) -> usize {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let flags = fcntl_getfl(pipe).unwrap();
    fcntl_setfl(pipe, flags | OFlags::NONBLOCK).unwrap();
    let mut full = 0;
    while let Ok(n) = rustix::io::write(pipe, &[b'x'; 4096]) {
        full += n;
    }
    // The program gets a pipe that blocks, as all pipes do.
    fcntl_setfl(pipe, flags).unwrap();
    full
}
