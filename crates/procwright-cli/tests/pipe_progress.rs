//! `procwright pipe --progress`: the line that says what passes between each two stages.

mod common;

use std::io::Write;
use std::process::Command;

use common::seen::Seen;
use common::{assert_stdout_is_its_own, child, subcommand};
use rustix::process::Signal;
use serde_json::Value;

fn shown(options: &[&str], stages: &[Vec<String>]) -> Command {
    let mut command = subcommand("pipe");
    command.arg("--progress").args(options).arg("--");
    command.args(stages.join(&"--to".to_owned()));
    command
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn it_counts_between_stages_and_is_erased_at_the_end() {
    let says = child(["says", "out:hello\\n", "err:x\\n", "ack", "out:bye\\n"]);
    let command = shown(&[], &[says, words(&["cat"]), words(&["cat"])]);
    let mut seen = Seen::new(command, 120);
    let line =
        "s, 1>2 0 bytes/s 6 bytes, 2>3 0 bytes/s 6 bytes, out 0 bytes/s 6 bytes, err 2 bytes";
    assert!(seen.until(line), "{:?}", seen.text);
    seen.master.write_all(b"\n").unwrap();
    assert_eq!(seen.end(), (Some(0), None));
    let screen = seen.screen();
    assert_eq!(screen.last().unwrap(), "", "{screen:?}");
    for said in ["hello", "x", "bye"] {
        assert!(screen.iter().any(|line| line == said), "{said}: {screen:?}");
    }
}

#[test]
fn it_counts_what_each_of_several_is_given() {
    let says = child(["says", "out:hello\\n", "ack", "out:bye\\n"]);
    let mut beside = words(&["cat", "--and"]);
    beside.extend(child(["cat"]));
    let mut seen = Seen::new(shown(&[], &[says, words(&["cat"]), beside]), 120);
    let line = "s, 1>2 0 bytes/s 6 bytes, 2>3 0 bytes/s 6 bytes, 2>4 0 bytes/s 6 bytes, \
                out 0 bytes/s 12 bytes";
    assert!(seen.until(line), "{:?}", seen.text);
    seen.master.write_all(b"\n").unwrap();
    assert_eq!(seen.end(), (Some(0), None));
    let screen = seen.screen();
    for said in ["hello", "bye"] {
        let times = screen.iter().filter(|line| *line == said).count();
        assert_eq!(times, 2, "{screen:?}");
    }
}

#[test]
fn a_stage_that_takes_nothing_is_seen_and_a_stop_leaves_no_line() {
    let stages = [child(["flood-forever"]), child(["sleep-forever"])];
    let mut seen = Seen::new(shown(&[], &stages), 120);
    assert!(seen.until("1>2 0 bytes/s full "), "{:?}", seen.text);
    common::kill(seen.command.id().cast_signed(), Signal::TERM);
    assert_eq!(seen.end(), (None, Some(15)));
    assert_eq!(seen.screen(), [""]);
}

#[test]
fn a_writer_whose_reader_has_enough_is_forgiven() {
    let stages = [words(&["yes"]), words(&["head", "-1"])];
    let mut seen = Seen::new(shown(&[], &stages), 80);
    assert_eq!(seen.end(), (Some(0), None), "{:?}", seen.text);
    assert_eq!(seen.screen(), ["y", ""]);
}

#[test]
fn output_in_a_file_has_nothing_of_it_and_the_report_has_the_counts() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    let file = tempfile::NamedTempFile::new().unwrap();
    let stages = [
        words(&["head", "-c", "3000000", "/dev/zero"]),
        words(&["cat"]),
        words(&["wc", "-c"]),
    ];
    let options = ["--elastic", "2", "--report-to", report.to_str().unwrap()];
    let mut command = shown(&options, &stages);
    command.stdout(file.reopen().unwrap());
    let mut seen = Seen::err(command, 80);
    assert_eq!(seen.end(), (Some(0), None), "{:?}", seen.text);
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "3000000\n");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    for place in 0..2 {
        let elastic = &report["stages"][place]["elastic"];
        for way in ["bytes_in", "bytes_out"] {
            assert_eq!(elastic[way], 3_000_000, "{place} {way}: {elastic}");
        }
    }
    assert_eq!(report["stages"][2]["elastic"], Value::Null);
}

#[test]
fn none_where_there_is_no_terminal_and_nothing_passes_through() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    let options = ["--report-to", report.to_str().unwrap()];
    let mut command = shown(&options, &[words(&["true"]), child(["show"])]);
    assert_stdout_is_its_own(&mut command);
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["stages"][0]["elastic"], Value::Null);
}
