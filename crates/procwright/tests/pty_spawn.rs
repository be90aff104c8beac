//! A child on a terminal of its own, held by the caller.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use procwright::process::{Exit, Signal};
use procwright::stream::{Closed, Reader};
use procwright::terminal::Size;
use procwright::{Child, Command, Error, Overflow, Stdin};

const SIZE: Size = Size {
    rows: 31,
    columns: 97,
};

fn sh(line: &str) -> Child {
    let command = Command::shell(line.to_owned()).pty(SIZE);
    command.stdin(Stdin::Pipe).spawn().unwrap()
}

fn rest(child: &mut Child) -> String {
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    text.replace("\r\n", "\n")
}

fn read_until(stdout: &Reader, what: &str) {
    let mut text = String::new();
    while !text.contains(what) {
        let mut piece = [0; 4096];
        let n = stdout.read_for(&mut piece, None).unwrap();
        assert!(n > 0, "{text:?}");
        text += std::str::from_utf8(&piece[..n]).unwrap();
    }
}

fn code(child: &Child) -> Option<i32> {
    child.wait(None).unwrap().unwrap().code()
}

#[test]
fn what_is_written_is_typed_and_the_close_is_its_end() {
    let _dog = common::watchdog("what_is_written_is_typed_and_the_close_is_its_end");
    for (typed, shown) in [
        ("", ""),
        ("one\n", "one\n"),
        // Without an echo of the input, and with all of the last line.
        ("one\ntwo", "one\ntwo"),
        ("one\ntwo\u{4}", "one\ntwo"),
    ] {
        let mut child = sh("stty -echo; test -t 0 && echo ready; cat; echo; stty echo; exit 5");
        let stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut ready = [0; 7];
        stdout.read_exact(&mut ready).unwrap();
        assert_eq!(&ready, b"ready\r\n");
        (&stdin).write_all(typed.as_bytes()).unwrap();
        assert!(stdin.close() && !stdin.close() && stdin.is_closed());
        child.stdout = Some(stdout);
        assert_eq!(rest(&mut child), format!("{shown}\n"), "{typed:?}");
        assert_eq!(code(&child), Some(5));
        assert!(child.stderr.is_none());
        assert_eq!(child.report().unwrap().stdout_info.unwrap().blocked, None);
    }
}

#[test]
fn a_conversation() {
    let _dog = common::watchdog("a_conversation");
    let mut child = sh("stty -echo; cat; echo over");
    let mut talk = child.communicate("a\nb\n");
    talk.proceed(None).unwrap();
    let outputs = talk.into_outputs();
    let text = String::from_utf8(outputs[0].clone()).unwrap();
    // The input may have been typed before the echo was off.
    assert!(text.ends_with("a\r\nb\r\nover\r\n"), "{text:?}");
    assert_eq!((outputs[1].len(), code(&child)), (0, Some(0)));
}

#[test]
fn the_end_is_typed_as_soon_as_there_is_room() {
    let _dog = common::watchdog("the_end_is_typed_as_soon_as_there_is_room");
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    rustix_mkfifo(&gate);
    let line = format!(
        "stty -echo; echo ready; read x <{}; cat >/dev/null; echo over",
        gate.display()
    );
    let mut child = sh(&line);
    let stdin = child.stdin.take().unwrap();
    let stdout = child.stdout.take().unwrap();
    read_until(&stdout, "ready");
    loop {
        match stdin.write_for(b"some line or other\n", Duration::ZERO) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::TimedOut => break,
            Err(e) => panic!("{e}"),
        }
    }
    assert!(stdin.close(), "at once");
    assert!(Closed::is(&stdin.write_for(b"x", None).unwrap_err()));
    std::fs::write(&gate, "go\n").unwrap();
    child.stdout = Some(stdout);
    assert!(rest(&mut child).ends_with("over\n"));
    assert_eq!(code(&child), Some(0));
}

