//! The line that says how far a run is.

mod common;

use std::io::Write;
use std::process::Command;

use common::bash::Bash;
use common::seen::Seen;
use common::{assert_stdout_is_its_own, child, procwright};
use rustix::process::Signal;

fn shown(options: &[&str], words: &[&str]) -> Command {
    let mut command = procwright(["--progress"]);
    command.args(options).arg("--");
    command.args(child(["says"])).args(words);
    command
}

fn go_on(seen: &mut Seen) {
    seen.master.write_all(b"\n").unwrap();
}

#[test]
fn it_is_drawn_by_the_clock_and_erased_at_the_end() {
    let words = ["out:hello\\n", "err:x", "err:y\\n", "ack", "out:bye\\n"];
    let mut seen = Seen::new(shown(&["--expect", "1h"], &words), 80);
    assert!(
        seen.until(" left, out 6 bytes 1 line, err 3 bytes 1 line, mem "),
        "{:?}",
        seen.text
    );
    assert!(seen.until(", CPU "), "{:?}", seen.text);
    go_on(&mut seen);
    assert_eq!(seen.end(), (Some(0), None));
    // The echo of the terminal comes into the line, as it would into any.
    let screen = seen.screen();
    assert_eq!(screen.last().unwrap(), "", "{screen:?}");
    assert!(screen.iter().any(|line| line == "bye"), "{screen:?}");
    for drawn in seen
        .text
        .split('\r')
        .filter(|part| part.contains(" left, "))
    {
        let drawn = drawn.split('\x1b').next().unwrap();
        assert!(drawn.len() < 80, "{drawn:?}");
    }
}

#[test]
fn output_erases_it_and_a_partial_line_keeps_it_away() {
    let mut command = shown(
        &[],
        &[
            "out:one\\n",
            "ack",
            "out:two\\n",
            "ack",
            "out:Name? ",
            "ack",
            "out:!\\n",
            "ack",
        ],
    );
    let (read, write) = std::io::pipe().unwrap();
    command.stdin(read);
    let mut seen = Seen::out(command, 80);
    let mut write = write;
    assert!(seen.until("s, out 4 bytes 1 line"), "{:?}", seen.text);
    write.write_all(b"\n").unwrap();
    // Erased, written and put back in one go.
    assert!(seen.until("\x1b[K\r\x1b[Ktwo\r\n\r"), "{:?}", seen.text);
    write.write_all(b"\n").unwrap();
    assert!(seen.until("\r\x1b[KName? "), "{:?}", seen.text);
    write.write_all(b"\n").unwrap();
    // Nothing between, whatever the clock says.
    assert!(seen.until("Name? !\r\n\r"), "{:?}", seen.text);
    write.write_all(b"\n").unwrap();
    assert_eq!(seen.end(), (Some(0), None));
    assert_eq!(seen.screen(), ["one", "two", "Name? !", ""]);
}

#[test]
fn what_is_said_and_every_end_find_it_erased() {
    let mut seen = Seen::new(shown(&["--timeout", "8s"], &["out:one\\n", "ack"]), 80);
    assert!(seen.until("s, out 4 bytes"));
    assert_eq!(seen.end(), (Some(124), None));
    let screen = seen.screen();
    assert_eq!(screen[0], "one");
    assert!(
        screen[1].starts_with("procwright: ") && screen[1].contains("timed out"),
        "{screen:?}"
    );
    assert_eq!(screen.last().unwrap(), "");

    let mut seen = Seen::new(shown(&[], &["out:one\\n", "ack"]), 80);
    assert!(seen.until("s, out 4 bytes"));
    common::kill(seen.command.id().cast_signed(), Signal::TERM);
    assert_eq!(seen.end(), (None, Some(15)));
    assert_eq!(seen.screen(), ["one", ""]);
}

