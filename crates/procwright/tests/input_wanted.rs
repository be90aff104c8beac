//! Who asks for it is told that a program waits for input, once for each prompt.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use procwright::explain::{WaitKind, Waiting};
use procwright::terminal::Size;
use procwright::{Cancel, Child, Command, Event, Stdin, Until};
use test_support::watchdog;

type Told = (Waiting, Option<String>);

/// Starts `command`, and gives what it tells of waits for input.
fn spawn(command: Command<'static>) -> (Child, Receiver<Told>) {
    let (tell, told) = channel();
    let command = command.input_wanted().on_stream_event(move |event| {
        if let Event::InputWanted {
            waiting, prompt, ..
        } = event
        {
            let _ = tell.send(((**waiting).clone(), prompt.clone()));
        }
    });
    (command.spawn().expect("it starts"), told)
}

fn answer(child: &mut Child, line: &str) {
    let stdin = child.stdin.as_mut().expect("a pipe or a terminal");
    stdin.write_all(line.as_bytes()).expect("it reads");
    stdin.flush().expect("it reads");
}

#[test]
fn a_child_with_a_terminal_tells_each_prompt_once() {
    let _watchdog = watchdog("input_wanted");
    let script = "printf 'Name: '; read name; printf 'Age of %s: ' \"$name\"; read age; read more";
    let command = Command::shell(script)
        .pty(Size::default())
        .stdin(Stdin::Pipe);
    let (mut child, told) = spawn(command);
    let (waiting, prompt) = told.recv().expect("the first prompt");
    assert_eq!((waiting.kind, waiting.terminal), (WaitKind::Input, true));
    assert_eq!(waiting.pid, child.pid());
    assert_eq!(prompt.as_deref(), Some("Name: "));
    // It waits on, and is looked at again meanwhile.
    let again = told.recv_timeout(Duration::from_secs(1));
    assert!(again.is_err(), "{again:?}");
    answer(&mut child, "Ada\n");
    let (_, prompt) = told.recv().expect("the second prompt");
    assert_eq!(prompt.as_deref(), Some("Age of Ada: "));
    answer(&mut child, "36\n");
    // The third asks nothing, and the line is finished by the echo.
    let (_, prompt) = told.recv().expect("the third wait");
    assert_eq!(prompt, None);
    answer(&mut child, "\n");
    assert_eq!(
        child
            .wait(None)
            .expect("it ends")
            .and_then(|exit| exit.code()),
        Some(0)
    );
    drop(child);
    assert!(told.recv().is_err(), "nothing more is told");
}

#[test]
fn a_child_that_is_silent_is_noticed_each_time() {
    let _watchdog = watchdog("input_wanted");
    let command = Command::shell("read one; read two").stdin(Stdin::Pipe);
    let (mut child, told) = spawn(command);
    for _ in 0..2 {
        let (waiting, prompt) = told.recv().expect("a wait");
        assert_eq!(
            (waiting.fd, waiting.terminal, prompt),
            (Some(0), false, None)
        );
        let own = std::process::id().cast_signed();
        assert!(
            waiting.holders.iter().any(|one| one.pid == own),
            "{waiting:?}"
        );
        answer(&mut child, "\n");
    }
    child.wait(None).expect("it ends");
    drop(child);
    assert!(told.recv().is_err(), "nothing more is told");
}

#[test]
fn a_prompt_after_a_long_silence_is_told_soon() {
    let _watchdog = watchdog("input_wanted");
    // By then the next look would be some seconds away.
    let script = "sleep 3; printf 'Now? ' >&2; read answer";
    let (mut child, told) = spawn(Command::shell(script).stdin(Stdin::Pipe));
    let (_, prompt) = told.recv().expect("a wait");
    assert_eq!(prompt.as_deref(), Some("Now? "));
    answer(&mut child, "\n");
    child.wait(None).expect("it ends");
}

#[test]
fn who_has_timers_of_its_own_is_told_when_they_are_over() {
    let _watchdog = watchdog("input_wanted");
    for call in ["poll", "epoll"] {
        // Longer than the silence after which it is looked at for the first time.
        let command = Command::new(test_children::path());
        let command = command.args(["polls", call, "54", "700", "600"]);
        let (mut child, told) = spawn(command.pty(Size::default()).stdin(Stdin::Pipe));
        let (waiting, _) = told.recv().expect("a wait");
        assert_eq!((waiting.kind, waiting.terminal), (WaitKind::Input, true));
        answer(&mut child, "\n");
        child.wait(None).expect("it ends");
    }
}

