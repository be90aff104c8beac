//! `procwright buffer` as a stage between two programs.

mod common;

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use test_children::{Pattern, Stream};

use common::kill;

/// `procwright buffer` with these options.
fn buffer(options: &[&str]) -> Command {
    // The helper is for another subcommand, but starts the watchdog.
    let program = common::procwright([""; 0]).get_program().to_owned();
    let mut command = Command::new(program);
    command.arg("buffer").args(options);
    command.stderr(Stdio::piped());
    command
}

/// A stage whose two ends we hold.
struct Stage {
    child: Child,
    input: Option<PipeWriter>,
    output: Option<PipeReader>,
}

impl Stage {
    fn start(options: &[&str]) -> Stage {
        Stage::of(buffer(options))
    }

    fn of(mut command: Command) -> Stage {
        let (theirs_in, input) = pipe().unwrap();
        let (output, theirs_out) = pipe().unwrap();
        let child = command.stdin(theirs_in).stdout(theirs_out).spawn().unwrap();
        // The command still holds their ends.
        drop(command);
        Stage {
            child,
            input: Some(input),
            output: Some(output),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Lets the input end and reads all output.
    fn rest(&mut self) -> Vec<u8> {
        drop(self.input.take());
        let mut bytes = Vec::new();
        let mut output = self.output.take().unwrap();
        output.read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn finish(self) -> (Option<i32>, Option<i32>, String) {
        let Output { status, stderr, .. } = self.child.wait_with_output().unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        (status.code(), status.signal(), stderr)
    }
}

fn pattern(length: usize) -> Vec<u8> {
    Pattern::new(Stream::Stdout, length)
        .slice(0, length)
        .to_owned()
}

/// The value of a line of the figures.
fn figure<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap_or_else(|| panic!("no {name} in {text:?}"))
        .trim()
}

#[test]
fn all_comes_out_as_it_went_in_though_nobody_reads_for_a_while() {
    // The bytes fit into memory, or go through the disk.
    for (options, length) in [
        (&["--stats"][..], 3 << 20),
        (&["--stats", "--memory", "1M"], 20 << 20),
    ] {
        let mut stage = Stage::start(options);
        let bytes = pattern(length);
        stage.put(&bytes);
        assert!(stage.rest() == bytes);
        let (code, _, stderr) = stage.finish();
        assert_eq!(code, Some(0), "{stderr}");
        let expected = format!("{length} in, {length} out");
        assert_eq!(figure(&stderr, "bytes"), expected);
        assert_eq!(figure(&stderr, "dropped"), "0 bytes");
        let spilled = figure(&stderr, "spilled");
        assert_eq!(spilled == "0 bytes", options.len() == 1, "{spilled}");
    }
}

#[test]
fn an_empty_input_is_an_empty_output() {
    let mut stage = Stage::start(&[]);
    assert_eq!(stage.rest(), b"");
    assert_eq!(stage.finish(), (Some(0), None, String::new()));
}

#[test]
fn a_byte_is_passed_on_at_once() {
    let mut stage = Stage::start(&[]);
    for byte in 0..100 {
        stage.put(&[byte]);
        let mut seen = [0];
        stage
            .output
            .as_mut()
            .unwrap()
            .read_exact(&mut seen)
            .unwrap();
        assert_eq!(seen, [byte]);
    }
    stage.rest();
    assert_eq!(stage.finish().0, Some(0));
}

#[test]
fn a_reader_that_goes_ends_it_as_any_other_tool() {
    let mut stage = Stage::start(&[]);
    stage.put(&pattern(5 << 20));
    drop(stage.output.take());
    // Our own write fails once it is gone, or earlier.
    let mut input = stage.input.take().unwrap();
    while input.write_all(&[0; 65_536]).is_ok() {}
    assert_eq!(stage.finish(), (None, Some(libc::SIGPIPE), String::new()));
}

#[test]
fn a_reader_that_goes_is_noticed_while_nothing_flows() {
    let mut stage = Stage::start(&[]);
    drop(stage.output.take());
    // The input stays open: nothing but the output can tell.
    let status = stage.child.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGPIPE));
}

#[test]
fn too_much_is_an_error_with_its_offset_and_what_came_before_is_there() {
    let memory = 1 << 20;
    let mut stage = Stage::start(&["--overflow", "fail", "--memory", "1M"]);
    let mut input = stage.input.take().unwrap();
    // The stage closes its input as soon as it has too much.
    let mut written = 0;
    let bytes = pattern(16 << 20);
    for piece in bytes.chunks(4096) {
        if input.write_all(piece).is_err() {
            break;
        }
        written += piece.len();
    }
    assert!(written >= memory && written < bytes.len());
    drop(input);
    let delivered = stage.rest();
    let (code, _, stderr) = stage.finish();
    assert_eq!(code, Some(125));
    let offset = delivered.len();
    assert!(bytes.starts_with(&delivered));
    assert!(offset >= memory && offset <= written + 65_536);
    let said = format!("when byte {offset} came");
    assert!(stderr.contains(&said), "{stderr}");
    assert_eq!(stderr.matches("procwright:").count(), 1, "{stderr}");
}