#[test]
fn a_stop_finds_it_erased() {
    let mut bash = Bash::start();
    bash.line("$run --progress $child sleep-forever");
    for _ in 0..2 {
        bash.until(", mem ");
        bash.press(b"\x1a");
        let shown = bash.until("Stopped");
        let erased = shown.rfind("\r\x1b[K").unwrap();
        assert!(!shown[erased..].contains("out 0 bytes"), "{shown:?}");
        bash.prompt();
        bash.fg("sleep-forever");
    }
    bash.press(b"\x03");
    bash.prompt();
}

#[test]
fn it_fits_the_terminal() {
    let mut seen = Seen::new(shown(&["--expect", "1s"], &["ack"]), 30);
    assert!(seen.until("over by "), "{:?}", seen.text);
    go_on(&mut seen);
    seen.end();
    for drawn in seen.text.split('\r') {
        assert!(
            drawn.split('\x1b').next().unwrap().len() < 30,
            "{:?}",
            seen.text
        );
    }
}

#[test]
fn none_where_there_is_no_terminal_and_no_pipes_either() {
    let mut command = procwright(["--progress", "--"]);
    command.args(child(["show"]));
    assert_stdout_is_its_own(&mut command);
}

#[test]
fn nothing_of_it_goes_into_a_file() {
    let mut command = shown(&[], &["out:one\\n", "ack", "out:two"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let (read, mut write) = std::io::pipe().unwrap();
    command.stdin(read).stdout(file.reopen().unwrap());
    let mut seen = Seen::err(command, 80);
    assert!(seen.until("s, out 4 bytes 1 line"), "{:?}", seen.text);
    write.write_all(b"\n").unwrap();
    assert_eq!(seen.end(), (Some(0), None));
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "one\ntwo");
    assert_eq!(seen.screen(), [""]);
}

#[test]
fn a_terminal_that_becomes_narrow_is_not_overrun() {
    let mut seen = Seen::new(shown(&[], &["ack"]), 80);
    assert!(
        seen.until("s, out 0 bytes 0 lines, mem "),
        "{:?}",
        seen.text
    );
    let narrow = rustix::termios::Winsize {
        ws_col: 12,
        ws_row: 24,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&seen.master, narrow).unwrap();
    let before = seen.text.len();
    while !seen.text[before..].contains("s\x1b[K") {
        let drawn = seen.text.matches('\r').count();
        assert!(drawn < 10 && seen.more(), "{:?}", seen.text);
    }
    go_on(&mut seen);
    assert_eq!(seen.end(), (Some(0), None));
}

#[test]
fn with_everything_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (read, mut write) = std::io::pipe().unwrap();
    let options = [
        "--tag",
        "--log-times",
        "--idle-timeout",
        "1h",
        "--log",
        log.to_str().unwrap(),
    ];
    let mut command = shown(&options, &["out:one\\n", "err:two\\n", "ack", "exit:9"]);
    command.env("NO_COLOR", "1").stdin(read);
    let mut seen = Seen::out(command, 80);
    assert!(
        seen.until("s, out 4 bytes 1 line, err 4 bytes 1 line, mem "),
        "{:?}",
        seen.text
    );
    write.write_all(b"\n").unwrap();
    assert_eq!(seen.end(), (Some(9), None));
    let mut screen = seen.screen();
    screen.sort();
    assert_eq!(screen.len(), 3);
    assert_eq!(screen[0], "");
    assert!(
        screen[1].ends_with(" out | one") || screen[2].ends_with(" out | one"),
        "{screen:?}"
    );
    assert_eq!(std::fs::read_to_string(log).unwrap().lines().count(), 2);
}

#[test]
fn held_back_output_is_counted_and_shown_behind_it() {
    let (read, mut write) = std::io::pipe().unwrap();
    let mut command = shown(&["--quiet"], &["out:one\\n", "ack", "exit:1"]);
    command.stdin(read);
    let mut seen = Seen::out(command, 80);
    assert!(seen.until("s, out 4 bytes 1 line, mem "), "{:?}", seen.text);
    assert!(!seen.text.contains("one"));
    write.write_all(b"\n").unwrap();
    assert_eq!(seen.end(), (Some(1), None));
    assert_eq!(seen.screen(), ["one", ""]);
}
