//! The log: exact bytes in the order of reading, whatever becomes of the disk.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use common::{Ran, child, procwright};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit, setrlimit};

/// A directory for logs.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("log")
    }

    /// The log, or an old one.
    fn read(&self, n: u32) -> String {
        let name = if n == 0 {
            "log".into()
        } else {
            format!("log.{n}")
        };
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }

    /// A run with a log here.
    fn command(&self, options: &[&str], words: &[&str]) -> Command {
        logged(&self.log(), options, words)
    }

    fn run(&self, options: &[&str], words: &[&str]) -> Ran {
        self.command(options, words).output().unwrap().into()
    }
}

fn logged(path: &Path, options: &[&str], words: &[&str]) -> Command {
    let mut command = procwright(options);
    command.arg("--log").arg(path).arg("--");
    command.args(child(["says"])).args(words);
    command
}

/// A run that speaks each word only when it is told to.
struct Talk {
    procwright: Child,
    stderr: BufReader<ChildStderr>,
}

impl Talk {
    fn new(mut command: Command) -> Talk {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut procwright = command.spawn().unwrap();
        let stderr = BufReader::new(procwright.stderr.take().unwrap());
        Talk { procwright, stderr }
    }

    fn go_on(&mut self) {
        self.procwright
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"\n")
            .unwrap();
    }

    /// The next line of stderr, the program's or ours.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        line
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.procwright.wait().unwrap().code(), rest)
    }
}

/// Lets a process write no file beyond this size; none for no limit.
fn limit_files(pid: Option<Pid>, size: Option<u64>) {
    let limit = Rlimit {
        current: size,
        maximum: None,
    };
    match pid {
        Some(pid) => drop(prlimit(Some(pid), Resource::Fsize, limit).unwrap()),
        None => setrlimit(Resource::Fsize, limit).unwrap(),
    }
}

fn with_limit(mut command: Command, size: u64) -> Command {
    // SAFETY: a plain system call.
    unsafe {
        command.pre_exec(move || {
            limit_files(None, Some(size));
            Ok(())
        });
    }
    command
}

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

/// The lines of a log with times: stream and text. Each begins with a time, and
/// no time is before the one above it.
fn timed(log: &str) -> Vec<(String, String)> {
    let mut latest = String::new();
    let lines = log.lines().map(|line| {
        let (time, rest) = line.split_once(' ').unwrap();
        let (stream, text) = rest.split_once(' ').unwrap();
        // 2026-01-02T03:04:05.678+01:00
        let shape: String = time
            .chars()
            .map(|c| if c.is_ascii_digit() { '0' } else { c })
            .collect();
        let shape = shape.replace('-', "+");
        assert_eq!(shape, "0000+00+00T00:00:00.000+00:00", "{line:?}");
        assert!(time >= latest.as_str(), "{log}");
        time.clone_into(&mut latest);
        (stream.to_owned(), text.to_owned())
    });
    lines.collect()
}

fn pair(stream: &str, text: &str) -> (String, String) {
    (stream.into(), text.into())
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
    // What is ours in the log is not counted.
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
    // Where it was about to rename, a number may be free; each byte has a name.
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

#[test]
fn a_full_disk_is_counted_marked_and_told() {
    let place = Place::new();
    let words = ["out:0123456789", "ack", "err:lost\\n", "ack", "out:next\\n"];
    let command = with_limit(place.command(&["--report", "json"], &words), 4);
    let mut talk = Talk::new(command);
    let told = talk.line();
    assert!(
        told.contains("cannot write the log") && told.contains("File too large"),
        "{told}"
    );
    assert!(talk.line().contains("the program goes on"));
    talk.go_on();
    assert_eq!(talk.line(), "lost\n");
    // The log gets its piece from another thread than stderr does.
    let pid = Pid::from_child(&talk.procwright);
    limit_files(Some(pid), None);
    talk.go_on();
    let (code, rest) = talk.end();
    assert_eq!(code, Some(0));
    let log = place.read(0);
    let lost = match &log[..] {
        "0123\nprocwright: 11 bytes are missing here\nnext\n" => 11,
        // The disk had room again before the second piece.
        "0123\nprocwright: 6 bytes are missing here\nlost\nnext\n" => 6,
        _ => panic!("{log:?}"),
    };
    assert!(
        rest.contains(&format!("procwright: {lost} bytes are missing in the log")),
        "{rest}"
    );
    assert!(
        rest.contains(&format!(
            "\"log\":{{\"bytes\":{},\"lost_bytes\":{lost},",
            20 - lost
        )),
        "{rest}"
    );
    assert_eq!(rest.matches("cannot write").count(), 0, "told once");
}

#[test]
fn in_a_log_with_times_the_count_is_the_programs_bytes() {
    for limit in [1, 30, 34, 39, 60, 100] {
        let place = Place::new();
        let words = ["out:hello\\n", "out:world\\n", "out:again"];
        let command = with_limit(
            place.command(&["--log-times", "--report", "json"], &words),
            limit,
        );
        let ran: Ran = { command }.output().unwrap().into();
        let log = fs::read(place.log()).unwrap();
        assert_eq!(log.len() as u64, limit.min(109));
        let own = "2026-01-02T03:04:05.678+00:00 out ".len();
        // In whole lines of 40 bytes, the last of which has an end of ours.
        let kept: usize = (0..3)
            .map(|line| {
                log.len()
                    .saturating_sub(line * 40 + own)
                    .min(if line == 2 { 5 } else { 6 })
            })
            .sum();
        let expected = format!("\"log\":{{\"bytes\":{kept},\"lost_bytes\":{},", 17 - kept);
        assert!(
            ran.stderr.contains(&expected),
            "{limit}: {kept} {}",
            ran.stderr
        );
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(0), "hello\nworld\nagain")
        );
    }
}

