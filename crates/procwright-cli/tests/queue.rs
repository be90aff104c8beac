//! `procwright queue`: queues by hand.

mod common;

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;

use common::{Ran, kill};

/// A directory of queue names for one test.
struct Names(TempDir);

impl Names {
    fn new() -> Names {
        Names(tempfile::tempdir().unwrap())
    }

    fn queue(&self, words: &[&str]) -> Command {
        let mut command = common::subcommand("queue");
        command
            .args(words)
            .env("PROCWRIGHT_QUEUE_DIR", self.0.path().join("queues"));
        command
    }

    fn ran(&self, words: &[&str]) -> Ran {
        Ran::from(self.queue(words).stdin(Stdio::null()).output().unwrap())
    }

    fn send(&self, words: &[&str]) {
        let mut all = vec!["send", "--wait", "inf"];
        all.extend(words);
        let ran = self.ran(&all);
        assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    }

    /// A receiver, and what it prints.
    fn recv(&self, words: &[&str]) -> Recv {
        self.recv_by(words, pipe().unwrap())
    }

    /// A receiver that prints into this pipe.
    fn recv_by(&self, words: &[&str], (reader, writer): (PipeReader, PipeWriter)) -> Recv {
        let mut all = vec!["recv"];
        all.extend(words);
        Recv {
            child: self.queue(&all).stdout(writer).spawn().unwrap(),
            stdout: BufReader::new(reader),
        }
    }

    /// One that sends what it is fed, and is there by then.
    fn feed(&self, name: &str) -> Child {
        let words = ["send", "--wait", "inf", name];
        let mut child = self
            .queue(&words)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        tell(&mut child, "hello");
        child
    }
}

fn tell(child: &mut Child, line: &str) {
    writeln!(child.stdin.as_mut().unwrap(), "{line}").unwrap();
}

struct Recv {
    child: Child,
    stdout: BufReader<PipeReader>,
}

impl Recv {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    /// The next line, of one that receives after another who had printed `last`: killed
    /// between that and receiving it, it has left it for this one.
    fn line_after(&mut self, last: &str) -> String {
        let line = self.line();
        match line == last {
            true => self.line(),
            false => line,
        }
    }

    fn rest(mut self) -> (String, std::process::ExitStatus) {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).unwrap();
        (text, self.child.wait().unwrap())
    }

    /// Stops it once it sleeps: behind what it prints it frees the lane of who has sent that.
    fn stop(&self) {
        let pid = self.child.id().cast_signed();
        test_support::eventually(|| test_support::state(pid) == Some('S'));
        kill(pid, Signal::STOP);
    }

    fn end(&mut self, signal: Signal) {
        kill(self.child.id().cast_signed(), signal);
        assert_eq!(self.child.wait().unwrap().signal(), Some(signal.as_raw()));
    }
}

#[test]
fn what_is_sent_is_printed() {
    let names = Names::new();
    let recv = names.recv(&["a", "--count", "4"]);
    names.send(&["a", "one", "two words", ""]);
    names.send(&["a", "four"]);
    let (text, status) = recv.rest();
    assert_eq!(
        (text.as_str(), status.code()),
        ("one\ntwo words\n\nfour\n", Some(0))
    );
    // A queue that is closed without a sender leaves nothing behind.
    let recv = names.recv(&["b", "--until-closed"]);
    names.send(&["b", "one"]);
    assert_eq!(recv.rest().0, "one\n");
    assert!(!names.0.path().join("queues/b").exists());
}

#[test]
fn lines_of_stdin() {
    let names = Names::new();
    let recv = names.recv(&["a", "--until-closed"]);
    let mut feed = names.feed("a");
    let mut stdin = feed.stdin.take().unwrap();
    let lines: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    let all = format!("hello\n{lines}the last one");
    let fed = stdin.write_all(&all.as_bytes()[6..]);
    drop(stdin);
    let ended = Ran::from(feed.wait_with_output().unwrap());
    assert_eq!(ended.code(), Some(0), "{fed:?}: {}", ended.stderr);
    let (text, status) = recv.rest();
    assert_eq!(status.code(), Some(0));
    assert_eq!(text, all + "\n");
}

