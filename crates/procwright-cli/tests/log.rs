//! The log: exact bytes in the order of reading.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use common::log::{Place, Talk, logged, pair, timed};
use common::{Ran, child, procwright};
use rustix::process::Signal;

#[test]
fn both_streams_are_appended_as_they_are() {
    let place = Place::new();
    fs::write(place.log(), "before\n").unwrap();
    let ran = place.run(&[], &["out:one\\n", "err:two", "exit:3"]);
    assert_eq!(ran.code(), Some(3));
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("one\n", "two"));
    let log = place.read(0);
    assert!(
        log == "before\none\ntwo" || log == "before\ntwoone\n",
        "{log:?}"
    );
}

#[test]
fn the_order_is_that_of_reading() {
    let place = Place::new();
    let words: Vec<String> = (0..40)
        .flat_map(|i| [format!("{}:{i}\\n", ["out", "err"][i % 2]), "ack".into()])
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = place.command(&[], &words);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    let mut out = BufReader::new(run.stdout.take().unwrap());
    let mut err = BufReader::new(run.stderr.take().unwrap());
    let mut expected = String::new();
    for i in 0..40 {
        let mut line = String::new();
        match i % 2 {
            0 => out.read_line(&mut line).unwrap(),
            _ => err.read_line(&mut line).unwrap(),
        };
        assert_eq!(line, format!("{i}\n"));
        expected += &line;
        run.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }
    assert_eq!(run.wait().unwrap().code(), Some(0));
    assert_eq!(place.read(0), expected);
}

#[test]
fn lines_have_times_and_are_never_mixed() {
    let place = Place::new();
    fs::write(place.log(), "left by others").unwrap();
    let words = [
        "out:be",
        "ack",
        "err:whole\\n",
        "ack",
        "out:gun\\n\\nrest",
        "err:end",
    ];
    let mut command = place.command(&["--log-times"], &words);
    command.env("TZ", "UTC-3");
    let mut talk = Talk::new(command);
    talk.go_on();
    assert_eq!(talk.line(), "whole\n");
    talk.go_on();
    assert_eq!(talk.end(), (Some(0), "end".into()));
    let log = place.read(0);
    let log = log.strip_prefix("left by others\n").unwrap();
    assert!(
        log.contains("+03:00 err whole\n") && log.ends_with('\n'),
        "{log}"
    );
    let expected = [
        pair("err", "whole"),
        pair("out", "begun"),
        pair("out", ""),
        pair("out", "rest"),
        pair("err", "end"),
    ];
    assert_eq!(timed(log), expected);
}

#[test]
fn a_long_line_is_cut_and_marked() {
    let place = Place::new();
    let mut command = procwright(["--log-times", "--log"]);
    command.arg(place.log()).args(["--report", "json", "--"]);
    command.args(child(["big-line", "200000"]));
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code(), Some(0));
    let lines = timed(&place.read(0)).into_iter();
    let (streams, texts): (Vec<_>, Vec<_>) = lines.unzip();
    assert_eq!(streams, ["out", "out+", "out+", "out+"]);
    assert_eq!(texts.concat(), ran.stdout.trim_end_matches('\n'));
    assert_eq!(texts[0].len(), 64 << 10);
    // The command's own part of the log is not counted.
    let expected = format!("\"log\":{{\"bytes\":{},\"lost_bytes\":0,", ran.stdout.len());
    assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
}

