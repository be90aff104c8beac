//! Signals that come to us while the program runs.

#![allow(clippy::disallowed_methods)] // Tests may sleep.

mod common;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Started, assert_gone, child, procwright};
use rustix::process::{Pid, Signal};
use test_support::in_time;

#[test]
fn term_stops_the_program_and_then_ends_us() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let started = Started::new([], &child(["sleep-forever"]));
        let pids = started.pids.clone();
        started.kill(signal);
        let ran = started.finish();
        assert_eq!(ran.signal(), Some(signal.as_raw()), "{}", ran.stderr);
        assert_gone(&pids);
        assert_eq!(ran.stderr, "");
    }
}

#[test]
fn so_too_with_pipes_between() {
    let started = Started::new(["--until", "eof"], &child(["sleep-forever"]));
    let pids = started.pids.clone();
    started.kill(Signal::TERM);
    assert_eq!(started.finish().signal(), Some(15));
    assert_gone(&pids);
}

#[test]
fn a_program_that_ignores_it_is_killed_after_the_grace() {
    let started = Started::new(["--grace", "300ms"], &child(["ignore-term"]));
    let pids = started.pids.clone();
    let since = Instant::now();
    started.kill(Signal::TERM);
    assert_eq!(started.finish().signal(), Some(15));
    assert!(since.elapsed() >= Duration::from_millis(300));
    assert_gone(&pids);
}

#[test]
fn a_second_one_ends_the_grace() {
    let mut started = Started::new(["--grace", "1h"], &child(["ignore-term"]));
    let pids = started.pids.clone();
    // One that comes before the first was taken counts with it as one.
    while started.procwright.try_wait().unwrap().is_none() {
        started.kill(Signal::TERM);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(started.finish().signal(), Some(15));
    assert_gone(&pids);
}

#[test]
fn the_stop_signal_is_the_one_asked_for() {
    let started = Started::new(
        ["--stop", "INT", "--grace", "1h"],
        &child(["sleep-forever"]),
    );
    let pids = started.pids.clone();
    started.kill(Signal::TERM);
    assert_eq!(started.finish().signal(), Some(15));
    assert_gone(&pids);
}

#[test]
fn what_nohup_ignores_stays_ignored() {
    let ignored = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT];
    let mut command = procwright(["--"]);
    command.args(child(["show"]));
    ignore(&mut command, ignored);
    let shown: serde_json::Value =
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let shown = shown["sig_ignored"].as_array().unwrap();
    for signal in ignored {
        assert!(shown.contains(&signal.into()), "{signal} of {shown:?}");
    }
    // Rust's runtime ignores it for itself; the program must not inherit that.
    assert!(!shown.contains(&libc::SIGPIPE.into()));

    let mut command = procwright(["--"]);
    command.args(child(["term-exit", "7", "--print-ready"]));
    ignore(&mut command, ignored);
    let started = Started::of(command);
    started.kill(Signal::HUP);
    started.kill(Signal::INT);
    common::kill(started.pids[0], Signal::TERM);
    assert_eq!(started.finish().code(), Some(7));
}

fn ignore<const N: usize>(command: &mut std::process::Command, signals: [i32; N]) {
    // SAFETY: signal(2) is async-signal-safe and touches nothing of ours.
    unsafe {
        command.pre_exec(move || {
            for signal in signals {
                libc::signal(signal, libc::SIG_IGN);
            }
            Ok(())
        });
    }
}

/// Signals that do not ask to terminate, but terminate by default.
fn no_wishes() -> [Signal; 3] {
    // SAFETY: it is a real-time signal that the C library leaves to programs.
    let real_time = unsafe { Signal::from_raw_unchecked(libc::SIGRTMIN() + 1) };
    [Signal::USR1, Signal::ALARM, real_time]
}

#[test]
fn what_is_no_wish_for_an_end_reaches_a_program_that_is_not_in_our_group() {
    for options in [&["--scope", "group"][..], &["--pty"]] {
        for signal in no_wishes() {
            let mut command = procwright(options.iter().copied());
            command.arg("--");
            command.args(child(["sleep-forever", "--print-ready"]));
            let started = Started::of(command);
            started.kill(signal);
            assert_eq!(started.finish().code(), Some(128 + signal.as_raw()));
        }
    }
}

#[test]
fn what_is_sent_to_the_whole_group_is_the_programs_to_answer() {
    for signal in no_wishes() {
        let mut command = procwright(["--"]);
        command.args(child(["sleep-forever", "--print-ready"]));
        command.process_group(0);
        let started = Started::of(command);
        let ours = Pid::from_raw(started.procwright.id().cast_signed()).unwrap();
        // A signal to procwright alone does nothing: the program is in its group.
        started.kill(signal);
        rustix::process::kill_process_group(ours, signal).unwrap();
        assert_eq!(started.finish().code(), Some(128 + signal.as_raw()));
    }
}