#[test]
fn records_are_whatever_they_are() {
    let names = Names::new();
    let recv = names.recv(&["a", "--format", "records", "--count", "4"]);
    let messages = [&b"\n\0\xff"[..], b"", &[7; 100_000], b"x"];
    let mut records = Vec::new();
    for message in messages {
        records.extend((message.len() as u32).to_le_bytes());
        records.extend(message);
    }
    let words = ["send", "--wait", "inf", "--format", "records", "a"];
    let mut send = names.queue(&words).stdin(Stdio::piped()).spawn().unwrap();
    send.stdin.take().unwrap().write_all(&records).unwrap();
    assert!(send.wait().unwrap().success());
    let mut printed = Vec::new();
    let mut recv = recv;
    recv.stdout.read_to_end(&mut printed).unwrap();
    assert!(recv.child.wait().unwrap().success());
    assert!(printed == records);
    // One that is not whole.
    for cut in [&records[..2], &records[..6]] {
        let recv = names.recv(&["a", "--until-closed"]);
        let mut send = names.queue(&words);
        let mut send = send
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        send.stdin.take().unwrap().write_all(cut).unwrap();
        let ran = Ran::from(send.wait_with_output().unwrap());
        assert_eq!(ran.code(), Some(125));
        assert!(ran.stderr.contains("middle of a record"), "{}", ran.stderr);
        // One that came, sent nothing and left.
        let (text, status) = recv.rest();
        assert_eq!((text.as_str(), status.code()), ("", Some(0)));
    }
}

