//! What programs wait for, as those see it who started them.
//!
//! Nothing announces that a program has begun to wait: each is looked at until it is as it
//! should be. What must not be found is looked for from the beginning.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use procwright_explain::{Examination, WaitKind, Waiting, examine, input_waits, waiting_for};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use test_support::{Watchdog, scaled, skip, watchdog};

/// A program that is killed at the end, by the end of its input or by SIGKILL.
struct Running(
    Child,
    #[allow(dead_code, reason = "it watches until its drop")] Watchdog,
);

impl Running {
    fn start(command: &mut Command) -> Running {
        let watchdog = watchdog("waiting");
        command.process_group(0).stderr(Stdio::null());
        Running(command.spawn().expect("the program starts"), watchdog)
    }

    /// A line of a shell, with pipes on both sides.
    fn shell(line: &str) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        Running::start(shell.stdin(Stdio::piped()).stdout(Stdio::piped()))
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    /// What it waits for, once that is as it should be.
    fn until(&self, wanted: impl Fn(&Waiting) -> bool) -> Waiting {
        loop {
            let waiting = waiting_for(self.pid()).expect("it is there");
            if wanted(&waiting) {
                return waiting;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // With all that it has started.
        let group = Pid::from_child(&self.0);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.0.wait();
    }
}

fn is(wanted: WaitKind, name: &str) -> impl Fn(&Waiting) -> bool {
    move |waiting| waiting.kind == wanted && waiting.name == name
}

fn names_us(waiting: &Waiting) -> bool {
    let own = std::process::id().cast_signed();
    waiting.holders.iter().any(|holder| holder.pid == own)
}

#[test]
fn input_on_stdin_is_held_by_us() {
    let cat = Running::shell("exec cat");
    let waiting = cat.until(is(WaitKind::Input, "cat"));
    assert_eq!((waiting.pid, waiting.fd), (cat.pid(), Some(0)));
    assert!(!waiting.terminal && names_us(&waiting), "{waiting:?}");
    let begin = format!("cat ({}) waits for input on stdin, pipe ", cat.pid());
    assert!(waiting.text.starts_with(&begin), "{}", waiting.text);
    assert!(waiting.text.contains(", held by "), "{}", waiting.text);
    assert_eq!(waiting.why(), Some(&*waiting.text));
    let diagnosis = examine(&[cat.pid()], Duration::from_millis(20)).expect("it is there");
    assert_eq!(
        diagnosis.waiting.as_ref().map(|one| one.pid),
        Some(cat.pid())
    );
    // A test beside this one may be at its fork, and hold the pipe for a moment.
    assert!(diagnosis.why().is_some_and(|why| why.starts_with(&begin)));
}

#[test]
fn a_parent_waits_for_what_its_child_waits_for() {
    let shell = Running::shell("cat; true");
    let waiting = shell.until(is(WaitKind::Input, "cat"));
    assert_ne!(waiting.pid, shell.pid());
    assert!(names_us(&waiting), "{waiting:?}");

    let shell = Running::shell("cat | sed p; true");
    let waiting = shell.until(is(WaitKind::Input, "cat"));
    assert!(names_us(&waiting), "{waiting:?}");

    let shell = Running::shell("sleep 600 & wait");
    let waiting = shell.until(is(WaitKind::Timer, "sleep"));
    assert_eq!(waiting.why(), None);
}

#[test]
fn a_parent_of_a_child_that_runs_waits_for_the_child() {
    let shell = Running::shell("sh -c 'while kill -0 $PPID; do :; done' & wait");
    let waiting = shell.until(is(WaitKind::Child, "sh"));
    assert_eq!(waiting.pid, shell.pid());
    assert!(waiting.text.contains("runs"), "{}", waiting.text);
    assert!(!waiting.holders.is_empty(), "{waiting:?}");
    assert_eq!(waiting.why(), None);
}

#[test]
fn output_waits_for_who_should_read_it() {
    let yes = Running::shell("exec yes");
    let waiting = yes.until(is(WaitKind::Output, "yes"));
    assert_eq!(waiting.fd, Some(1));
    assert!(names_us(&waiting), "{waiting:?}");
    assert!(
        waiting.text.contains("waits for room in stdout, pipe "),
        "{}",
        waiting.text
    );
}

/// Starts a program on a terminal of its own, which a Python holds and reads; `None` where there
/// is no Python. Gives that and the number of the program.
fn on_terminal(argv: &[&str]) -> Option<(Running, i32)> {
    const PROGRAM: &str = "
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
print(pid, flush=True)
while True:
    try:
        if not os.read(master, 4096):
            break
    except OSError:
        break
";
    let mut python = Command::new("python3");
    let there = python.arg("--version").stdout(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        return None;
    }
    let mut python = Command::new("python3");
    python.args(["-c", PROGRAM]).args(argv);
    let mut python = Running::start(python.stdin(Stdio::null()).stdout(Stdio::piped()));
    let mut line = String::new();
    let stdout = python.0.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let pid = line.trim().parse().expect("a number");
    Some((python, pid))
}

#[test]
fn a_prompt_on_a_terminal_waits_for_input_there() {
    let Some((_python, pid)) = on_terminal(&["sh", "-c", "read answer; true"]) else {
        return skip("a_prompt_on_a_terminal_waits_for_input_there", "no python3");
    };
    let waiting = loop {
        let waiting = waiting_for(pid).expect("it is there");
        if waiting.kind == WaitKind::Input {
            break waiting;
        }
    };
    assert!(waiting.terminal, "{waiting:?}");
    assert_eq!((&*waiting.name, waiting.fd), ("sh", Some(0)));
    let text = format!("sh ({pid}) waits for input on its terminal, /dev/pts/");
    assert!(waiting.text.starts_with(&text), "{}", waiting.text);
}

#[test]
fn who_looks_at_its_terminal_for_a_time_may_wait_for_input() {
    for call in ["poll", "ppoll", "select", "epoll"] {
        let child = test_children::path();
        let child = child.to_str().expect("a path");
        // Ten minutes: it does not end meanwhile.
        let Some((_python, pid)) = on_terminal(&[child, "polls", call, "600000"]) else {
            return skip("who_looks_at_its_terminal_for_a_time", "no python3");
        };
        let waiting = loop {
            let waiting = waiting_for(pid).expect("it is there");
            assert_ne!(waiting.kind, WaitKind::Input, "{call}: {waiting:?}");
            if waiting.terminal {
                break waiting;
            }
        };
        assert_eq!((waiting.kind, waiting.fd), (WaitKind::Timer, Some(0)));
        let text = format!(
            "test-child ({pid}) sleeps until its time is up, and may wait for input on its \
             terminal, /dev/pts/"
        );
        assert!(waiting.text.starts_with(&text), "{call}: {}", waiting.text);
        assert_eq!(waiting.why(), Some(&*waiting.text));
        let looks = input_waits(&[(pid, None)]);
        let [Ok(look)] = looks.as_slice() else {
            panic!("{call}: {looks:?}");
        };
        assert!(look.wait.is_none(), "{call}: {look:?}");
        assert_eq!(look.limit, Some(Duration::from_secs(600)), "{call}");
    }
}

/// `poll` goes on as another call, by which its limit is not to be seen.
#[test]
fn who_was_stopped_over_its_terminal_may_wait_for_input_as_before() {
    let child = test_children::path();
    let child = child.to_str().expect("a path");
    let Some((_python, pid)) = on_terminal(&[child, "polls", "poll", "600000"]) else {
        return skip("who_was_stopped_over_its_terminal", "no python3");
    };
    let until = |wanted: &dyn Fn(&Waiting) -> bool| {
        while !wanted(&waiting_for(pid).expect("it is there")) {}
    };
    let polls = |waiting: &Waiting| waiting.kind == WaitKind::Timer && waiting.terminal;
    let program = Pid::from_raw(pid).expect("a number");
    until(&polls);
    kill_process(program, Signal::STOP).expect("it is there");
    until(&|waiting| waiting.text.ends_with("is stopped by a signal"));
    kill_process(program, Signal::CONT).expect("it is there");
    until(&polls);
    let look = input_waits(&[(pid, None)]).pop();
    let look = look.expect("one was asked about").expect("it is there");
    assert!(look.wait.is_none(), "{look:?}");
    assert_eq!(look.limit, Some(Duration::from_secs(600)));
}

#[test]
fn a_time_limit_that_has_ended_leaves_a_wait_for_input() {
    for call in ["poll", "ppoll", "select", "epoll"] {
        let child = test_children::path();
        let child = child.to_str().expect("a path");
        let Some((_python, pid)) = on_terminal(&[child, "polls", call, "1", "20"]) else {
            return skip("a_time_limit_that_has_ended", "no python3");
        };
        let look = loop {
            let look = input_waits(&[(pid, None)]).pop();
            let look = look.expect("one was asked about").expect("it is there");
            if look.wait.is_some() {
                break look;
            }
        };
        let wait = look.wait.expect("it waits");
        assert!(wait.waiting.terminal, "{call}: {wait:?}");
        assert_eq!(look.limit, None, "{call}");
    }
}

#[test]
fn a_lock_that_somebody_has_says_more_than_that_its_holder_sleeps() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lock");
    let line = "(flock 9; echo; exec sleep 600) 9>\"$0\" | { read line; flock \"$0\" true; }";
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).arg(&file);
    let shell = Running::start(shell.stdin(Stdio::null()).stdout(Stdio::null()));
    let waiting = shell.until(is(WaitKind::Lock, "flock"));
    assert!(waiting.text.contains(", which has sleep ("), "{waiting:?}");
}

