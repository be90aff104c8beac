//! The helpers themselves: the ones whose promises are easy to get wrong.

use std::fs;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use rustix::pipe::{fcntl_getpipe_size, fcntl_setpipe_size};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
use test_children::{FLOOD_BYTE, INVALID_UTF8, OWN_BYTE, Pattern, Stream};

fn child(args: &[&str]) -> Command {
    let mut command = Command::new(test_children::path());
    command.args(args).stdin(Stdio::null());
    command
}

fn start(args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = child(args).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (child, stdout)
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line
}

/// The pids of a `ready PID…` line.
fn ready(reader: &mut impl BufRead) -> Vec<Pid> {
    let line = line(reader);
    let pids = line.strip_prefix("ready ").expect(&line);
    pids.split_whitespace()
        .map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap())
        .collect()
}

fn scratch(name: &str) -> PathBuf {
    let name = format!("{name}-{}", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

fn pause(time: Duration) {
    let timeout = Timespec::try_from(time).unwrap();
    poll(&mut [], Some(&timeout)).unwrap();
}

/// Whether somebody still has the other end of this pipe open.
fn is_held(pipe: &ChildStdout) -> bool {
    let mut fds = [PollFd::new(pipe, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).unwrap();
    !fds[0].revents().contains(PollFlags::HUP)
}

fn state(pid: Pid) -> char {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).unwrap();
    stat[stat.rfind(')').unwrap() + 2..].chars().next().unwrap()
}

#[test]
fn flood_writes_exactly_the_pattern() {
    for extra in [&["--chunk", "7777"][..], &["--alternate", "--chunk", "1K"]] {
        let mut args = vec!["flood", "--out", "3M", "--err", "2M"];
        args.extend(extra);
        let output = child(&args).output().unwrap();
        assert!(output.status.success());
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (3 << 20, 2 << 20)
        );
        let [out, err] =
            [Stream::Stdout, Stream::Stderr].map(|stream| Pattern::new(stream, 1 << 16));
        assert_eq!(out.mismatch(0, &output.stdout), None);
        assert_eq!(err.mismatch(0, &output.stderr), None);
    }
}

#[test]
fn flood_dies_by_sigpipe_like_any_program() {
    let (mut child, stdout) = start(&["flood", "--out", "1G"]);
    drop(stdout);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGPIPE));
}