#[test]
fn times() {
    let names = Names::new();
    for option in ["--timeout", "--idle-timeout"] {
        let ran = names.ran(&["recv", "a", option, "0.05"]);
        assert_eq!((ran.code(), ran.stdout.as_str()), (Some(3), ""));
    }
    let ran = names.ran(&["send", "a", "--wait", "0.05", "x"]);
    assert_eq!(ran.code(), Some(3));
    let directory = names.0.path().join("queues");
    for words in ["within the time", directory.to_str().unwrap()] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    // The queue is full, and its receiver makes no room.
    let mut recv = names.recv(&["a", "--lanes", "1", "--limit", "4096"]);
    names.send(&["a", "here"]);
    assert_eq!(recv.line(), "here");
    recv.stop();
    let long = "x".repeat(3000);
    let ran = names.ran(&["send", "a", "--timeout", "0.05", &long, &long]);
    assert_eq!(ran.code(), Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 message was sent"), "{}", ran.stderr);
    recv.end(Signal::KILL);
}

#[test]
fn a_full_queue() {
    let names = Names::new();
    let mut recv = names.recv(&["a", "--limit", "4096"]);
    names.send(&["a", "here"]);
    assert_eq!(recv.line(), "here");
    recv.stop();
    let long = "x".repeat(3000);
    let ran = names.ran(&["send", "a", "--overflow", "fail", &long, &long]);
    assert_eq!(ran.code(), Some(1));
    assert!(ran.stderr.contains("is full"), "{}", ran.stderr);
    let ran = names.ran(&["send", "a", "--overflow", "drop-newest", &long, &long]);
    assert_eq!(ran.code(), Some(0));
    assert!(
        ran.stderr.contains("1 message was dropped: "),
        "{}",
        ran.stderr
    );
    kill(recv.child.id().cast_signed(), Signal::CONT);
    assert_eq!([recv.line(), recv.line()], [long.clone(), long]);
    recv.end(Signal::TERM);
}

#[test]
fn a_receiver_that_is_killed_and_the_next() {
    let names = Names::new();
    let mut recv = names.recv(&["a"]);
    let mut feed = names.feed("a");
    assert_eq!(recv.line(), "hello");
    let mut last = "hello";
    // Ctrl-C is an end like any other.
    for signal in [Signal::KILL, Signal::INT] {
        recv.end(signal);
        recv = names.recv(&["a"]);
        // The next receiver may not have taken over yet.
        names.send(&["a", "to the next"]);
        assert_eq!(recv.line_after(last), "to the next");
        last = "still here";
        tell(&mut feed, "still here");
        assert_eq!(recv.line(), "still here");
    }
    let ran = names.ran(&["recv", "a"]);
    assert_eq!(ran.code(), Some(125));
    assert!(
        ran.stderr.contains("whose receiver lives"),
        "{}",
        ran.stderr
    );
    recv.end(Signal::KILL);
    tell(&mut feed, "to nobody");
    let ran = Ran::from(feed.wait_with_output().unwrap());
    assert_eq!(ran.code(), Some(1));
    assert!(ran.stderr.contains("has died"), "{}", ran.stderr);
    let ran = names.ran(&["send", "a", "x"]);
    assert_eq!(ran.code(), Some(1));
    assert!(ran.stderr.contains("no queue"), "{}", ran.stderr);
}

/// A side that looks elsewhere is told where, and what to do.
#[test]
fn who_finds_no_queue_is_told_where_it_looked() {
    let (names, elsewhere) = (Names::new(), tempfile::tempdir().unwrap());
    let _recv = names.recv(&["a"]);
    names.send(&["a", "x"]);
    for (words, code) in [
        (&["send", "a", "x"][..], 1),
        (&["send", "--wait", "0.05", "a", "x"], 3),
        (&["stat", "a"], 1),
    ] {
        let mut command = names.queue(words);
        command.env_remove("PROCWRIGHT_QUEUE_DIR");
        command.env("XDG_RUNTIME_DIR", elsewhere.path());
        let ran = Ran::from(command.stdin(Stdio::null()).output().unwrap());
        assert_eq!(ran.code(), Some(code), "{words:?}: {}", ran.stderr);
        let looked = elsewhere.path().join("procwright/queues");
        for told in [looked.to_str().unwrap(), "hint: ", "PROCWRIGHT_QUEUE_DIR"] {
            assert!(ran.stderr.contains(told), "{words:?}: {}", ran.stderr);
        }
    }
}

#[test]
fn what_a_receiver_leaves_is_told() {
    let names = Names::new();
    let start = || {
        let mut recv = names.queue(&["recv", "a", "--count", "2"]);
        let (reader, writer) = pipe().unwrap();
        recv.stdout(writer).stderr(Stdio::piped());
        Recv {
            child: recv.spawn().unwrap(),
            stdout: BufReader::new(reader),
        }
    };
    let rest = |mut recv: Recv| {
        kill(recv.child.id().cast_signed(), Signal::CONT);
        let mut said = String::new();
        let mut stderr = recv.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        let (text, status) = recv.rest();
        assert_eq!(status.code(), Some(0));
        (text, said)
    };
    // Nobody sends any more.
    let mut recv = start();
    names.send(&["a", "one"]);
    assert_eq!(recv.line(), "one");
    recv.stop();
    names.send(&["a", "two", "three", "four"]);
    let (text, said) = rest(recv);
    assert_eq!(text, "two\n");
    assert!(
        said.starts_with("procwright: 2 messages were not printed, and lost: "),
        "{said}"
    );
    assert!(said.contains("hint: --until-closed"), "{said}");
    // Somebody does, and is told as well.
    let mut recv = start();
    let mut feed = names.feed("a");
    assert_eq!(recv.line(), "hello");
    recv.stop();
    let long = "x".repeat(1000);
    for _ in 0..3 {
        tell(&mut feed, &long);
    }
    test_support::eventually(|| {
        let stat = names.ran(&["stat", "--json", "a"]);
        let stat: serde_json::Value = serde_json::from_str(&stat.stdout).unwrap();
        stat["taken"][0]["waiting_bytes"].as_u64() >= Some(3000)
    });
    let (text, said) = rest(recv);
    assert_eq!(text, long + "\n");
    assert!(
        said.contains("wait for the next who receives from \"a\""),
        "{said}"
    );
    drop(feed.stdin.take());
    let ended = Ran::from(feed.wait_with_output().unwrap());
    assert_eq!(ended.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("ended before it had all that was sent"),
        "{}",
        ended.stderr
    );
}

#[test]
fn who_comes_first_or_second_is_told_what_to_do() {
    let names = Names::new();
    let first = names.ran(&["send", "jobs", "one"]);
    assert_eq!(first.code(), Some(1));
    assert!(
        first.stderr.contains("hint: --wait 3 waits"),
        "{}",
        first.stderr
    );
    let mut recv = names.recv(&["jobs"]);
    // A lone dash is stdin.
    let mut send = names.queue(&["send", "--wait", "inf", "jobs", "-"]);
    let mut send = send.stdin(Stdio::piped()).spawn().unwrap();
    send.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    assert!(send.wait().unwrap().success());
    assert_eq!([recv.line(), recv.line()], ["one", "two"]);
    let second = names.ran(&["recv", "jobs"]);
    assert_eq!(second.code(), Some(125));
    let typed = "procwright queue recv --until-closed jobs | procwright map -j 2 CMD";
    assert!(second.stderr.contains(typed), "{}", second.stderr);
    recv.end(Signal::KILL);
}

#[test]
fn words_of_other_queues_say_what_to_type() {
    let names = Names::new();
    for (words, typed) in [
        (&["list"][..], "procwright queue stat"),
        (&["get", "jobs"], "procwright queue recv NAME"),
        (&["put", "jobs", "x"], "procwright queue send NAME MESSAGE"),
        (&["create", "jobs"], "procwright queue recv NAME"),
        (&["frobnicate"], "there are recv, send and stat"),
        (&["recv", "-n", "1", "jobs"], "recv --count N"),
        (&["recv", "--no-wait", "jobs"], "recv --timeout 0"),
        (&["recv", "-j", "2", "jobs"], "procwright map -j 2"),
    ] {
        let ran = names.ran(words);
        assert_eq!(ran.code(), Some(125), "{words:?}");
        assert!(
            ran.stderr
                .starts_with("procwright: procwright queue has no ")
        );
        assert!(ran.stderr.contains(typed), "{words:?}: {}", ran.stderr);
    }
}

/// A consumer that is at work does not look at the queue: who sends waits for a lane as
/// long as it was told, and those that have left hold up nobody.
#[test]
fn lanes_of_those_that_left() {
    let names = Names::new();
    let mut recv = names.recv(&["a", "--lanes", "2"]);
    names.send(&["a", "first"]);
    assert_eq!(recv.line(), "first");
    recv.stop();
    names.send(&["a", "1"]);
    names.send(&["a", "2"]);
    let ran = names.ran(&["send", "a", "3"]);
    assert_eq!(ran.code(), Some(1));
    assert!(ran.stderr.contains("all lanes"), "{}", ran.stderr);
    let ran = names.ran(&["send", "a", "--wait", "0.05", "3"]);
    assert_eq!(ran.code(), Some(3));
    for told in ["within the time", "all lanes"] {
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    let mut waiting = names.queue(&["send", "a", "--wait", "inf", "3"]);
    let mut waiting = waiting.stdin(Stdio::null()).spawn().unwrap();
    kill(recv.child.id().cast_signed(), Signal::CONT);
    assert!(waiting.wait().unwrap().success());
    let mut got = [recv.line(), recv.line(), recv.line()];
    got.sort();
    assert_eq!(got, ["1", "2", "3"]);
    // More than there are lanes, and none of them sends anything.
    recv.stop();
    for _ in 0..10 {
        let ran = names.ran(&["send", "a"]);
        assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    }
    kill(recv.child.id().cast_signed(), Signal::CONT);
    recv.end(Signal::KILL);
}

/// Messages that were not printed are there for the next receiver.
#[test]
fn nobody_reads_what_is_printed() {
    let names = Names::new();
    let (reader, writer) = pipe().unwrap();
    let mut first = names.queue(&["recv", "a"]).stdout(writer).spawn().unwrap();
    let mut feed = names.feed("a");
    let mut line = String::new();
    let mut reader = BufReader::new(reader);
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "hello\n");
    // The command notices a lost reader while no message comes.
    drop(reader);
    assert_eq!(first.wait().unwrap().signal(), Some(Signal::PIPE.as_raw()));
    // The command notices a lost reader by a failed write: a message is there before
    // it polls.
    let (reader, writer) = pipe().unwrap();
    let mut second = names.recv_by(&["a"], (reader, writer.try_clone().unwrap()));
    // The second receiver has taken over once a message can be sent.
    names.send(&["a", "one"]);
    assert_eq!(second.line(), "one");
    second.stop();
    for number in 0..100 {
        tell(&mut feed, &number.to_string());
    }
    // Each takes 16 bytes.
    loop {
        let stat = names.ran(&["stat", "a", "--json"]).stdout;
        let stat: serde_json::Value = serde_json::from_str(&stat).unwrap();
        let lanes = stat["taken"].as_array().unwrap().iter();
        let waiting = lanes.map(|lane| lane["waiting_bytes"].as_u64().unwrap());
        if waiting.sum::<u64>() >= 1600 {
            break;
        }
    }
    common::close_reader(second.stdout, &writer);
    kill(second.child.id().cast_signed(), Signal::CONT);
    let status = second.child.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::PIPE.as_raw()));
    let mut third = names.recv(&["a"]);
    assert_eq!(third.line_after("one"), "0");
    for number in 1..100 {
        assert_eq!(third.line(), number.to_string());
    }
    drop(feed.stdin.take());
    feed.wait().unwrap();
    third.end(Signal::KILL);
}

