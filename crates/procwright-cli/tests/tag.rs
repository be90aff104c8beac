//! Tags in front of lines.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use common::seen::Seen;
use common::{Ran, child, procwright};

fn tagged(options: &[&str], words: &[&str]) -> Command {
    let mut command = procwright(["--tag"]);
    command.args(options).arg("--");
    command.args(child(["says"])).args(words);
    command
}

/// The text without the times, each of which has to be there.
fn without_times(text: &str) -> String {
    let lines = text.split_inclusive('\n').map(|line| {
        let (time, rest) = line.split_at(12);
        let shape: String = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        assert_eq!(shape, "00:00:00.000", "{line:?}");
        rest
    });
    lines.collect()
}

#[test]
fn each_stream_gets_its_own() {
    let ran: Ran = tagged(
        &[],
        &["out:one\\ntwo\\n", "err:warn\\n", "out:rest", "exit:5"],
    )
    .output()
    .unwrap()
    .into();
    assert_eq!(ran.code(), Some(5));
    assert_eq!(
        without_times(&ran.stdout),
        " out | one\n out | two\n out | rest"
    );
    assert_eq!(without_times(&ran.stderr), " err | warn\n");
}

#[test]
fn a_name_stands_between_time_and_stream() {
    let mut command = procwright(["--tag=we\nb", "--"]);
    command.args(child(["says", "out:one\\ntwo\\n", "err:warn\\n"]));
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code(), Some(0));
    // A newline in a name begins no line.
    let expected = " we b out | one\n we b out | two\n";
    assert_eq!(without_times(&ran.stdout), expected);
    assert_eq!(without_times(&ran.stderr), " we b err | warn\n");
    // What stands behind a space is the program.
    let ran: Ran = procwright(["--tag", "echo", "x"]).output().unwrap().into();
    assert_eq!(without_times(&ran.stdout), " out | x\n");
}

#[test]
fn a_prompt_is_shown_at_once_and_in_one_place_the_order_is_kept() {
    let words = ["out:Name? ", "ack", "err:warning\\n", "ack", "out:hello\\n"];
    let (mut read, write) = std::io::pipe().unwrap();
    let mut command = tagged(&[], &words);
    command
        .stdin(Stdio::piped())
        .stdout(write.try_clone().unwrap())
        .stderr(write);
    let mut run = command.spawn().unwrap();
    drop(command);
    let mut prompt = [0; 12 + 7 + 6];
    read.read_exact(&mut prompt).unwrap();
    assert_eq!(
        without_times(std::str::from_utf8(&prompt).unwrap()),
        " out | Name? "
    );
    let mut stdin = run.stdin.take().unwrap();
    let mut read = BufReader::new(read);
    let mut line = String::new();
    stdin.write_all(b"\n").unwrap();
    read.read_line(&mut line).unwrap();
    assert_eq!(line, "…\n");
    line.clear();
    read.read_line(&mut line).unwrap();
    assert_eq!(without_times(&line), " err | warning\n");
    stdin.write_all(b"\n").unwrap();
    line.clear();
    read.read_to_string(&mut line).unwrap();
    assert_eq!(without_times(&line), " out + hello\n");
    assert_eq!(run.wait().unwrap().code(), Some(0));
}

#[test]
fn colour_is_for_terminals_that_have_it() {
    let show = |name: &str, value: &str| {
        let mut command = tagged(&[], &["out:x\\n"]);
        command.env_remove("NO_COLOR").env(name, value);
        let mut seen = Seen::new(command, 80);
        seen.end();
        seen.text
    };
    let coloured = show("OTHER", "1");
    assert!(
        coloured.starts_with("\x1b[2m")
            && coloured.ends_with("\x1b[22m \x1b[36mout\x1b[39m | x\r\n"),
        "{coloured:?}"
    );
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let plain = show(name, value);
        assert!(
            plain.ends_with(" out | x\r\n") && !plain.contains('\x1b'),
            "{plain:?}"
        );
    }
    assert!(
        show("NO_COLOR", "").contains('\x1b'),
        "an empty one says nothing"
    );
}

#[test]
fn a_reader_that_goes_ends_the_program_as_ever() {
    let mut command = procwright(["--tag", "--"]);
    command.args(child(["flood-forever", "--no-limit"]));
    let mut run = command.stdout(Stdio::piped()).spawn().unwrap();
    run.stdout
        .take()
        .unwrap()
        .read_exact(&mut [0; 100])
        .unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(128 + 13));
}

#[test]
fn limits_see_what_the_program_writes() {
    let ran: Ran = tagged(&["--limit", "4"], &["out:1234"])
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
}