#[test]
fn the_status_tells_of_a_loss_only_if_asked() {
    let full = Path::new("/dev/full");
    for (options, code) in [(&[][..], 3), (&["--log-strict"], 125)] {
        let ran: Ran = logged(full, options, &["out:x\\n", "exit:3"])
            .output()
            .unwrap()
            .into();
        assert_eq!(
            (ran.code(), ran.stdout.as_str()),
            (Some(code), "x\n"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr
                .contains("2 bytes are missing in the log \"/dev/full\""),
            "{}",
            ran.stderr
        );
    }
    let place = Place::new();
    let ran = place.run(&["--log-strict"], &["out:x\\n"]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_real_disk_that_is_full() {
    let place = Place::new();
    let disk = place.0.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        // Only root may, and not everywhere; size limits stand for it above.
        return;
    }
    let mut command = procwright(["--report", "json", "--log"]);
    command.arg(disk.join("log")).arg("--");
    command.args(child(["flood", "--out", "1000000"]));
    let output = command.output().unwrap();
    assert_eq!(output.stdout.len(), 1_000_000);
    let ran = Ran::from(output);
    let kept = fs::read(disk.join("log")).unwrap().len();
    Command::new("umount")
        .arg("-l")
        .arg(&disk)
        .status()
        .unwrap();
    assert_eq!(ran.code(), Some(0));
    assert!(
        ran.stderr.contains("No space left on device"),
        "{}",
        ran.stderr
    );
    let expected = format!(
        "\"log\":{{\"bytes\":{kept},\"lost_bytes\":{},",
        1_000_000 - kept
    );
    assert!(ran.stderr.contains(&expected), "{kept} {}", ran.stderr);
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
    refused(command, "is what stdout goes to already");
}

#[test]
fn a_fifo_whose_reader_goes_is_the_programs_matter_not() {
    let place = Place::new();
    let reader = common::fifo(&place.log());
    let mut talk = Talk::new(place.command(&[], &["out:first", "ack", "out:second\\n"]));
    let mut first = [0; 5];
    (&reader).read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first");
    drop(reader);
    talk.go_on();
    let (code, rest) = talk.end();
    assert_eq!(code, Some(0));
    assert!(
        rest.contains("Broken pipe") && rest.contains("7 bytes are missing"),
        "{rest}"
    );
}

#[test]
fn a_log_that_takes_nothing_holds_up_no_deadline() {
    let place = Place::new();
    let reader = common::fifo(&place.log());
    let mut command = procwright(["--timeout", "500ms", "--report", "json", "--log"]);
    command.arg(place.log()).arg("--");
    command.args(child(["flood-forever", "--no-limit"]));
    let output = command.stdout(Stdio::null()).output().unwrap();
    drop(reader);
    assert_eq!(output.status.code(), Some(124));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let (_, json) = stderr.split_once("\n{").unwrap();
    let json: serde_json::Value = serde_json::from_str(&format!("{{{json}")).unwrap();
    let log = |name: &str| json["log"][name].as_u64().unwrap();
    // What was read is in it or missing, whatever was under way.
    assert_eq!(
        log("bytes") + log("lost_bytes"),
        json["stdout_info"]["bytes"].as_u64().unwrap()
    );
    assert!(log("lost_bytes") > 16 << 20, "{json}");
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
    let options = ["--timeout", "300ms", "--log-times"];
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
