//! The command as a job of a shell: Ctrl-Z, fg, bg, the background.

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::bash::{Bash, await_state, child_of};
use common::{assert_gone, kill, option, procwright, wait_gone};
use rustix::process::{Pid, Signal, kill_process};
use test_support::in_time;

/// Program in the group of the command, and in one of its own.
const SCOPES: [&str; 2] = ["", "--scope group"];

#[test]
fn each_stop_is_one() {
    for scope in [&["--scope", "tree"], &["--scope", "group"]] {
        let (_master, slave) = common::terminal();
        let command = procwright(scope);
        let mut shell = std::process::Command::new(test_children::path());
        shell.args(["job-cycles", "300"]).arg(command.get_program());
        shell.args(command.get_args()).arg("--");
        shell.args(common::child(["sleep-forever"]));
        shell.stdin(slave).stdout(Stdio::piped());
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said, "stops 300 extra 0\n");
    }
}

#[test]
fn ctrl_z_fg_and_bg_reach_the_program() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        bash.line(&format!("$run {scope} $child sleep-forever --print-ready"));
        let pid = bash.ready()[0];
        let ours = bash.job();
        for resume in ["fg", "bg"] {
            bash.press(b"\x1a");
            bash.until("Stopped");
            bash.prompt();
            await_state(pid, &['T']);
            await_state(ours, &['T']);
            match resume {
                "fg" => bash.fg("--print-ready"),
                _ => bash.line(resume),
            }
            await_state(pid, &['S', 'R']);
            await_state(ours, &['S', 'R']);
        }
        bash.prompt();
        bash.fg("--print-ready");
        bash.press(b"\x03");
        bash.prompt();
        assert_gone(&[pid, ours]);
        assert_eq!(bash.run("echo code $?"), "code 130\r\n");
    }
}

#[test]
fn a_program_that_goes_on_at_ctrl_z_is_not_left_alone() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        // Ctrl-Z comes first, and would stop us first.
        bash.line(&format!(
            "$run {scope} bash -c 'trap \"\" TSTP; exec $child sleep-forever --print-ready'"
        ));
        let pid = bash.ready()[0];
        bash.press(b"\x1a");
        bash.press(b"\x03");
        let said = bash.prompt();
        assert!(!said.contains("Stopped"), "{said:?}");
        wait_gone(pid);
        assert_eq!(bash.run("echo code $?"), "code 130\r\n");
    }
}

#[test]
fn a_program_that_stops_by_itself_is_followed() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        bash.line(&format!("$run {scope} $child sleep-forever --print-ready"));
        let pid = bash.ready()[0];
        // SIGTSTP comes from `~^Z` of ssh, SIGSTOP from another terminal.
        for signal in [Signal::TSTP, Signal::STOP] {
            kill(pid, signal);
            bash.until("Stopped");
            bash.prompt();
            bash.fg("--print-ready");
            await_state(pid, &['S', 'R']);
        }
        bash.press(b"\x03");
        bash.prompt();
        assert_gone(&[pid]);
    }
}

#[test]
fn ctrl_z_stops_a_program_on_a_terminal_on_which_nobody_types() {
    let mut bash = Bash::start();
    bash.line("$run --pty --stdin null $child sleep-forever --print-ready");
    let pid = bash.ready()[0];
    for _ in 0..2 {
        bash.press(b"\x1a");
        bash.until("Stopped");
        bash.prompt();
        await_state(pid, &['T']);
        bash.fg("--print-ready");
        await_state(pid, &['S', 'R']);
    }
    bash.press(b"\x03");
    bash.prompt();
    assert_gone(&[pid]);
}

#[test]
fn one_ctrl_c_ends_a_loop() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        bash.line(&format!(
            "while :; do $run {scope} $child sleep-forever --print-ready; done"
        ));
        let pid = bash.ready()[0];
        bash.press(b"\x03");
        bash.prompt();
        assert_gone(&[pid]);
    }
}

#[test]
fn a_reader_in_the_background_is_told_of() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        bash.line(&format!("$run {scope} $child cat &"));
        bash.until("test-child wants to read from the terminal, but runs in the background");
        bash.until("hint: fg brings it to the front, --stdin null");
        // The job stands still, and the shell hears of that once its last thread does.
        await_state(bash.job(), &['T']);
        while !bash.run("jobs").contains("Stopped") {}
        bash.fg("cat");
        bash.line("typed");
        bash.until("typed\r\ntyped\r\n");
        bash.press(b"\x04");
        bash.prompt();
        assert!(
            bash.run("echo code $?").contains("code 0"),
            "{:?}",
            bash.text
        );
    }
}

#[test]
fn a_deadline_holds_in_the_background() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        in_time(Duration::from_millis(500), |limit| {
            let limit = option(limit);
            bash.line(&format!("$run --timeout {limit} {scope} $child cat &"));
            let wants = "test-child wants to read from the terminal";
            (bash.until_one_of([wants, "timed out after"]) == 0).then_some(())
        });
        bash.until("timed out after");
        let said = bash.run("wait $!; echo code $?");
        assert!(said.contains("code 124"), "{:?}", bash.text);
    }
}

#[test]
fn fg_of_one_that_stays_awake_for_its_deadline() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        bash.line(&format!("$run --timeout 1h {scope} $child cat &"));
        bash.until("hint: fg, Ctrl-Z and fg let it go on");
        let cat = child_of(bash.job());
        await_state(cat, &['T']);
        bash.fg("cat");
        bash.press(b"\x1a");
        bash.until("Stopped");
        bash.prompt();
        bash.fg("cat");
        bash.line("typed");
        bash.until("typed\r\ntyped\r\n");
        bash.press(b"\x03");
        bash.prompt();
        assert_gone(&[cat]);
    }
}

#[test]
fn ctrl_c_reaches_one_that_stands_still() {
    let mut bash = Bash::start();
    bash.line("$run --timeout 1h $child cat &");
    bash.until("hint: fg, Ctrl-Z and fg let it go on");
    let cat = child_of(bash.job());
    await_state(cat, &['T']);
    bash.fg("cat");
    bash.press(b"\x03");
    bash.prompt();
    assert_gone(&[cat]);
}

#[test]
fn a_stop_that_nobody_at_a_terminal_has_asked_for_is_told_of() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        bash.line(&format!(
            "$run {scope} $child sleep-forever --print-ready &"
        ));
        let pid = bash.ready()[0];
        kill(pid, Signal::STOP);
        bash.until(&format!(
            "test-child was stopped by SIGSTOP\r\n  hint: kill -CONT {pid} lets it go on"
        ));
        // Still asleep, and not stopped: a SIGTERM stops both at once.
        assert!(bash.run("jobs").contains("Running"));
        let ours = bash.job();
        kill(ours, Signal::TERM);
        wait_gone(pid);
    }
}

#[test]
fn whoever_has_stopped_is_stopped_for_good_by_the_policy() {
    for scope in SCOPES {
        let mut bash = Bash::start();
        let pid = in_time(Duration::from_secs(3), |limit| {
            let limit = option(limit);
            bash.line(&format!(
                "$run {scope} --grace 1h --timeout {limit} $child sleep-forever --print-ready &"
            ));
            let pid = bash.ready()[0];
            // It may be gone, and that be told.
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::STOP);
            let stopped = "was stopped by SIGSTOP";
            (bash.until_one_of([stopped, "timed out after"]) == 0).then_some(pid)
        });
        bash.until("timed out after");
        wait_gone(pid);
    }
}
