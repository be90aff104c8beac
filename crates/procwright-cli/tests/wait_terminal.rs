//! The progress of `procwright wait` on a terminal.

mod common;

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use common::seen::Seen;
use common::target::{Target, wait};
use common::{subcommand, terminal};
use rustix::process::Signal;

/// `procwright wait` on a terminal.
fn seen_wait<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Seen {
    let mut command = subcommand("wait");
    command.args(arguments);
    Seen::new(command, 80)
}

#[test]
fn it_is_drawn_and_erased() {
    let (a, b) = (Target::new(["term-exit", "3"]), Target::sleeper());
    let mut seen = seen_wait([&a.arg()[..], &b.arg()]);
    let (first, second) = (a.pid(), b.pid());
    let both = format!("waiting for 2 of 2: {first} test-child, {second} test-child");
    assert!(seen.until(&both), "{:?}", seen.text);
    a.kill(Signal::TERM);
    let one = format!("waiting for 1 of 2: {second} test-child\x1b[K");
    assert!(seen.until(&one), "{:?}", seen.text);
    let screen = seen.screen();
    let told = format!("{first} test-child exited with code 3 after ");
    assert!(screen[0].starts_with(&told), "{screen:?}");
    assert_eq!(
        screen[1..],
        [format!("waiting for 1 of 2: {second} test-child")]
    );

    b.kill(Signal::TERM);
    assert_eq!(seen.end(), (Some(0), None));
    let screen = seen.screen();
    assert!(screen[1].starts_with(&format!("{second} test-child killed by ")));
    assert_eq!(screen[2..], [""]);
    // Once for each who is waited for and never by the clock.
    assert_eq!(seen.text.matches("waiting for").count(), 2);
}

#[test]
fn it_says_how_many_more() {
    let (a, b, c) = (Target::sleeper(), Target::sleeper(), Target::zombie("0"));
    let mut seen = seen_wait(["--first", "2", &a.arg(), &b.arg(), &c.arg()]);
    assert!(seen.until("waiting for 1 more of 2: "), "{:?}", seen.text);
    a.kill(Signal::TERM);
    assert_eq!(seen.end(), (Some(0), None));
    let mut seen = seen_wait(["--any", &b.arg()]);
    assert!(seen.until("waiting for any of 1: "), "{:?}", seen.text);
    b.kill(Signal::TERM);
    assert_eq!(seen.end(), (Some(0), None));
}

#[test]
fn it_fits_the_terminal() {
    let targets = [(); 5].map(|()| Target::sleeper());
    let mut command = subcommand("wait");
    command.args(["--timeout", "100ms"]);
    command.args(targets.iter().map(Target::arg));
    let mut seen = Seen::new(command, 30);
    assert_eq!(seen.end(), (Some(3), None));
    let (_, drawn) = seen.text.split_once("waiting").unwrap();
    let (drawn, _) = drawn.split_once("\x1b[K").unwrap();
    assert!(drawn.ends_with('…'), "{drawn}");
    assert!("waiting".len() + drawn.chars().count() < 30, "{drawn}");
    let screen = seen.screen();
    assert!(screen[0].starts_with("procwright: timed out"), "{screen:?}");
}

#[test]
fn a_signal_finds_it_erased() {
    let target = Target::sleeper();
    // Ctrl-C, and one that does not come from the keyboard.
    for signal in [Signal::INT, Signal::TERM] {
        let mut seen = seen_wait([&target.arg()[..]]);
        assert!(seen.until("test-child\x1b[K"), "{:?}", seen.text);
        match signal {
            Signal::INT => seen.master.write_all(b"\x03").unwrap(),
            signal => common::kill(seen.command.id().cast_signed(), signal),
        }
        assert_eq!(seen.end(), (None, Some(signal.as_raw())));
        let screen = seen.screen();
        // The terminal's own echo may come after.
        let clean = screen == [""] || screen == ["^C"];
        assert!(clean, "{screen:?}");
    }
}

#[test]
fn a_terminal_that_is_stopped_does_not_keep_it() {
    let target = Target::sleeper();
    let mut seen = seen_wait([&target.arg()[..]]);
    // Ctrl-S. The first line may be there already; the next finds no way.
    seen.master.write_all(b"\x13").unwrap();
    let status = format!("/proc/{}/status", seen.command.id());
    let caught = || {
        let text = std::fs::read_to_string(&status).unwrap();
        let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
        mask >> (libc::SIGTERM - 1) & 1 == 1
    };
    while !caught() {
        std::thread::yield_now();
    }
    common::kill(seen.command.id().cast_signed(), Signal::TERM);
    assert_eq!(seen.end(), (None, Some(libc::SIGTERM)));
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let target = Target::sleeper();
    let mut command = subcommand("wait");
    command.arg(target.arg());
    // SAFETY: signal(2) is async-signal-safe and touches nothing of ours.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            Ok(())
        });
    }
    let mut seen = Seen::new(command, 80);
    assert!(seen.until("test-child\x1b[K"), "{:?}", seen.text);
    common::kill(seen.command.id().cast_signed(), Signal::HUP);
    target.kill(Signal::TERM);
    assert_eq!(seen.end(), (Some(0), None));
}

#[test]
fn none_where_it_would_be_in_the_way() {
    let target = Target::sleeper();
    for (option, term) in [("--quiet", "xterm"), ("--verbose", "dumb")] {
        // The command around sets the variable after us.
        let mut command = Command::new("/usr/bin/env");
        command.arg(format!("TERM={term}"));
        command.args([env!("CARGO_BIN_EXE_procwright"), "wait", "--timeout", "0"]);
        command.args([option, &target.arg()]);
        let mut seen = Seen::new(command, 80);
        assert_eq!(seen.end(), (Some(3), None));
        assert!(!seen.text.contains("waiting"), "{option}: {:?}", seen.text);
    }
    // A job in the background, whose shell has the terminal.
    let mut command = Command::new("/bin/sh");
    let own = env!("CARGO_BIN_EXE_procwright");
    let line = format!(
        "set -m; '{own}' wait --timeout 50ms {} & wait $!",
        target.arg()
    );
    command.args(["-c", &line]);
    let mut seen = Seen::new(command, 80);
    assert_eq!(seen.end(), (Some(3), None));
    assert!(!seen.text.contains("waiting"), "{:?}", seen.text);
}

#[test]
fn none_where_there_is_no_terminal() {
    let target = Target::sleeper();
    let ran = wait(["--timeout", "50ms", &target.arg()]);
    assert!(
        ran.stderr.starts_with("procwright: timed out"),
        "{}",
        ran.stderr
    );
    // A terminal on stdout alone gets no progress either.
    let (mut master, slave) = terminal();
    let mut command = subcommand("wait");
    command
        .env("TERM", "xterm")
        .args(["--timeout", "50ms", &target.arg()]);
    let output = command
        .stdout(slave)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    drop(command);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("procwright: timed out"), "{stderr}");
    let mut shown = Vec::new();
    let _ = master.read_to_end(&mut shown);
    assert_eq!(shown, b"");
}
