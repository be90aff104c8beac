//! What a program starts when it is told to end is its own answer, and is left to work.

mod common;

use std::io::Read;
use std::time::Duration;

use procwright::Command;
use procwright::process::Stop;

/// Much longer than the answers take.
const GRACE: Duration = Duration::from_secs(60);

/// What a shell says in `answer` to SIGTERM. A member beside it obeys, once it is a program of
/// its own: a copy of the shell may still have the trap, and lose the signal.
fn answered(answer: &str) -> String {
    let script = format!("trap '{answer}' TERM; sh -c 'echo ready; exec sleep 1000' & wait; wait");
    let command = Command::new("sh").args(["-c", &script]);
    let mut child = command.stop(Stop::new().with_grace(GRACE)).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 6]).unwrap();
    assert_eq!(child.stop(), []);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    rest
}

#[test]
fn who_is_started_for_the_answer_is_not_signalled() {
    let _dog = common::watchdog("who_is_started_for_the_answer_is_not_signalled");
    // An answer that begins within the tick of the signal, as nearly all do.
    for _ in 0..20 {
        assert_eq!(answered("sleep 0.1 && echo bye; exit 0"), "bye\n");
    }
}

#[test]
fn nor_are_those_that_it_starts() {
    let _dog = common::watchdog("nor_are_those_that_it_starts");
    for _ in 0..20 {
        assert_eq!(
            answered("(sleep 0.1 && sleep 0.1) && echo bye; exit 0"),
            "bye\n"
        );
    }
}

#[test]
fn nor_one_that_outlives_its_parent() {
    let _dog = common::watchdog("nor_one_that_outlives_its_parent");
    for _ in 0..20 {
        assert_eq!(answered("(sleep 0.1 && echo bye) & exit 0"), "bye\n");
    }
}
