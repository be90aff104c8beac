//! Traces of a child that is handed out. The tests of the command are about the traces
//! of runs.
//!
//! This file has one test: the variable is read once in a process.

#[path = "common/mod.rs"]
mod common;

use std::time::Duration;

use procwright::process::{Scope, Signal, Stop};
use procwright::{Command, Overflow};

fn child(words: &[&str]) -> Command<'static> {
    Command::new(test_children::path()).args(words)
}

#[test]
fn the_life_of_children() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trace");
    // SAFETY: no other thread of this process is there to read the environment.
    unsafe { std::env::set_var("PROCWRIGHT_TRACE", &file) };

    let ended = child(&["exit", "3"]).spawn().unwrap();
    ended.wait(None).unwrap();

    let dropping = child(&["flood", "--out", "1M"])
        .spawn_with(Overflow::DropOldest { memory: 65536 })
        .unwrap();
    dropping.wait(None).unwrap();

    let stopped = child(&["sleep-forever"])
        .stop(Stop::new().with_scope(Scope::Process))
        .spawn()
        .unwrap();
    stopped.stop();

    let stalled = child(&["flood", "--out", "1M"])
        .stall_after(Duration::from_millis(20))
        .spawn_with(Overflow::Block { memory: 4096 })
        .unwrap();
    stalled.wait(None).unwrap_err();
    stalled.signal(Signal::KILL).unwrap();
    // A wait for the child would tell of the stall again, if the signal takes its time.
    stalled.process().wait(None).unwrap();
    stalled.wait(None).unwrap();

    drop(child(&["sleep", "0"]).spawn().unwrap());
    child(&["exit", "0"]).cwd("/no/such").spawn().unwrap_err();

    let text = std::fs::read_to_string(&file).unwrap();
    let of = |serial: &str| -> Vec<&str> {
        let mark = format!("procwright[{}.{serial}] +", std::process::id());
        let lines = text.lines().filter_map(|line| line.strip_prefix(&mark));
        lines.map(|line| line.split_once(' ').unwrap().1).collect()
    };
    let begins = |lines: &[&str], with: &[&str]| {
        assert_eq!(lines.len(), with.len(), "{lines:?}");
        for (line, with) in lines.iter().zip(with) {
            assert!(line.starts_with(with), "{line}: {with}");
        }
    };
    begins(&of("1"), &["start pid ", "end: exited with code 3 after "]);
    begins(
        &of("2"),
        &["start pid ", "dropping of stdout from offset ", "end: "],
    );
    begins(
        &of("3"),
        &[
            "start pid ",
            "stop: SIGTERM to the process, SIGKILL after 5 s",
            "end: killed by SIGTERM after ",
        ],
    );
    begins(
        &of("4"),
        &["start pid ", "stalled: ", "end: killed by SIGKILL after "],
    );
    begins(&of("5"), &["start pid ", "dropped before its end"]);
    begins(&of("6"), &["not started, "]);
}