#[test]
fn a_lock_of_a_file_waits_for_who_has_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("lock");
    let flock = |words: &[&str]| {
        let mut flock = Command::new("flock");
        flock.arg(&file).args(words).stdin(Stdio::piped());
        Running::start(&mut flock)
    };
    let first = flock(&["cat"]);
    first.until(is(WaitKind::Input, "cat"));
    let second = flock(&["true"]);
    let waiting = second.until(is(WaitKind::Lock, "flock"));
    assert!(!waiting.holders.is_empty(), "{waiting:?}");
    assert!(waiting.why().is_some());
}

#[test]
fn no_program_of_these_waits_for_input() {
    // A reader of a pipe that its own child has, a poll loop with a timer, a busy loop.
    for line in [
        "sleep 600 | cat",
        "while kill -0 $PPID; do :; done",
        "exec sleep 600",
    ] {
        let shell = Running::shell(line);
        for _ in 0..scaled(20, 1000) {
            let waiting = waiting_for(shell.pid()).expect("it is there");
            assert_ne!(waiting.kind, WaitKind::Input, "{line}: {waiting:?}");
        }
    }
}

#[test]
fn who_is_not_there_is_not_found() {
    let error = waiting_for(i32::MAX).expect_err("no such number");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let mut ended = Running::start(Command::new("true").stdin(Stdio::null()));
    // It stays a zombie, of which this is known.
    let waiting = ended.until(|waiting| waiting.text.ends_with("has ended"));
    assert_eq!(waiting.kind, WaitKind::Nothing);
    let _ = ended.0.wait();
}