#[test]
fn what_is_sent_to_us_alone_leaves_a_program_in_our_group_alone() {
    for signal in no_wishes() {
        let started = Started::new([], &child(["term-exit", "7"]));
        started.kill(signal);
        common::kill(started.pids[0], Signal::TERM);
        assert_eq!(started.finish().code(), Some(7));
    }
}

#[test]
fn a_timer_that_was_set_before_us_ends_the_run() {
    let started = in_time(Duration::from_secs(1), |limit| {
        let mut command = procwright(["--"]);
        command.args(child(["sleep-forever", "--print-ready"]));
        let seconds = u32::try_from(limit.as_secs()).unwrap();
        // SAFETY: alarm(2) is async-signal-safe; the timer outlives the exec.
        unsafe {
            command.pre_exec(move || {
                libc::alarm(seconds);
                Ok(())
            });
        }
        Started::in_time(command)
    });
    let pids = started.pids.clone();
    assert_eq!(started.finish().signal(), Some(libc::SIGALRM));
    assert_gone(&pids);
}

#[test]
fn ctrl_c_is_the_programs_to_answer() {
    // The program ignores SIGINT, and dies by the SIGQUIT that comes next.
    let mut terminal = Terminal::start([], &child(["ignore-term", "--print-ready"]));
    terminal.press(b"\x03");
    terminal.press(b"\x1c");
    let ran = terminal.started.finish();
    assert_eq!((ran.code(), ran.signal()), (Some(128 + 3), None));
}

#[test]
fn ctrl_c_ends_us_if_it_ended_the_program() {
    let mut terminal = Terminal::start([], &child(["sleep-forever", "--print-ready"]));
    let pids = terminal.started.pids.clone();
    terminal.press(b"\x03");
    assert_eq!(terminal.started.finish().signal(), Some(2));
    assert_gone(&pids);
}

#[test]
fn ctrl_c_reaches_a_program_in_a_group_of_its_own() {
    let words = child(["sleep-forever", "--print-ready"]);
    let mut terminal = Terminal::start(["--scope", "group"], &words);
    let pids = terminal.started.pids.clone();
    terminal.press(b"\x03");
    assert_eq!(terminal.started.finish().signal(), Some(2));
    assert_gone(&pids);
}

#[test]
fn ctrl_c_during_a_stop_ends_the_grace() {
    let words = child(["ignore-term", "--print-ready"]);
    let mut terminal = Terminal::start(["--grace", "1h"], &words);
    terminal.started.kill(Signal::TERM);
    // One that comes before the stop is the program's, which ignores it.
    while terminal.started.procwright.try_wait().unwrap().is_none() {
        terminal.press(b"\x03");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(terminal.started.finish().signal(), Some(15));
}

/// A run with a terminal of its own as stdin.
struct Terminal {
    keyboard: std::fs::File,
    started: Started,
}

impl Terminal {
    fn start<const N: usize>(options: [&str; N], words: &[String]) -> Terminal {
        let (master, slave) = common::terminal();
        let mut command = procwright(options);
        command.arg("--").args(words).stdin(Stdio::from(slave));
        // SAFETY: both are plain system calls.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin().as_fd())?;
                Ok(())
            });
        }
        Terminal {
            keyboard: master,
            started: Started::of(command),
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }
}

#[test]
fn the_program_ignores_what_the_command_was_started_with() {
    // What Rust's runtime, and the command for itself, do about these is no business of
    // the program.
    let all = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGCHLD];
    let ways = [
        &[][..],
        &["--until", "eof"],
        &["--scope", "group"],
        &["--pty", "--stdin", "null"],
        &["--retry", "1"],
        &["--die-with-parent"],
    ];
    for options in ways {
        for ignored in [&[][..], &all[..1], &all[1..2], &all[2..], &all[..]] {
            let mut command = procwright(options);
            command.arg("--").args(child(["show"]));
            for &signal in ignored {
                ignore(&mut command, [signal]);
            }
            let output = command.output().unwrap();
            let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let shown = shown["sig_ignored"].as_array().unwrap();
            let kept = all.map(|signal| shown.contains(&signal.into()));
            let asked = all.map(|signal| ignored.contains(&signal));
            assert_eq!(kept, asked, "{options:?}, of {all:?}");
        }
    }
}
