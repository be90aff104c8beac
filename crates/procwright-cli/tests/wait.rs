//! `procwright wait`: who is waited for, and until when.

#![allow(clippy::disallowed_methods)] // Tests may sleep.

mod common;

use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use common::target::{Target, Waiter, wait};
use common::{is_gone, subcommand};
use rustix::process::{Resource, Signal};

/// A number that no process has: the kernel's own limit is 2^22.
const NOBODY: &str = "2147483647";

#[test]
fn each_is_told_of_when_it_ends() {
    let (a, b) = (Target::new(["term-exit", "7"]), Target::sleeper());
    let mut waiter = Waiter::new([a.arg(), b.arg()]);
    a.kill(Signal::TERM);
    let line = waiter.line();
    let start = format!("{} test-child exited with code 7 after ", a.pid());
    assert!(line.starts_with(&start) && line.ends_with(" s"), "{line}");
    assert!(waiter.command.try_wait().unwrap().is_none());
    b.kill(Signal::KILL);
    let line = waiter.line();
    let start = format!("{} test-child killed by SIGKILL after ", b.pid());
    assert!(line.starts_with(&start), "{line}");
    let ran = waiter.finish();
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), ""));
}

#[test]
fn any_is_one_and_all_that_have_ended_by_then() {
    let (a, b) = (Target::sleeper(), Target::sleeper());
    let mut waiter = Waiter::new(["--any", &a.arg(), &b.arg()]);
    b.kill(Signal::TERM);
    assert!(waiter.line().starts_with(&format!("{} ", b.pid())));
    let ran = waiter.finish();
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(0), ""));

    let (c, d) = (Target::zombie("1"), Target::zombie("2"));
    let ran = wait(["--any", NOBODY, &a.arg(), &c.arg(), &d.arg()]);
    assert_eq!((ran.code(), ran.stdout.lines().count()), (Some(0), 3));
    assert!(!ran.stdout.contains(&a.arg()), "{}", ran.stdout);
}

#[test]
fn first_is_exactly_so_many() {
    let targets = [(); 4].map(|()| Target::zombie("3"));
    let numbers = targets.each_ref().map(Target::arg);
    for k in ["1", "2", "4"] {
        let ran = wait(
            ["--first", k]
                .into_iter()
                .chain(numbers.each_ref().map(|n| &n[..])),
        );
        assert_eq!(ran.code(), Some(0));
        assert_eq!(ran.stdout.lines().count(), k.parse::<usize>().unwrap());
    }
    // Processes that were gone before the wait count.
    let ran = wait(["--first", "2", NOBODY, &numbers[0], &numbers[1]]);
    assert_eq!(ran.stdout.lines().count(), 2, "{}", ran.stdout);
    assert!(ran.stdout.starts_with(NOBODY), "{}", ran.stdout);

    let alive = Target::sleeper();
    let ran = wait([
        "--first",
        "2",
        "--timeout",
        "50ms",
        &numbers[0],
        &alive.arg(),
    ]);
    assert_eq!((ran.code(), ran.stdout.lines().count()), (Some(3), 1));
}

#[test]
fn first_more_than_there_are_is_wrong_usage() {
    let (a, b) = (Target::zombie("0"), Target::zombie("0"));
    let ran = wait(["--first", "3", &a.arg(), &b.arg(), &b.arg()]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(125), ""));
    assert!(ran.stderr.contains("--first 3"), "{}", ran.stderr);
    assert!(ran.stderr.contains(" 2 in all"), "{}", ran.stderr);
}

#[test]
fn a_timeout_is_3_and_says_who_is_left() {
    let (a, b) = (Target::zombie("5"), Target::sleeper());
    for (timeout, at_least) in [("0", 0), ("300ms", 300)] {
        let since = Instant::now();
        let ran = wait(["--timeout", timeout, &a.arg(), &b.arg()]);
        assert!(since.elapsed() >= Duration::from_millis(at_least));
        assert_eq!(ran.code(), Some(3), "{timeout}: {}", ran.stderr);
        assert!(ran.stdout.starts_with(&format!("{} ", a.pid())));
        assert_eq!(ran.stdout.lines().count(), 1);
        assert!(ran.stderr.starts_with("procwright: timed out after "));
        let left = format!("\n  {} test-child\n", b.pid());
        assert!(ran.stderr.ends_with(&left), "{}", ran.stderr);
    }
    let ran = wait(["--quiet", "--timeout", "0", &b.arg()]);
    assert_eq!((ran.code(), ran.stderr.as_str()), (Some(3), ""));
}

