//! Children that are to live on without us, and those that nobody has any more.

mod common;

use std::io::Read;
use std::time::Duration;

use common::child;
use procwright::process::{Exit, Signal};
use procwright::queue::Channel;
use procwright::{Beyond, Cancel, Command, Error, Limit, Sink, StdStream, Stdin, Until};

const HOUR: Duration = Duration::from_secs(3600);

/// What is refused, and why.
fn refused(command: Command<'_>) -> String {
    match command.detach().spawn() {
        Err(Error::Invalid(invalid)) => invalid.to_string(),
        other => panic!("{other:?}"),
    }
}

fn nowhere() -> Command<'static> {
    child(&["exit", "0"]).stdout(Sink::Null).stderr(Sink::Null)
}

#[test]
fn a_detached_program_leads_a_session_and_is_a_child_as_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let spawned = child(&["show"])
        .stdout(Sink::File {
            path: path.clone(),
            append: false,
        })
        .stderr(Sink::Null)
        .detach()
        .spawn()
        .unwrap();
    assert!(spawned.wait(None).unwrap().unwrap().success());
    let seen: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(seen["sid"], spawned.pid());
    assert_eq!(seen["pgid"], spawned.pid());
}

#[test]
fn what_would_end_with_us_is_refused() {
    let piped = child(&["exit", "0"]);
    assert!(refused(piped).contains("stdout"));
    assert!(refused(child(&["exit", "0"]).stdout(Sink::Null)).contains("stderr"));
    assert!(refused(nowhere().stdin(Stdin::Pipe)).contains("stdin"));
    assert!(refused(nowhere().stdin(Stdin::Bytes(b"x"[..].into()))).contains("stdin"));
    assert!(refused(nowhere().die_with_parent(Signal::KILL)).contains("die_with_parent"));
    assert!(refused(nowhere().channel(Channel::FromChild)).contains("channel"));
    for (command, name) in [
        (nowhere().timeout(HOUR), "timeout is kept by us"),
        (nowhere().idle_timeout(HOUR), "idle_timeout is kept by us"),
        (
            nowhere().limit(Limit {
                bytes: 1,
                beyond: Beyond::Fail,
            }),
            "limit is kept by us",
        ),
        (nowhere().keep_full("/x"), "keep_full is written by us"),
        (nowhere().until(Until::Exit), "until is about streams"),
        (
            nowhere().until(Until::Silent(HOUR)),
            "until is about streams",
        ),
        (
            nowhere().cancel_on(&Cancel::new().unwrap()),
            "cancel is asked of us",
        ),
        (
            nowhere().tee_to(StdStream::Stdout, std::io::sink()),
            "a copy is made by us",
        ),
    ] {
        let text = refused(command);
        assert!(text.starts_with(name), "{text}");
    }
    let run = nowhere().detach().run().unwrap_err();
    assert!(
        run.to_string().contains("is for spawn(), not for run()"),
        "{run}"
    );
}

#[test]
fn a_child_that_is_stopped_in_the_background_can_say_its_last_words() {
    let script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let mut spawned = Command::new("sh").args(["-c", script]).spawn().unwrap();
    let mut stdout = spawned.stdout.take().unwrap();
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready).unwrap();
    let process = spawned.process();
    // The shell says there that a program of its own was terminated.
    let stderr = spawned.stderr.take();
    assert!(spawned.stop_in_background((stdout, stderr)));
    drop(spawned);
    // SIGPIPE would have killed it at that word.
    process.wait(None).unwrap();
    assert_eq!(process.exit(), Some(Exit::Code(3)));
}

#[test]
fn who_has_ended_is_not_stopped_in_the_background() {
    let spawned = child(&["exit", "4"]).spawn().unwrap();
    assert_eq!(spawned.wait(None).unwrap(), Some(Exit::Code(4)));
    assert!(!spawned.stop_in_background(()));
}

#[test]
fn who_has_let_go_of_all_outputs_is_not_stopped_in_the_background() {
    let script = "exec >&- 2>&-; exec sleep 60";
    let mut spawned = Command::new("sh").args(["-c", script]).spawn().unwrap();
    read_out(spawned.stdout.take().unwrap());
    read_out(spawned.stderr.take().unwrap());
    assert!(!spawned.stop_in_background(()));
    spawned.stop();
}

#[test]
fn who_has_let_go_of_one_of_two_outputs_is_stopped_in_the_background() {
    for script in ["exec >&-; exec sleep 60", "exec 2>&-; exec sleep 60"] {
        let mut spawned = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let (stdout, stderr) = (
            spawned.stdout.take().unwrap(),
            spawned.stderr.take().unwrap(),
        );
        match script.contains("2>") {
            true => read_out(stderr),
            false => read_out(stdout),
        }
        let process = spawned.process();
        assert!(spawned.stop_in_background(()));
        drop(spawned);
        process.wait(None).unwrap();
        assert!(matches!(process.exit(), Some(Exit::Signal { .. })));
    }
}

#[test]
fn who_ends_behind_one_of_its_outputs_is_not_stopped_in_the_background() {
    // Its stderr is held by another, so that it has no end, though the program has.
    let script = "sleep 60 >/dev/null & exec >&-; exit 3";
    let is_left_alone = |_: &usize| {
        let mut spawned = Command::new("sh").args(["-c", script]).spawn().unwrap();
        read_out(spawned.stdout.take().unwrap());
        let is_stopped = spawned.stop_in_background(());
        if !is_stopped {
            assert_eq!(spawned.wait(None).unwrap(), Some(Exit::Code(3)));
            spawned.stop();
        }
        !is_stopped
    };
    // It has 0.2 s between the two, in which a busy machine may not come to it.
    assert!((0..10).any(|round| is_left_alone(&round)));
}

fn read_out(mut output: impl Read) {
    let mut nothing = Vec::new();
    output.read_to_end(&mut nothing).unwrap();
}
