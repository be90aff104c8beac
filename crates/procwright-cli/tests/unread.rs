//! A stderr without a reader.
#![allow(clippy::disallowed_methods)] // Tests may sleep.

mod common;

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use common::{kill, option, procwright, wait_gone};
use rustix::process::Signal;
use test_support::in_time;

/// A pipe with no room left: both ends, and how much is in it.
fn full_pipe() -> (PipeReader, PipeWriter, usize) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let room = rustix::pipe::fcntl_getpipe_size(&writer).unwrap();
    writer.write_all(&vec![b'x'; room]).unwrap();
    (reader, writer, room)
}

/// Runs a program that leaves a process behind, which holds its pipes. Returns its
/// pid; none if a limit came before it.
fn leaving_a_holder(options: &[&str], stderr: PipeWriter) -> (Child, Option<i32>) {
    let mut command = procwright(options);
    command.args(["--", "sh", "-c", "sleep 1000 & echo $!"]);
    command.stdout(Stdio::piped()).stderr(stderr);
    let mut procwright = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(procwright.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    (procwright, line.trim().parse().ok())
}

#[test]
fn deadlines_hold_and_what_was_not_taken_is_said_later() {
    let text = in_time(Duration::from_secs(2), |limit| {
        let (mut reader, writer, full) = full_pipe();
        let options = ["--timeout", &option(limit), "--until", "eof"];
        let (mut procwright, left) = leaving_a_holder(&options, writer);
        if let Some(left) = left {
            wait_gone(left);
        }
        reader.read_exact(&mut vec![0; full]).unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(procwright.wait().unwrap().code(), Some(124));
        // It is told of a second after the exit.
        text.contains("does not wait for them").then_some(text)
    });
    let held = text.find("--until exit does not wait for them");
    let end = text.find(" timed out after ");
    assert!(held.is_some() && held < end, "{text}");
}

#[test]
fn signals_end_who_waits_for_a_reader() {
    for options in [["--timeout", "100ms"], ["--report", "json"]] {
        let (_reader, writer, _) = full_pipe();
        let mut command = procwright(options);
        let time = if options[0] == "--timeout" {
            "1000"
        } else {
            "0"
        };
        command.args(["--", "sleep", time]).stderr(writer);
        let mut procwright = command.spawn().unwrap();
        // One that comes before the end of the run ends that only.
        let status = loop {
            if let Some(status) = procwright.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(Duration::from_millis(20));
            kill(procwright.id().cast_signed(), Signal::TERM);
        };
        assert_eq!(status.signal(), Some(15), "{options:?}");
    }
}

/// Words of 100 KiB, the last of which says where they end.
fn long_words() -> Vec<String> {
    let mut words = ["sh", "-c", "sleep 1000 & sleep 1000"]
        .map(str::to_owned)
        .to_vec();
    words.extend([
        "x".repeat(50 * 1024),
        "y".repeat(50 * 1024),
        "last".to_owned(),
    ]);
    words
}

#[test]
fn long_words_are_cut_and_hold_up_nobody() {
    for options in [
        &["--timeout", "100ms"][..],
        &["--timeout", "100ms", "--until", "eof"],
        &["--idle-timeout", "100ms"],
        &["--timeout", "100ms", "--quiet"],
    ] {
        // Nobody reads before the command has ended.
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut command = procwright(options);
        command.arg("--").args(long_words());
        command.stdout(Stdio::null()).stderr(writer);
        let mut procwright = command.spawn().unwrap();
        drop(command);
        assert_eq!(procwright.wait().unwrap().code(), Some(124), "{options:?}");
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(
            text.starts_with("procwright: sh -c 'sleep 1000 & sleep 1000' xxx"),
            "{text}"
        );
        assert!(text.contains("yyy last "), "{text}");
        assert!(text.len() < 4096, "{}", text.len());
    }
}

#[test]
fn a_program_that_does_not_start_is_told_of_in_short() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = procwright(["--"]);
    command
        .arg("/no/such/program")
        .args(&long_words()[3..])
        .stderr(writer);
    let mut procwright = command.spawn().unwrap();
    drop(command);
    assert_eq!(procwright.wait().unwrap().code(), Some(127));
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.len() < 4096 && text.contains("No such file"), "{text}");
}

#[test]
fn the_command_ends_though_nobody_takes_its_words() {
    // A report that was asked for and that nobody has is trouble.
    let ways = [
        (["--timeout", "100ms"], "1000", 124),
        (["--report", "json"], "0", 125),
        (["--report", "text"], "0", 125),
    ];
    // All at once, as each of them waits for a reader.
    let started = ways.map(|(options, time, code)| {
        let (reader, writer, _) = full_pipe();
        let mut command = procwright(options);
        command.args(["--", "sleep", time]).stderr(writer);
        (command.spawn().unwrap(), reader, code)
    });
    for (mut procwright, _reader, code) in started {
        assert_eq!(procwright.wait().unwrap().code(), Some(code));
    }
}