#[test]
fn what_is_dropped_is_counted_and_told_once() {
    for overflow in ["drop-oldest", "drop-newest"] {
        let options = ["--overflow", overflow, "--memory", "64KiB", "--stats"];
        let mut stage = Stage::start(&options);
        let bytes = pattern(8 << 20);
        stage.put(&bytes);
        let out = stage.rest();
        let (code, _, stderr) = stage.finish();
        assert_eq!(code, Some(0), "{stderr}");
        let dropped: usize = figure(&stderr, "dropped")
            .trim_end_matches(" bytes")
            .parse()
            .unwrap();
        assert!(
            dropped > 0 && out.len() + dropped == bytes.len(),
            "{stderr}"
        );
        assert_eq!(stderr.matches("dropping bytes from offset").count(), 1);
        // The bytes that a pipe and the memory hold are there in any case.
        match overflow {
            "drop-oldest" => assert!(out.ends_with(&bytes[bytes.len() - 65_536..])),
            _ => assert!(out.starts_with(&bytes[..65_536])),
        }
    }
}

#[test]
fn room_that_was_made_during_a_pause_is_used() {
    let options = ["--overflow", "drop-newest", "--memory", "64KiB", "--quiet"];
    let mut stage = Stage::start(&options);
    stage.put(&pattern(4 << 20));
    let mut output = stage.output.take().unwrap();
    let twin = output.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).unwrap();
        bytes
    });
    // The stage has room again, and waits for more input.
    loop {
        wait_for_standstill(&stage);
        let [taken, passed] = [stage.input.as_ref().unwrap().as_fd(), twin.as_fd()]
            .map(|pipe| rustix::io::ioctl_fionread(pipe).unwrap() == 0);
        if taken && passed {
            break;
        }
    }
    drop(twin);
    stage.put(b"later");
    drop(stage.input.take());
    assert!(reader.join().unwrap().ends_with(b"later"));
    assert_eq!(stage.finish().0, Some(0));
}

#[test]
fn quiet_says_nothing_of_drops() {
    let options = ["--overflow", "drop-oldest", "--memory", "64KiB", "--quiet"];
    let mut stage = Stage::start(&options);
    stage.put(&pattern(4 << 20));
    stage.rest();
    assert_eq!(stage.finish(), (Some(0), None, String::new()));
}

#[test]
fn memory_only_holds_the_writer_and_loses_nothing() {
    let mut command = buffer(&["--stats", "--memory", "256KiB"]);
    command.env("PROCWRIGHT_SPOOL", "0");
    let mut stage = Stage::of(command);
    let bytes = pattern(6 << 20);
    let mut input = stage.input.take().unwrap();
    let (copy, done) = (bytes.clone(), stage.output.take().unwrap());
    let writer = std::thread::spawn(move || input.write_all(&copy).unwrap());
    // The writer is stuck before anything is read.
    wait_for_standstill(&stage);
    let mut seen = Vec::new();
    (&done).read_to_end(&mut seen).unwrap();
    writer.join().unwrap();
    assert!(seen == bytes);
    let (code, _, stderr) = stage.finish();
    assert_eq!(code, Some(0));
    assert_eq!(figure(&stderr, "spilled"), "0 bytes");
    assert_ne!(figure(&stderr, "held up"), "0.000 s");
}

/// Waits until it has read nothing for a while, and all of its threads sleep: one that is
/// about to go on may wait for a processor for longer. The watchdog bounds it.
fn wait_for_standstill(stage: &Stage) {
    let path = format!("/proc/{}", stage.pid());
    let read = || {
        let text = std::fs::read_to_string(format!("{path}/io")).unwrap();
        text.lines().next().map(str::to_owned)
    };
    let sleep = || {
        let tasks = std::fs::read_dir(format!("{path}/task")).unwrap().flatten();
        let mut stats = tasks.map(|task| std::fs::read_to_string(task.path().join("stat")));
        stats.all(|stat| stat.is_ok_and(|stat| stat.contains(") S ")))
    };
    let mut before = read();
    let mut same = 0;
    while same < 20 {
        #[allow(clippy::disallowed_methods, reason = "nothing tells of a standstill")]
        std::thread::sleep(Duration::from_millis(5));
        let now = read();
        same = if now == before && sleep() {
            same + 1
        } else {
            0
        };
        before = now;
    }
}

#[test]
fn a_signal_prints_the_figures_at_once() {
    let mut stage = Stage::start(&["--memory", "1M", "--disk", "0"]);
    stage.put(b"abc");
    let mut seen = [0; 3];
    stage
        .output
        .as_mut()
        .unwrap()
        .read_exact(&mut seen)
        .unwrap();
    let mut stderr = stage.child.stderr.take().unwrap();
    loop {
        kill(stage.pid(), Signal::USR1);
        let mut text = Vec::new();
        while !text.windows(7).any(|part| part == b"held up") || !text.ends_with(b"\n") {
            let mut part = [0; 4096];
            let n = stderr.read(&mut part).unwrap();
            assert!(n > 0, "it ended");
            text.extend_from_slice(&part[..n]);
        }
        // We may have read what it has not yet counted as written.
        match figure(&String::from_utf8(text).unwrap(), "bytes") {
            "3 in, 3 out" => break,
            early => assert_eq!(early, "3 in, 0 out"),
        }
    }
    stage.rest();
    assert_eq!(stage.finish().0, Some(0));
}

