//! Why a run does not end, and what a child waits for.
#![cfg(target_os = "linux")]

mod common;

use std::io::{ErrorKind, Read as _};
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::stopped;
use common::sys::refusals::Refusals;
use procwright::explain::{Verdict, WaitKind};
use procwright::{Cancel, Command, Error, Event, Output, Reason, Report, Stdin, pipeline};
use test_support::{alone, skip};

const SECOND: Duration = Duration::from_secs(1);

/// A program that reads a pipe which the test holds, and the end to write.
fn reader(line: &str) -> (Command<'static>, OwnedFd) {
    let (theirs, ours) = std::io::pipe().unwrap();
    let stdin = Stdin::Fd(Arc::new(theirs.into()));
    (Command::shell(line).stdin(stdin), ours.into())
}

/// A run that was stopped by a limit, and of which it was found out in time why it did not end:
/// on a busy machine that takes a longer limit.
fn explained(run: impl Fn(Duration) -> Output, wanted: impl Fn(&Report) -> bool) -> Output {
    let run = |limit| {
        let output = run(limit);
        assert_eq!(
            output.report.why().is_some(),
            output.explain().contains("\n  why: ")
        );
        output
    };
    in_time(run, |output| wanted(&output.report))
}

/// What `run` gives with a limit that leaves enough time.
fn in_time<T>(run: impl Fn(Duration) -> T, wanted: impl Fn(&T) -> bool) -> T {
    let limits = [1, 2, 4, 8, 20].map(|times| SECOND * times);
    let found = limits.into_iter().map(run).find(wanted);
    found.expect("a look is over within 5 s, a quarter of the longest limit")
}

/// The shell may not have come to its reader when it is looked at.
fn waits_for_input(report: &Report) -> bool {
    let why = report.why();
    why.is_some_and(|why| why.contains("waits for input on stdin, pipe "))
}

#[test]
fn a_timeout_says_that_it_waits_for_input() {
    let run = |limit| {
        let (command, _ours) = reader("cat; true");
        stopped(command.timeout(limit).run())
    };
    let output = explained(run, waits_for_input);
    assert_eq!(output.report.reason, Reason::Timeout);
    let waiting = output.report.diagnosis.as_ref().unwrap().waiting.clone();
    assert_eq!(waiting.unwrap().kind, WaitKind::Input);
    let why = output.report.why().unwrap();
    assert!(
        why.starts_with("cat (") && why.contains("waits for input on stdin, pipe"),
        "{why}"
    );
    let text = output.explain();
    assert!(text.contains(&format!("\n  why: {why}\n")), "{text}");
}

#[test]
fn an_idle_timeout_says_so_of_the_silence_alone() {
    let run = |limit| {
        let (command, _ours) = reader("echo word; exec cat");
        stopped(command.idle_timeout(limit).run())
    };
    let output = explained(run, waits_for_input);
    assert_eq!(output.report.reason, Reason::IdleTimeout);
    assert_eq!(output.stdout, b"word\n");
    let why = output.report.why().unwrap();
    assert!(why.contains("waits for input on stdin"), "{why}");
}

#[test]
fn a_held_child_that_comes_to_its_limit_says_why() {
    let stopped = |command: Command<'_>| {
        let mut child = command.spawn().unwrap();
        // Its output is read elsewhere, as by a caller who does nothing but that.
        let mut output = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_end(&mut output).unwrap();
        child.wait(None).unwrap();
        child.report().unwrap()
    };
    let timeout = in_time(
        |limit| {
            let (command, _ours) = reader("cat; true");
            stopped(command.timeout(limit))
        },
        waits_for_input,
    );
    assert_eq!(timeout.reason, Reason::Timeout);
    let text = timeout.explain(b"");
    let why = format!("\n  why: {}\n", timeout.why().unwrap());
    assert!(text.contains(&why), "{text}");
    let silence = in_time(
        |limit| {
            let (command, _ours) = reader("echo word; exec cat");
            stopped(command.idle_timeout(limit))
        },
        waits_for_input,
    );
    assert_eq!(silence.reason, Reason::IdleTimeout);
    assert_eq!(silence.stdout_info.unwrap().bytes, 5);
}

#[test]
fn children_that_come_to_one_limit_are_looked_at_together() {
    let run = |limit| {
        let begun: Vec<_> = (0..8)
            .map(|_| {
                let (command, ours) = reader("exec cat");
                (command.timeout(limit).spawn().unwrap(), ours)
            })
            .collect();
        let reports = begun.into_iter().map(|(child, _ours)| {
            child.wait(None).unwrap();
            child.report().unwrap()
        });
        reports.collect::<Vec<_>>()
    };
    for report in in_time(run, |reports| reports.iter().all(waits_for_input)) {
        // Each has its own, of itself.
        let begin = format!("cat ({}) waits for input on stdin", report.pid);
        let why = report.why().unwrap();
        assert!(why.starts_with(&begin), "{why}");
    }
}

#[test]
fn a_pipeline_says_which_stage_holds_up_the_rest_and_why() {
    let run = |limit| {
        let (command, _ours) = reader("cat; true");
        let pipeline = command.pipe(Command::new("cat")).pipe(Command::new("wc"));
        match pipeline.timeout(limit).run() {
            Err(pipeline::Error::Stopped(output)) => *output,
            other => panic!("{other:?}"),
        }
    };
    let output = in_time(run, |output| {
        waits_for_input(&output.report.stages[0].report)
    });
    let text = output.explain();
    let why = output.report.stages[0].report.why().unwrap();
    assert!(why.starts_with("cat ("), "{why}");
    let begin = "\n  stage 1 of 3 held up the rest: /bin/sh -c 'cat; true' timed out after ";
    assert!(text.contains(begin), "{text}");
    assert!(text.contains(&format!("\n    why: {why}\n")), "{text}");
    // Those that wait for it are not to blame.
    assert_eq!(text.matches("why: ").count(), 1, "{text}");
}