#[test]
fn what_has_ended_before_needs_no_time() {
    let a = Target::zombie("5");
    for timeout in ["0", "inf"] {
        let ran = wait(["--timeout", timeout, &a.arg()]);
        assert_eq!((ran.code(), ran.stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn inf_is_no_timeout() {
    let a = Target::sleeper();
    let waiter = Waiter::new(["--timeout", "inf", &a.arg()]);
    a.kill(Signal::TERM);
    assert_eq!(waiter.finish().code(), Some(0));
}

#[test]
fn an_end_and_a_reap_are_two_events() {
    let mut a = Target::zombie("4");
    let ran = wait([a.arg()]);
    let line = format!("{} test-child exited with code 4 after ", a.pid());
    assert!(ran.stdout.starts_with(&line), "{}", ran.stdout);

    let ran = wait(["--event", "reaped", "--timeout", "50ms", &a.arg()]);
    assert_eq!((ran.code(), ran.stdout.as_str()), (Some(3), ""));
    let left = format!("\n  {} test-child (has ended, was not reaped)\n", a.pid());
    assert!(ran.stderr.ends_with(&left), "{}", ran.stderr);

    let waiter = Waiter::new(["--event", "reaped", &a.arg()]);
    a.reap();
    let ran = waiter.finish();
    assert_eq!(ran.code(), Some(0));
    // Kernels before 6.15 forget a status when it is reaped.
    let known = format!(
        "{} test-child exited with code 4 and was reaped after ",
        a.pid()
    );
    let forgotten = format!("{} test-child ended and was reaped after ", a.pid());
    let told = ran.stdout.starts_with(&known) || ran.stdout.starts_with(&forgotten);
    assert!(told, "{}", ran.stdout);
}

#[test]
fn a_number_without_a_process_counts_as_ended() {
    for options in [
        &[][..],
        &["--any"],
        &["--first", "1"],
        &["--timeout", "inf"],
    ] {
        let ran = wait(options.iter().chain([&NOBODY]));
        assert_eq!(
            (ran.code(), ran.stderr.as_str()),
            (Some(0), ""),
            "{options:?}"
        );
        let told = format!("{NOBODY} is not there: it has ended, or never was\n");
        assert_eq!(ran.stdout, told, "{options:?}");
    }
    // One that was gone is enough for these options.
    let alive = Target::sleeper();
    for options in [&["--any"][..], &["--first", "1"]] {
        let ran = wait(options.iter().chain([&&*alive.arg(), &NOBODY]));
        assert_eq!((ran.code(), ran.stdout.lines().count()), (Some(0), 1));
    }
    let mut a = Target::zombie("0");
    a.reap();
    assert!(is_gone(a.pid()));
    assert!(wait([a.arg()]).stdout.contains(" is not there: "));
}

#[test]
fn an_inode_means_no_other_process() {
    let a = Target::sleeper();
    let id = a.id();
    let Some(inode) = id.inode() else {
        return common::skip("an_inode_means_no_other_process", "needs Linux 6.9");
    };
    let other = format!("{}:{}", a.pid(), inode + 1);
    let ran = wait([&other]);
    assert_eq!(ran.code(), Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with(&format!("{other} is not there: ")));

    let ran = wait(["--timeout", "0", &id.to_string()]);
    assert_eq!(ran.code(), Some(3));
    let waiter = Waiter::new([id.to_string()]);
    a.kill(Signal::TERM);
    let ran = waiter.finish();
    assert_eq!(ran.code(), Some(0));
    assert!(ran.stdout.contains(" SIGTERM "), "{}", ran.stdout);
}

#[test]
fn whoever_is_named_twice_is_waited_for_once() {
    let a = Target::zombie("0");
    let ran = wait([a.arg(), a.arg(), a.id().to_string()]);
    assert_eq!((ran.code(), ran.stdout.lines().count()), (Some(0), 1));
}

#[test]
fn many() {
    let targets: Vec<Target> = (0..300).map(|_| Target::sleeper()).collect();
    let mut command = subcommand("wait");
    command.args(targets.iter().map(Target::arg));
    // More than it may have open, unless it asks for all that it may ask for.
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    let enough = limit.maximum.is_none_or(|maximum| maximum >= 1000);
    limit.current = Some(64);
    // SAFETY: a plain system call.
    unsafe {
        command.pre_exec(move || Ok(rustix::process::setrlimit(Resource::Nofile, limit)?));
    }
    let waiter = Waiter::of(command);
    assert!(waiter.said.contains("300 to wait for: "), "{}", waiter.said);
    if enough {
        assert!(waiter.said.ends_with(": pidfd 300\n"), "{}", waiter.said);
    }
    for target in &targets {
        target.kill(Signal::TERM);
    }
    let ran = waiter.finish();
    assert_eq!(ran.code(), Some(0));
    let mut told: Vec<i32> = ran
        .stdout
        .lines()
        .map(|line| line.split_once(' ').unwrap().0.parse().unwrap())
        .collect();
    told.sort_unstable();
    let mut expected: Vec<i32> = targets.iter().map(Target::pid).collect();
    expected.sort_unstable();
    assert_eq!(told, expected);
    assert!(ran.stderr.contains("300 waited for: "), "{}", ran.stderr);
}

#[test]
fn verbose_tells_the_mechanism() {
    let a = Target::sleeper();
    let waiter = Waiter::new([&a.arg(), NOBODY]);
    assert_eq!(waiter.said, "procwright: 1 to wait for: pidfd 1\n");
    a.kill(Signal::TERM);
    let ran = waiter.finish();
    assert_eq!(ran.stderr, "procwright: 1 waited for: pidfd 1; looks: 0\n");
}

#[test]
fn a_wait_does_not_wake_up() {
    let a = Target::sleeper();
    let waiter = Waiter::new(["--timeout", "1h", &a.arg()]);
    let status = |field: &str| -> String {
        let path = format!("/proc/{}/status", waiter.pid());
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        line.unwrap().trim().to_owned()
    };
    let switches = || -> u64 { status("voluntary_ctxt_switches:").parse().unwrap() };
    while !status("State:").starts_with('S') {
        std::thread::sleep(Duration::from_millis(5));
    }
    let before = switches();
    // The test counts what happens in this time.
    std::thread::sleep(Duration::from_secs(3));
    let woken = switches() - before;
    assert!(woken <= 3, "{woken} context switches");
    a.kill(Signal::TERM);
    assert_eq!(waiter.finish().code(), Some(0));
}

#[test]
fn a_signal_ends_it_as_by_default() {
    let a = Target::sleeper();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let waiter = Waiter::new([a.arg()]);
        common::kill(waiter.pid(), signal);
        let ran = waiter.finish();
        assert_eq!(ran.signal(), Some(signal.as_raw()));
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
}

#[test]
fn nobody_reads_what_it_tells() {
    let a = Target::sleeper();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = subcommand("wait");
    command.arg(a.arg());
    let waiter = Waiter::with_stdout(command, writer.try_clone().unwrap());
    common::close_reader(reader, &writer);
    a.kill(Signal::TERM);
    let ran = waiter.finish();
    assert_eq!((ran.signal(), ran.stderr.as_str()), (Some(13), ""));
}

#[test]
fn a_full_disk_is_told() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return common::skip("a_full_disk_is_told", "needs /dev/full");
    };
    let mut command = subcommand("wait");
    let output = command.arg(NOBODY).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("No space left"), "{stderr}");
}

#[test]
fn wrong_usage_is_125() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "nothing to wait for"),
        (&["--timeout", "1"], "nothing to wait for"),
        (&["sleep"], "--name"),
        (&["0"], "names no process"),
        (&["1:x"], "names no process"),
        (&["--", "-1"], "names no process"),
        (&["--first", "0", "1"], "--first"),
        (&["--any", "--all", "1"], "--any"),
        (&["--any", "--first", "1", "1"], "--any"),
        (&["--all", "--first", "1", "1"], "--all"),
        (&["--event", "born", "1"], "--event"),
        (&["--timeout", "5x", "1"], "no unit of time"),
        (&["--verbose", "--quiet", "1"], "--quiet"),
    ];
    for (case, says) in cases {
        let ran = wait(*case);
        assert_eq!(ran.code(), Some(125), "{case:?}: {}", ran.stderr);
        assert!(
            ran.stderr.starts_with("procwright: "),
            "{case:?}: {}",
            ran.stderr
        );
        assert!(ran.stderr.contains("hint: "), "{case:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{case:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn its_help_fits_a_screen() {
    for option in ["--help", "-h"] {
        let ran = wait([option]);
        assert_eq!(ran.code(), Some(0));
        assert!(ran.stdout.lines().count() <= 24, "{}", ran.stdout);
        let widest = ran.stdout.lines().map(str::len).max();
        assert!(widest <= Some(90), "{}", ran.stdout);
    }
}