#[test]
fn who_looks_now_and_then_is_not_told() {
    let _watchdog = watchdog("input_wanted");
    for limit in ["1", "300"] {
        let command = Command::new(test_children::path());
        let command = command.args(["polls", "poll", limit, "--again"]);
        let (mut child, told) = spawn(command.pty(Size::default()).stdin(Stdin::Pipe));
        let event = told.recv_timeout(Duration::from_secs(2));
        assert!(event.is_err(), "{limit}: {event:?}");
        answer(&mut child, "\n");
        child.wait(None).expect("it ends");
    }
}

#[test]
fn a_run_tells_its_hook() {
    let _watchdog = watchdog("input_wanted");
    let (reader, mut writer) = io::pipe().expect("a pipe");
    let (tell, told) = channel();
    let answers = move |event: &Event| {
        tell.send(event.clone())?;
        Ok(writer.write_all(b"yes\n")?)
    };
    let output = Command::shell("printf 'Go on? '; read answer; echo $answer")
        .stdin(Stdin::Fd(std::sync::Arc::new(reader.into())))
        .input_wanted()
        .on_event(answers)
        .run()
        .expect("it ends by itself");
    assert_eq!(output.stdout, b"Go on? yes\n");
    let event = told.recv().expect("one was told");
    let text = event.to_string();
    let begin =
        "/bin/sh -c 'printf '\\''Go on? '\\''; read answer; echo $answer' wants input: sh (";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.contains(", and asks: \"Go on? \""), "{text}");
    assert!(told.recv().is_err(), "one alone was told");
}

#[test]
fn what_waits_for_something_else_is_not_told() {
    let _watchdog = watchdog("input_wanted");
    for script in [
        "sleep 600",
        "sleep 600 | cat",
        "while :; do :; done",
        "while :; do sleep 0.02; done",
        "printf 'Password: '; sleep 600",
    ] {
        let (tell, told) = channel();
        let enough = Cancel::new().expect("a cancel");
        let cancel = enough.clone();
        let run = std::thread::spawn(move || {
            Command::shell(script)
                .stdin(Stdin::Null)
                .until(Until::Exit)
                .input_wanted()
                .on_event(move |event| Ok(tell.send(event.clone())?))
                .cancel_on(&cancel)
                .stopped_is_ok()
                .run()
                .expect("it is stopped")
        });
        let event = told.recv_timeout(Duration::from_secs(1));
        enough.cancel();
        run.join().expect("no panic");
        assert!(event.is_err(), "{script}: {event:?}");
    }
}

#[test]
fn the_output_of_a_run_is_as_without_it() {
    let output = Command::shell("printf one; printf two >&2")
        .stderr(procwright::Sink::Null)
        .input_wanted()
        .run()
        .expect("it ends");
    assert_eq!((&*output.stdout, &*output.stderr), (&b"one"[..], &b""[..]));
}

#[test]
fn a_child_needs_somebody_to_be_told() {
    let refused = Command::new("true").input_wanted().spawn();
    let text = refused.expect_err("nobody listens").to_string();
    assert!(
        text.contains("input_wanted") && text.contains("on_stream_event"),
        "{text}"
    );
}

/// They ask at the same time, and share a thread and a look.
#[test]
fn each_of_many_that_ask_at_once_is_told() {
    let _watchdog = watchdog("input_wanted");
    let script = "printf 'Name: '; read name; [ \"$name\" = Ada ]";
    let mut children: Vec<_> = (0..20)
        .map(|_| spawn(Command::shell(script).stdin(Stdin::Pipe)))
        .collect();
    for (child, told) in &children {
        let (waiting, prompt) = told.recv().expect("a wait");
        assert_eq!(waiting.pid, child.pid());
        assert_eq!(prompt.as_deref(), Some("Name: "));
    }
    for (child, _) in &mut children {
        answer(child, "Ada\n");
        let exit = child.wait(None).expect("it ends").expect("its end");
        assert!(exit.success(), "{exit}");
    }
    for (child, told) in children {
        drop(child);
        assert!(told.recv().is_err(), "one alone was told");
    }
}
