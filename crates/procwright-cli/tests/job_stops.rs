//! Job control while the run is being stopped: the stop goes on, whoever else stops.

#![allow(clippy::disallowed_methods)] // Tests may sleep.

mod common;

use std::time::Duration;

use common::bash::Bash;
use common::option;
use test_support::{in_time, scaled};

/// The ways to kill: after a grace, and at once.
const KILLS: [&str; 2] = ["--grace 100ms", "--stop KILL"];

/// A program whose processes come and go too fast for two surveys to find them all, so
/// that the loop of the run turns while they are frozen.
const STORM: &str = "$child fork-storm 8 --life 3";

/// Runs a shell line to its end, in which `$?` is 124 for each of its runs.
#[track_caller]
fn ends_by_its_limit(bash: &mut Bash, line: &str) {
    let said = bash.run(&format!("{line}; echo code $?"));
    assert!(!said.contains("Stopped"), "{line}: {said:?}");
    assert!(said.ends_with("code 124\r\n"), "{line}: {said:?}");
}

/// Runs programs that are frozen before they are killed, `each` times in front of a
/// terminal and in a script.
fn kills_to_the_end(program: &str, limits: &str, each: usize) {
    let mut bash = Bash::start();
    for kill in KILLS {
        let run = format!("$run --timeout {limits} {kill} {program} 2>/dev/null");
        for _ in 0..each {
            ends_by_its_limit(&mut bash, &run);
            ends_by_its_limit(&mut bash, &format!("bash -c '{run}'"));
        }
    }
}

#[test]
fn what_the_run_freezes_is_no_stop_to_follow() {
    kills_to_the_end(STORM, "100ms", 4);
}

/// A program that tells of a stop's first signal and of each SIGCONT, survives both, and
/// ends by a line. What it says does not stand in the line that is typed.
///
/// It tells of a SIGCONT outside of the trap: bash takes a signal for handled when its trap
/// is over, and so loses the next one that comes while the trap writes.
const STUBBORN: &str = "come=0 told=0; \
     trap \"echo got-\\$((14+1))\" TERM; trap \"come=\\$((come+1))\" CONT; \
     while ! read -t 0.05; do \
     while ((told < come)); do ((++told)); echo got-$((17+1)); done; done";

/// Runs a program that tells of it when it is being stopped, and reads until it does.
#[track_caller]
fn stop_begins(bash: &mut Bash, scope: &str, grace: &str, program: &str) {
    in_time(Duration::from_millis(500), |limit| {
        let limit = option(limit);
        bash.line(&format!(
            "$run --scope {scope} --timeout {limit} --grace {grace} \
             bash -c '{program}'; echo code $?"
        ));
        // The limit may come before the program has set its traps.
        let is_told = bash.until_one_of(["got-15", "code 124\r\n"]) == 0;
        is_told.then_some(())
    });
}

#[test]
fn ctrl_z_in_the_grace_is_undone() {
    for scope in ["tree", "group"] {
        let mut bash = Bash::start();
        // Ctrl-Z would take away what was written and not yet read.
        bash.run("stty noflsh");
        stop_begins(&mut bash, scope, "1h", STUBBORN);
        for _ in 0..3 {
            bash.press(b"\x1a");
            let said = bash.until("got-18");
            assert!(!said.contains("Stopped"), "{scope}: {said:?}");
        }
        bash.line("");
        bash.until("code 124\r\n");
    }
}

#[test]
fn ctrl_z_in_a_kill_stops_nobody_for_good() {
    for scope in ["tree", "group"] {
        let mut bash = Bash::start();
        // Ctrl-Z would take away what was written and not yet read.
        bash.run("stty noflsh");
        stop_begins(&mut bash, scope, "100ms", &format!("{STORM} & {STUBBORN}"));
        // In the grace, in the kill, and perhaps behind it: then nobody is left to kill, and
        // the command stops as any other does.
        for _ in 0..20 {
            bash.press(b"\x1a");
            std::thread::sleep(Duration::from_millis(10));
        }
        let said = bash.until("code ");
        let mut code = bash.until("\r\n");
        if said.contains("Stopped") {
            let ours = bash.job();
            let left = std::fs::read_to_string(format!("/proc/{ours}/task/{ours}/children"));
            assert_eq!(left.unwrap(), "", "{scope}: {said:?}");
            bash.prompt();
            bash.line("fg; echo code-$?");
            bash.until("code-1");
            code = format!("1{}", bash.until("\r\n"));
        }
        assert_eq!(code, "124", "{scope}: {said:?}");
    }
}

#[test]
fn busy_processes_are_killed_at_a_terminal_and_in_a_script() {
    // Eight of them keep two processors so busy that some do not stand still at once.
    let busy = "trap \"\" TERM; for i in 1 2 3 4 5 6 7; do while :; do :; done & done; \
                while :; do :; done";
    let program = format!("bash -c '{busy}'");
    let mut bash = Bash::start();
    // A file, as the quotes of a script within a script would be unreadable.
    let script = bash.directory.path().join("script");
    let run = format!("$run --timeout 1 --grace 300ms {program} 2>/dev/null");
    std::fs::write(&script, run).unwrap();
    let script = script.to_str().unwrap().to_owned();
    for _ in 0..scaled(1, 100) {
        ends_by_its_limit(&mut bash, &format!(". {script}"));
        ends_by_its_limit(&mut bash, &format!("bash {script}"));
    }
}