/// Runs `flood-blocked` into a pipe of `capacity`, reads its output after
/// `before` has returned, and gives nanoseconds and waits.
fn blocked(capacity: usize, size: &str, before: fn(Pid, &PipeReader)) -> (u64, u64) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    assert!(fcntl_setpipe_size(&writer, capacity).unwrap() >= capacity);
    let mut child = child(&["flood-blocked", "--out", size, "--chunk", "16K"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    before(Pid::from_child(&child), &reader);
    let mut data = Vec::new();
    reader.read_to_end(&mut data).unwrap();
    let report = line(&mut BufReader::new(child.stderr.take().unwrap()));
    assert!(child.wait().unwrap().success(), "{report}");
    let pattern = Pattern::new(Stream::Stdout, 1 << 16);
    assert_eq!(pattern.mismatch(0, &data), None);
    let mut words = report.split_whitespace();
    let (time, waits) = (words.next().unwrap(), words.next().unwrap());
    assert!(words.next().unwrap().starts_with("queued_ns="));
    let number = |text: &str, key| text.strip_prefix(key).unwrap().parse().unwrap();
    (number(time, "blocked_ns="), number(waits, "waits="))
}

#[test]
fn flood_blocked_measures_the_pauses_of_its_reader() {
    const PAUSE: Duration = Duration::from_millis(100);
    let (time, waits) = blocked(65536, "1M", |pid, pipe| {
        // Once the pipe is full and the child sleeps, it sleeps on the pipe,
        // and will for all of the pause.
        let watchdog = Instant::now() + Duration::from_secs(60);
        let capacity = fcntl_getpipe_size(pipe).unwrap() as u64;
        while ioctl_fionread(pipe).unwrap() < capacity || state(pid) != 'S' {
            assert!(Instant::now() < watchdog, "the pipe never filled up");
            pause(Duration::from_millis(5));
        }
        pause(PAUSE);
    });
    assert!(waits > 0);
    assert!(u128::from(time) >= PAUSE.as_nanos(), "{time}");
}

#[test]
fn flood_blocked_is_zero_if_the_pipe_was_never_full() {
    assert_eq!(blocked(1 << 20, "256K", |_, _| {}), (0, 0));
}

#[test]
fn fork_holder_keeps_the_pipe_open_after_the_exit() {
    for extra in [&[][..], &["--setsid"], &["--double-fork", "--setsid"]] {
        let pidfile = scratch(&format!("holder-{}", extra.len()));
        let mut args = vec!["fork-holder", "0", "--say", "own words", "--pidfile"];
        args.push(pidfile.to_str().unwrap());
        args.extend(extra);
        let (mut child, mut stdout) = start(&args);
        assert!(child.wait().unwrap().success());
        assert_eq!(line(&mut stdout), "own words\n");
        assert!(is_held(stdout.get_ref()));
        let holder = fs::read_to_string(&pidfile).unwrap();
        let holder = Pid::from_raw(holder.trim().parse().unwrap()).unwrap();
        assert_ne!(holder.as_raw_pid(), child.id() as i32);
        kill_process(holder, Signal::KILL).unwrap();
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
    }
}

#[test]
fn fork_flooder_mixes_all_of_its_own_bytes_into_the_flood() {
    let pidfile = scratch("flooder");
    let path = pidfile.to_str().unwrap();
    let (mut child, mut stdout) = start(&["fork-flooder", "--own", "100K", "--pidfile", path]);
    let mut own = 0;
    let mut buffer = vec![0; 1 << 16];
    while own < 100 << 10 {
        let count = stdout.read(&mut buffer).unwrap();
        assert_ne!(count, 0);
        own += buffer[..count].iter().filter(|b| **b == OWN_BYTE).count();
    }
    assert!(child.wait().unwrap().success());
    // The flood goes on, and nothing but the flood.
    for _ in 0..100 {
        let count = stdout.read(&mut buffer).unwrap();
        assert!(buffer[..count].iter().all(|byte| *byte == FLOOD_BYTE));
    }
    assert_eq!(own, 100 << 10);
    let flooder = fs::read_to_string(&pidfile).unwrap();
    let flooder = Pid::from_raw(flooder.trim().parse().unwrap()).unwrap();
    kill_process(flooder, Signal::KILL).unwrap();
}

fn storm(args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = child(args)
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(ready(&mut stdout)[0].as_raw_pid(), child.id() as i32);
    (child, stdout)
}

fn rest(mut stdout: BufReader<ChildStdout>) -> String {
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn fork_storm_withstands_sigterm_and_dies_of_sigkill() {
    let (mut child, stdout) = storm(&["fork-storm", "20", "--life", "2", "--print-ready"]);
    let group = Pid::from_child(&child);
    kill_process_group(group, Signal::TERM).unwrap();
    pause(Duration::from_millis(50));
    assert!(is_held(stdout.get_ref()));
    kill_process_group(group, Signal::KILL).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    // The end of the pipe: no process is left. Nobody lived to the deadline.
    assert_eq!(rest(stdout), "");
}

#[test]
fn fork_storm_ends_by_itself() {
    let args = &["fork-storm", "5", "--deadline", "1", "--print-ready"];
    let (mut child, stdout) = storm(args);
    assert_eq!(rest(stdout), "survived\n".repeat(5));
    assert!(child.wait().unwrap().success());
}

#[test]
fn fork_tree_counts_its_processes() {
    let (mut child, mut stdout) = start(&["fork-tree", "3", "2", "--print-ready"]);
    let pids = ready(&mut stdout);
    assert_eq!(line(&mut stdout), "15\n");
    assert_eq!(pids.len(), 15);
    assert_eq!(pids[0], Pid::from_child(&child));
    for pid in pids {
        kill_process(pid, Signal::KILL).unwrap();
    }
    assert_eq!(rest(stdout), "");
    child.wait().unwrap();
}

#[test]
fn leader_dies_of_sigterm_but_its_child_does_not() {
    let (mut child, mut stdout) = start(&["leader-term-child-ignore", "--print-ready"]);
    let pids = ready(&mut stdout);
    for pid in pids.iter().rev() {
        kill_process(*pid, Signal::TERM).unwrap();
    }
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    assert!(is_held(stdout.get_ref()));
    kill_process(pids[1], Signal::KILL).unwrap();
    assert_eq!(rest(stdout), "");
}

#[test]
fn setsid_grandchild_has_a_session_of_its_own() {
    let (mut child, mut stdout) = start(&["setsid-grandchild", "--print-ready"]);
    let pids = ready(&mut stdout);
    // 0 where the session is that of a process outside the pid namespace.
    // SAFETY: a plain system call without pointers.
    let session = |pid: Pid| unsafe { libc::getsid(pid.as_raw_pid()) };
    assert_eq!(session(pids[0]), session(pids[1]));
    assert_eq!(session(pids[2]), pids[2].as_raw_pid());
    for pid in pids {
        kill_process(pid, Signal::KILL).unwrap();
    }
    assert_eq!(rest(stdout), "");
    child.wait().unwrap();
}

#[test]
fn a_stopped_member_is_stopped_and_the_limit_kills_it_all_the_same() {
    // Long enough for a look at the member, on any machine.
    let (mut child, mut stdout) = start(&["stopped-member", "--print-ready", "--limit", "5"]);
    let pids = ready(&mut stdout);
    assert_eq!(state(pids[1]), 'T');
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGALRM));
    assert_eq!(rest(stdout), "");
}