#[test]
fn each_wait_names_who_could_end_it() {
    let shell = Running::shell("sleep 1000 | cat; true");
    loop {
        let told = examine(&[shell.pid()], Duration::from_millis(1)).expect("it is there");
        let of = |name: &str| told.processes.iter().find(|one| one.name == name);
        let (Some(cat), Some(sleep)) = (of("cat"), of("sleep")) else {
            continue;
        };
        let held = format!(", held by sleep ({}, stdout)", sleep.pid);
        let waits: Vec<_> = cat.waits.iter().collect();
        let [wait] = waits.as_slice() else { continue };
        let holders: Vec<_> = wait.holders.iter().map(|one| (one.pid, one.fd)).collect();
        if holders == [(sleep.pid, Some(1))] && told.sentence.contains(&held) {
            assert!(wait.text.ends_with(&held), "{}", wait.text);
            break;
        }
    }
}

#[test]
fn who_has_come_between_the_looks_is_named() {
    let cat = Running::shell("exec cat");
    cat.until(is(WaitKind::Input, "cat"));
    let begun = Examination::begin(&[cat.pid()]).expect("it is there");
    let end = cat.0.stdin.as_ref().expect("a pipe").as_fd();
    let end = end.try_clone_to_owned().expect("a descriptor");
    let late = Running::start(Command::new("sleep").arg("1000").stdout(end));
    let told = begun.finish().expect("it is there");
    let waiting = told.waiting.expect("one was asked about");
    let mut holders = waiting.holders.iter();
    let is_late = |one: &procwright_explain::WaitedFor| (one.pid, one.fd) == (late.pid(), Some(1));
    assert!(holders.any(is_late), "{waiting:?}");
}

#[test]
fn the_number_of_a_thread_is_no_process() {
    let (send, receive) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        send.send(tid).expect("who asks");
        ended.recv().expect_err("nothing but an end");
    });
    let tid = receive.recv().expect("its number");
    let error = waiting_for(tid).expect_err("it is none");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    let error = examine(&[tid], Duration::from_millis(1)).expect_err("it is none");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
    drop(end);
    thread.join().expect("its end");
}