fn rustix_mkfifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn its_size_can_be_set_while_it_runs() {
    let _dog = common::watchdog("its_size_can_be_set_while_it_runs");
    let mut child =
        sh("stty size; trap 'stty size; exit 7' WINCH; echo ready; while :; do sleep 0.01; done");
    let stdout = child.stdout.take().unwrap();
    read_until(&stdout, "31 97\r\nready");
    let size = Size {
        rows: 9,
        columns: 11,
    };
    child.resize(size).unwrap();
    child.stdout = Some(stdout);
    assert!(rest(&mut child).ends_with("9 11\n"));
    assert_eq!(code(&child), Some(7));
    // The pump closes it a moment later.
    let error = loop {
        match child.resize(size) {
            Ok(()) => std::thread::yield_now(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    let plain = Command::new("true").spawn().unwrap();
    assert_eq!(
        plain.resize(size).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn who_closes_the_reader_hangs_up() {
    let _dog = common::watchdog("who_closes_the_reader_hangs_up");
    let mut child = sh("echo ready; while :; do sleep 0.01; done");
    let stdout = child.stdout.take().unwrap();
    let stdin = child.stdin.take().unwrap();
    read_until(&stdout, "ready");
    stdout.close();
    assert!(stdin.is_closed());
    let exit = child.wait(None).unwrap().unwrap();
    assert!(
        matches!(exit, Exit::Signal { signal, .. } if signal == Signal::HUP),
        "{exit:?}"
    );
}

#[test]
fn it_may_let_go_of_its_terminal_and_come_back() {
    let _dog = common::watchdog("it_may_let_go_of_its_terminal_and_come_back");
    let line = "echo a; exec </dev/null >/dev/null 2>&1; sleep 0.05; echo b >/dev/tty; exit 3";
    let mut child = sh(line);
    assert_eq!(rest(&mut child), "a\nb\n");
    assert_eq!(code(&child), Some(3));
}

#[test]
fn nothing_is_lost_on_the_way_to_a_slow_reader() {
    let _dog = common::watchdog("nothing_is_lost_on_the_way_to_a_slow_reader");
    let file = tempfile::NamedTempFile::new().unwrap();
    let text: String = (0..60_000)
        .map(|i| format!("{i} {}\n", "x".repeat(i % 30)))
        .collect();
    std::fs::write(file.path(), &text).unwrap();
    for overflow in [Overflow::default(), Overflow::Block { memory: 65536 }] {
        let command = Command::new("cat").arg(file.path()).pty(SIZE);
        let mut child = command.spawn_with(overflow).unwrap();
        let shown = rest(&mut child);
        assert!(shown == text, "{} of {}", shown.len(), text.len());
        assert_eq!(code(&child), Some(0));
    }
}

#[test]
fn a_fork_neither_types_nor_hangs_up() {
    let _dog = common::watchdog("a_fork_neither_types_nor_hangs_up");
    let mut child = sh("echo ready; read word; echo got $word");
    let stdout = child.stdout.take().unwrap();
    let stdin = child.stdin.take().unwrap();
    read_until(&stdout, "ready");
    let (theirs, ours) = (stdin.clone(), stdout.clone());
    let status = common::sys::in_fork(|| {
        assert!(theirs.write_for(b"x", None).is_err());
        theirs.close();
        ours.close();
        0
    });
    assert_eq!(status, 0);
    (&stdin).write_all(b"it\n").unwrap();
    read_until(&stdout, "got it");
    assert_eq!(code(&child), Some(0));
}

#[test]
fn what_cannot_be_had_is_refused() {
    let refused = |command: Command<'_>, overflow: Option<Overflow>, what: &str| {
        let error = command.pty(SIZE).spawn_with(overflow).unwrap_err();
        let Error::Invalid(invalid) = error else {
            panic!("{what}: {error}");
        };
        assert_eq!(invalid.what(), what, "{invalid}");
    };
    let program = || Command::new("/nonexistent");
    refused(program(), None, "overflow");
    refused(
        program().stdin_inherit(),
        Some(Overflow::default()),
        "stdin",
    );
    let mut child = sh("cat");
    let error = child.stdin.as_ref().unwrap().lend_pipe().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    drop(child.stdin.take());
    assert_eq!(code(&child), Some(0));
}