#[test]
fn term_exit_answers_every_sigterm_after_ready() {
    let (mut child, mut stdout) = start(&["term-exit", "7", "--delay", "50", "--print-ready"]);
    let pid = ready(&mut stdout)[0];
    let before = Instant::now();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(7));
    assert!(before.elapsed() >= Duration::from_millis(50));
}

#[test]
fn ignore_term_ignores_it() {
    let (mut child, mut stdout) = start(&["ignore-term", "--print-ready"]);
    let pid = ready(&mut stdout)[0];
    kill_process(pid, Signal::TERM).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    test_kill_process(pid).unwrap();
    assert!(is_held(stdout.get_ref()));
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn signal_self_dies_by_the_signal_without_a_core() {
    for (name, number) in [("TERM", 15), ("SIGSEGV", 11), ("9", 9), ("ABRT", 6)] {
        let status = child(&["signal-self", name]).status().unwrap();
        assert_eq!(status.signal(), Some(number));
        assert!(!status.core_dumped());
    }
}

/// The text of the value of `key` in a JSON object on one line.
fn member<'a>(json: &'a str, key: &str) -> &'a str {
    let start = json.find(&format!("\"{key}\":")).expect(key) + key.len() + 3;
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (index, byte) in json[start..].bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b',' | b'}' if depth == 0 => return &json[start..start + index],
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    panic!("{key} does not end: {json}");
}

#[test]
fn show_tells_what_was_inherited() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("a \"quoted\" name");
    fs::create_dir_all(&directory).unwrap();
    let mut child = child(&["show"])
        .current_dir(&directory)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let text = rest(BufReader::new(child.stdout.take().unwrap()));
    assert!(child.wait().unwrap().success());
    assert!(text.starts_with('{') && text.ends_with("}\n"), "{text}");
    assert_eq!(text.lines().count(), 1);
    assert_eq!(member(&text, "pid"), pid);
    assert_eq!(member(&text, "pgid"), pid);
    assert_eq!(member(&text, "ppid"), std::process::id().to_string());
    let cwd = member(&text, "cwd");
    assert!(cwd.ends_with("a \\\"quoted\\\" name\""), "{cwd}");
    let uid = rustix::process::getuid().as_raw().to_string();
    assert_eq!(member(&text, "uid"), uid);
    // The standard library resets SIGPIPE in its children, and this program
    // has no start-up code that would ignore it again.
    assert!(
        !member(&text, "sig_ignored")
            .trim_matches(['[', ']'])
            .split(',')
            .any(|signal| signal == "13")
    );
    assert_eq!(member(&text, "sig_blocked"), "[]");
    assert_eq!(member(&text, "pdeathsig"), "null");
    assert_eq!(member(&text, "nonblocking"), "[]");
    let fds = member(&text, "fds");
    assert_eq!(member(fds, "0"), "\"/dev/null\"");
    assert!(member(fds, "1").starts_with("\"pipe:["), "{fds}");
    // Not the descriptor of the directory that it read itself.
    assert!(!fds.contains("/fd\""), "{fds}");
    for key in ["sid", "groups", "umask", "nice", "rlimit_nofile"] {
        assert!(!member(&text, key).is_empty());
    }
}