#[test]
fn new_files_begin_at_lines_and_the_oldest_go() {
    let place = Place::new();
    let words: Vec<String> = (0..10).map(|i| format!("out:line {i}\\n")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let options = ["--log-size", "15", "--log-keep", "2", "--report", "json"];
    let ran = place.run(&options, &words);
    assert_eq!(ran.code(), Some(0));
    let logs: Vec<_> = (0..4).map(|n| place.read(n)).collect();
    assert_eq!(
        logs,
        [
            "line 8\nline 9\n",
            "line 6\nline 7\n",
            "line 4\nline 5\n",
            ""
        ]
    );
    assert!(ran.stderr.contains("\"rotations\":4"), "{}", ran.stderr);
}

#[test]
fn no_byte_is_lost_where_it_is_killed() {
    let place = Place::new();
    let mut command = procwright(["--log-size", "64KiB", "--log-keep", "100000", "--log"]);
    command.arg(place.log()).arg("--");
    command.args(child(["flood", "--out", "1G", "--chunk", "1000"]));
    let mut run = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = vec![0; 8 << 20];
    run.stdout.take().unwrap().read_exact(&mut seen).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    // A kill during the renaming may leave a number free. Each byte is in a named file.
    let number = |name: String| {
        name.strip_prefix("log.")
            .map_or(0, |n| n.parse::<u32>().unwrap())
    };
    let names = fs::read_dir(place.0.path()).unwrap();
    let mut numbers: Vec<u32> = names
        .map(|entry| number(entry.unwrap().file_name().into_string().unwrap()))
        .collect();
    numbers.sort_unstable();
    assert!(numbers.len() > 5, "{numbers:?}");
    let mut logged = Vec::new();
    for n in numbers.into_iter().rev() {
        let name = if n == 0 {
            "log".into()
        } else {
            format!("log.{n}")
        };
        logged.extend(fs::read(place.0.path().join(name)).unwrap());
    }
    let pattern = test_children::Pattern::new(test_children::Stream::Stdout, logged.len());
    assert_eq!(pattern.mismatch(0, &logged), None);
}

/// The command did not start anything, and said why and what to do.
fn refused(mut command: Command, why: &str) {
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(
        (ran.code(), ran.stdout.as_str()),
        (Some(125), ""),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains(why) && ran.stderr.contains("\n  hint: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_can_be_no_log_is_refused_before_anything_starts() {
    let place = Place::new();
    let fifo = place.0.path().join("fifo");
    drop(common::fifo(&fifo));
    refused(logged(&fifo, &[], &["out:x"]), "No such device");
    refused(logged(place.0.path(), &[], &["out:x"]), "Is a directory");
    refused(
        logged(Path::new("/no/such/log"), &[], &["out:x"]),
        "No such file",
    );
    refused(
        logged(Path::new("/dev/null"), &["--log-size", "1K"], &["out:x"]),
        "no plain file",
    );
    refused(
        place.command(&["--log-size", "0"], &["out:x"]),
        "--log-size 0",
    );
    let file = fs::File::create(place.log()).unwrap();
    let mut command = place.command(&[], &["out:x"]);
    command.stdout(file);
    refused(command, "names the file that stdout is already");
}

#[test]
fn a_reader_of_stdout_that_goes_ends_the_program_as_ever() {
    let place = Place::new();
    let mut command = procwright(["--log"]);
    command.arg(place.log()).arg("--");
    command.args(child(["flood-forever", "--no-limit"]));
    let mut run = command.stdout(Stdio::piped()).spawn().unwrap();
    run.stdout
        .take()
        .unwrap()
        .read_exact(&mut [0; 100])
        .unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(128 + 13));
    assert!(fs::metadata(place.log()).unwrap().len() >= 100);
}

#[test]
fn a_stop_is_as_ever_and_the_log_has_what_was_read() {
    let place = Place::new();
    let options = ["--timeout", "3s", "--log-times"];
    let mut command = place.command(&options, &["out:begun", "ack"]);
    command.stdin(Stdio::piped());
    let run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut run = run;
    let _stdin = run.stdin.take();
    assert_eq!(run.wait().unwrap().code(), Some(124));
    assert_eq!(timed(&place.read(0)), [pair("out", "begun")]);
}

#[test]
fn a_program_keeps_its_signals() {
    // We survive SIGXFSZ, and the program must not inherit that.
    let place = Place::new();
    let mut command = procwright(["--log"]);
    command.arg(place.log()).arg("--").args(child(["show"]));
    let ran: Ran = command.output().unwrap().into();
    let (_, ignored) = ran.stdout.split_once("\"sig_ignored\":[").unwrap();
    let (ignored, _) = ignored.split_once(']').unwrap();
    let number = Signal::XFSZ.as_raw().to_string();
    assert!(
        !ignored.split(',').any(|signal| signal == number),
        "{ignored}"
    );
}