#[test]
fn what_a_queue_is_like() {
    let names = Names::new();
    assert_eq!(names.ran(&["stat"]).stdout, "");
    let ran = names.ran(&["stat", "a"]);
    assert_eq!(ran.code(), Some(1));
    let mut recv = names.recv(&["a", "--lanes", "2", "--limit", "1MiB"]);
    let mut feed = names.feed("a");
    assert_eq!(recv.line(), "hello");
    recv.stop();
    tell(&mut feed, &"x".repeat(20_000));
    drop(feed.stdin.take());
    assert!(feed.wait().unwrap().success());
    let ran = names.ran(&["stat", "a"]);
    let pid = recv.child.id();
    assert!(
        ran.stdout.starts_with(&format!("receiver {pid} alive")),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("1 of 2 lanes"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains(&format!("sender {} left", feed.id())),
        "{}",
        ran.stdout
    );
    let all = names.ran(&["stat"]);
    assert!(all.stdout.starts_with("a: receiver"), "{}", all.stdout);
    let json: serde_json::Value =
        serde_json::from_str(&names.ran(&["stat", "a", "--json"]).stdout).unwrap();
    assert_eq!(json["name"], "a");
    assert_eq!(json["receiver"]["state"], "alive");
    assert_eq!(json["receiver"]["pid"], pid);
    assert_eq!(json["taken"][0]["state"], "left");
    assert!(json["taken"][0]["waiting_bytes"].as_u64().unwrap() >= 20_008);
    let line = names.ran(&["stat", "--json"]).stdout;
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&line).unwrap(),
        json
    );
    recv.end(Signal::KILL);
    // No process has the queue any more.
    assert_eq!(names.ran(&["stat"]).stdout, "");
}

#[test]
fn what_cannot_be() {
    let names = Names::new();
    for words in [
        &["recv", "../a"][..],
        &["send", ".a", "x"],
        &["stat", "a/b"],
        &["recv", "a", "--lanes", "0"],
        &["recv", "a", "--format", "csv"],
        &["recv"],
        &["send"],
        &["nothing"],
        &[],
    ] {
        let ran = names.ran(words);
        assert_eq!(ran.code(), Some(125), "{words:?} {}", ran.stderr);
        assert!(!ran.stderr.is_empty() && ran.stdout.is_empty(), "{words:?}");
    }
}