#[test]
fn small_writers_write_what_they_say() {
    let output = |args: &[&str]| child(args).output().unwrap();
    assert_eq!(output(&["args", "a", "", "b c"]).stdout, b"a\0\0b c\0");
    assert_eq!(output(&["args"]).stdout, b"");
    assert_eq!(output(&["echo", "a", "--stderr"]).stdout, b"a --stderr\n");
    assert_eq!(output(&["echo", "--stderr", "a"]).stderr, b"a\n");
    assert_eq!(output(&["print-bytes", "00ff0A"]).stdout, b"\0\xff\n");
    assert_eq!(output(&["progress", "2", "0"]).stdout, b"\r0/2\r1/2\r2/2\n");
    assert_eq!(output(&["invalid-utf8"]).stdout, INVALID_UTF8);
    assert_eq!(
        output(&["invalid-utf8", "--split", "0"]).stdout,
        INVALID_UTF8
    );
    assert!(String::from_utf8(INVALID_UTF8.to_vec()).is_err());
    let trickle = output(&["trickle", "2", "0", "--size", "10"]);
    assert_eq!(trickle.stdout, b"line 0...\nline 1...\n");
    let big = output(&["big-line", "200K"]).stdout;
    assert_eq!(big.len(), 200 << 10);
    assert_eq!(
        big.iter().position(|byte| *byte == b'\n'),
        Some(big.len() - 1)
    );
    let env = child(&["env"]).env_clear().env("A", "1").output().unwrap();
    assert_eq!(env.stdout, b"A=1\0");
}

#[test]
fn stdio_buffered_withholds_the_last_block() {
    let pattern = Pattern::new(Stream::Stdout, 4096);
    let whole = child(&["stdio-buffered", "10000", "0"]).output().unwrap();
    assert_eq!(whole.stdout.len(), 10_000);
    assert_eq!(pattern.mismatch(0, &whole.stdout), None);

    let (mut child, mut stdout) = start(&["stdio-buffered", "10000", "60000"]);
    stdout.read_exact(&mut [0; 8192]).unwrap();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    assert_eq!(rest(stdout), "");
}

#[test]
fn eat_pipes_says_what_it_holds() {
    let (mut child, mut stdout) = start(&["eat-pipes", "3", "8K", "60000"]);
    assert_eq!(line(&mut stdout), "ready 3 24576\n");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn bad_arguments_exit_125_with_the_usage() {
    let cases: &[&[&str]] = &[
        &[],
        &["no-such-thing"],
        &["exit"],
        &["exit", "256"],
        &["exit", "1", "2"],
        &["sleep", "--what", "1"],
        &["flood", "--out"],
        &["flood", "--out", "1X"],
        &["print-bytes", "abc"],
        &["signal-self", "NONE"],
        &["fork-storm", "100000"],
    ];
    for args in cases {
        let output = child(args).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{args:?}");
        assert!(!output.stderr.is_empty());
    }
    assert_eq!(code(child(&["exit", "77"]).status().unwrap()), 77);
    let help = child(&["help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for name in ["flood-blocked", "fork-storm", "hold-lock-uid"] {
        assert!(help.contains(&format!("\n{name} ")), "{name}");
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap()
}