#[test]
fn other_signals_end_it_as_usual() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut stage = Stage::start(&[]);
        stage.put(b"a");
        stage.output.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        kill(stage.pid(), signal);
        assert_eq!(stage.child.wait().unwrap().signal(), Some(signal.as_raw()));
    }
}

#[test]
fn a_bad_directory_is_told_before_a_byte_is_taken() {
    let mut command = buffer(&[]);
    command.env("PROCWRIGHT_SPOOL_DIR", "/no/such/directory");
    let mut stage = Stage::of(command);
    let rest = stage.rest();
    let (code, _, stderr) = stage.finish();
    assert_eq!((code, rest.len()), (Some(125), 0));
    assert!(stderr.contains("PROCWRIGHT_SPOOL_DIR"), "{stderr}");
    assert!(stderr.contains("/no/such/directory"), "{stderr}");
}

#[test]
fn wrong_usage() {
    for options in [
        &["--overflow", "keep"][..],
        &["--memory", "5MB"],
        &["--disk", "1G", "--overflow", "block"],
        &["file"],
    ] {
        let output = buffer(options).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{options:?}");
        assert!(output.stderr.starts_with(b"procwright: "), "{options:?}");
    }
}

#[test]
fn files_work_at_both_ends() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (directory.path().join("from"), directory.path().join("to"));
    let bytes = pattern(5 << 20);
    std::fs::write(&from, &bytes).unwrap();
    let mut command = buffer(&[]);
    command.stdin(File::open(&from).unwrap());
    command.stdout(File::create(&to).unwrap());
    assert_eq!(command.status().unwrap().code(), Some(0));
    assert!(std::fs::read(&to).unwrap() == bytes);
    // Errors of a read and of a write name the place.
    let mut command = buffer(&[]);
    command.stdin(File::open(directory.path()).unwrap());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr.contains("cannot read the input at offset 0"),
        "{stderr}"
    );
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        return;
    };
    let output = buffer(&[])
        .stdin(File::open(&from).unwrap())
        .stdout(full)
        .output();
    let output = output.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125));
    assert!(
        stderr.contains("cannot write the output at offset 0"),
        "{stderr}"
    );
}

#[test]
fn shared_descriptors_stay_blocking_and_non_blocking_ones_work() {
    let mut stage = Stage::start(&[]);
    stage.put(b"a");
    stage.output.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    for number in 0..3 {
        let flags = flags_of(stage.pid(), number);
        assert_eq!(flags & 0o4000, 0, "{number}: {flags:o}");
    }
    stage.rest();

    let (theirs_in, mut input) = pipe().unwrap();
    let (mut output, theirs_out) = pipe().unwrap();
    for fd in [theirs_in.as_fd(), theirs_out.as_fd()] {
        rustix::fs::fcntl_setfl(fd, rustix::fs::OFlags::NONBLOCK).unwrap();
    }
    let mut command = buffer(&[]);
    let mut child = command.stdin(theirs_in).stdout(theirs_out).spawn().unwrap();
    drop(command);
    let bytes = pattern(3 << 20);
    input.write_all(&bytes).unwrap();
    drop(input);
    let mut seen = Vec::new();
    output.read_to_end(&mut seen).unwrap();
    assert!(seen == bytes);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn flags_of(pid: i32, number: i32) -> u32 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).unwrap();
    u32::from_str_radix(figure(&text, "flags:"), 8).unwrap()
}

#[test]
fn progress_is_shown_on_a_terminal_alone() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options()
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let mut command = buffer(&[]);
    command.stderr(terminal);
    let mut stage = Stage::of(command);
    stage.put(b"abc");
    let mut text = Vec::new();
    let mut master = File::from(master);
    while !text.windows(8).any(|part| part == b"3 bytes ") {
        let mut part = [0; 256];
        let n = master.read(&mut part).unwrap();
        text.extend_from_slice(&part[..n]);
    }
    assert_eq!(stage.rest(), b"abc");
    assert_eq!(stage.child.wait().unwrap().code(), Some(0));
}

#[test]
fn nothing_wakes_while_nothing_flows() {
    let mut stage = Stage::start(&[]);
    stage.put(b"a");
    stage.output.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    // The threads sleep from here on, and switch no more.
    wait_for_standstill(&stage);
    let before = switches(stage.pid());
    #[allow(clippy::disallowed_methods, reason = "there is nothing to wait for")]
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(switches(stage.pid()), before);
    stage.rest();
}

/// How often its threads have gone to sleep.
fn switches(pid: i32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut lines: Vec<String> = tasks
        .map(|task| {
            let text = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            figure(&text, "voluntary_ctxt_switches:").to_owned()
        })
        .collect();
    lines.sort();
    lines
}