#[test]
fn what_is_well_needs_no_words() {
    let sleep = |limit| stopped(Command::new("sleep").arg("600").timeout(limit).run());
    let output = explained(sleep, |report| report.diagnosis.is_some());
    assert_eq!(output.report.why(), None);
    assert!(!output.explain().contains("why:"), "{}", output.explain());
}

#[test]
fn a_short_limit_and_an_end_in_time_have_no_examination() {
    let limit = Duration::from_millis(50);
    let output = stopped(Command::new("sleep").arg("600").timeout(limit).run());
    assert!(output.report.diagnosis.is_none());
    let output = Command::new("true").timeout(SECOND).run().unwrap();
    assert!(output.report.diagnosis.is_none());
}

#[test]
fn the_caller_is_told_while_it_goes_on() {
    let (command, ours) = reader("cat; exit 3");
    let (tell, told) = mpsc::channel();
    let mut ours = Some(ours);
    let output = command
        .explain_after(Duration::from_millis(300))
        .on_event(move |event| {
            tell.send(event.clone())?;
            // Now its input ends, and with it the program.
            drop(ours.take());
            Ok(())
        })
        .run()
        .unwrap();
    assert_eq!(output.status().code(), Some(3));
    let events: Vec<Event> = told.iter().collect();
    let [
        Event::Explained {
            command,
            after,
            diagnosis,
        },
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!(
        (command.as_str(), *after),
        ("/bin/sh -c 'cat; exit 3'", Duration::from_millis(300))
    );
    let diagnosis = diagnosis.as_ref().unwrap();
    assert!(
        diagnosis
            .processes
            .iter()
            .any(|one| one.pid == output.report.pid)
    );
    let text = events[0].to_string();
    assert!(
        text.starts_with("/bin/sh -c 'cat; exit 3' has not ended after 0.3 s: "),
        "{text}"
    );
    assert!(text.contains("Looked twice"), "{text}");
}

alone! {
    fn a_look_that_the_system_refuses_is_told_of_at_once() {
        let Some(refusals) = Refusals::of(&[libc::SYS_eventfd2]) else {
            return skip("a_look_that_the_system_refuses_is_told_of_at_once", "no filter may be set here");
        };
        let mut told_of = 0;
        for at in 0.. {
            let (tell, told) = mpsc::channel();
            let enough = Cancel::new().unwrap();
            let ends = enough.clone();
            // Nothing else wakes the run up.
            let command = Command::new("sleep").arg("100000").cancel_on(&enough);
            let command = command.explain_after(Duration::from_millis(20)).on_event(move |event| {
                tell.send(event.clone())?;
                ends.cancel();
                Ok(())
            });
            refusals.refuse(at, libc::EMFILE);
            let result = command.run();
            let refused = refusals.end();
            let [Event::Explained { diagnosis, .. }] = &told.iter().collect::<Vec<_>>()[..] else {
                assert!(matches!(result, Err(Error::Spawn { .. })), "{refused:?}: {result:?}");
                continue;
            };
            match (diagnosis, refused) {
                (Err(_), Some(_)) => told_of += 1,
                (Ok(_), None) => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(told_of > 0, "by what is it woken up?");
    }
}

#[test]
fn nothing_is_told_of_a_run_that_is_over_first() {
    let (tell, told) = mpsc::channel();
    let output = Command::new("true")
        .explain_after(Duration::from_secs(600))
        .on_event(move |event| Ok(tell.send(event.clone())?))
        .run()
        .unwrap();
    assert!(output.success());
    assert_eq!(told.iter().count(), 0);
}

#[test]
fn a_stop_does_not_wait_for_a_look() {
    let enough = Cancel::new().unwrap();
    let (command, _ours) = reader("cat");
    enough.cancel();
    // It begins at once, and the cancel is there before it.
    let refused = command
        .explain_after(Duration::ZERO)
        .cancel_on(&enough)
        .run();
    assert!(
        matches!(refused, Err(Error::Cancelled { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_child_that_is_held_is_asked_instead() {
    let refused = Command::new("true").explain_after(SECOND).spawn();
    let text = refused.unwrap_err().to_string();
    assert!(
        text.contains("explain_after") && text.contains("waiting_for()"),
        "{text}"
    );

    let mut child = Command::new("cat").stdin(Stdin::Pipe).spawn().unwrap();
    let waiting = loop {
        let waiting = child.waiting_for().unwrap();
        if waiting.kind == WaitKind::Input {
            break waiting;
        }
    };
    assert_eq!(waiting.pid, child.pid());
    // A test beside this one may be at its fork, and have the end to write for a moment.
    assert!(
        waiting
            .holders
            .iter()
            .any(|one| one.pid == std::process::id().cast_signed())
    );
    let diagnosis = child.explain().unwrap();
    assert_eq!(diagnosis.verdict, Verdict::Healthy);
    let text = child.explain_timeout(SECOND, b"");
    assert!(text.contains("\n  why: cat ("), "{text}");
    let text = child.explain_timeout(Duration::from_millis(10), b"");
    assert!(!text.contains("why:"), "{text}");
    drop(child.stdin.take());
    child.wait(None).unwrap();
    let over = child.waiting_for().unwrap();
    assert_eq!(over.text, format!("cat ({}) has ended", child.pid()));
    assert_eq!(child.explain().unwrap_err().kind(), ErrorKind::NotFound);
}
