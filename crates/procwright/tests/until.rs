//! The end of a run, and the processes that still hold its pipes then.

mod common;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use test_support::alone;

use common::{Census, child, shared, stopped, sys};
use procwright::process::Stop;
use procwright::time::Deadline;
use procwright::{Command, Event, Reason, Sink, StreamInfo, Until};
use test_children::{FLOOD_BYTE, OWN_BYTE};

fn holders(info: &Option<StreamInfo>) -> Vec<i32> {
    let info = info.as_ref().unwrap();
    assert!(info.held_by_complete || !common::sees_everyone());
    info.held_by.iter().map(|holder| holder.pid).collect()
}

alone! {
    fn until_exit_does_not_wait_for_holders() {
        let before = Census::now();
        for extra in [&[][..], &["--setsid"], &["--double-fork"], &["--setsid", "--double-fork"]] {
            let args = [&["fork-holder", "0", "--print-ready", "--say", "all of it"], extra].concat();
            let output = child(&args).until(Until::Exit).run().unwrap();
            let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
            assert!(output.success() && output.stdout.ends_with(b"all of it\n"));
            // The holder goes on, and it is named.
            assert!(common::lives(holder));
            assert_eq!(holders(&output.report.stdout_info), [holder], "{extra:?}");
            assert_eq!(holders(&output.report.stderr_info), [holder], "{extra:?}");
            let info = output.report.stdout_info.unwrap();
            assert_eq!(info.held_by[0].name, "test-child");
            assert!(info.complete);
            // Both streams are held by one process, which can be signalled.
            let process = info.held_by[0].process().unwrap();
            assert_eq!(process.pid(), holder);
            assert!(process.is_alive());
            sys::end(holder);
            assert!(info.held_by[0].process().is_err());
        }
        // No process holds the pipe: none is named.
        let output = child(&["echo", "x"]).until(Until::Exit).run().unwrap();
        assert!(holders(&output.report.stdout_info).is_empty());
        before.unchanged();
    }
}

alone! {
    fn until_exit_has_all_that_the_program_wrote() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let pidfile = dir.path().join("pid");
        for own in [0_u64, 1, 4096, 50_000, 1_000_000] {
            let output = child(&["fork-flooder", "--own", &own.to_string(), "--pidfile", pidfile.to_str().unwrap()])
                .until(Until::Exit)
                .run()
                .unwrap();
            assert!(output.success());
            let count = |byte| output.stdout.iter().filter(|b| **b == byte).count() as u64;
            assert_eq!(count(OWN_BYTE), own);
            assert_eq!(count(OWN_BYTE) + count(FLOOD_BYTE), output.stdout.len() as u64);
            assert!(output.report.stdout_info.unwrap().complete);
        }
        before.unchanged();
    }
}

alone! {
    fn until_exit_returns_under_many_flooders_of_both_streams() {
        // Enough writers that neither pipe is ever found empty, and enough volume for a
        // second reader, which must end all the same.
        let before = Census::now();
        for _ in 0..3 {
            let output = child(&["fork-flooders", "6", "--own", "400K"]).until(Until::Exit).run().unwrap();
            assert!(output.success());
            for bytes in [&output.stdout, &output.stderr] {
                assert_eq!(bytes.iter().filter(|byte| **byte == OWN_BYTE).count(), 400 << 10);
            }
        }
        before.unchanged();
    }
}

const SILENCE: Duration = Duration::from_millis(300);
/// Longer than any test.
const ENDLESS: Duration = Duration::from_secs(3600);

alone! {
    fn until_silent_does_not_wait_for_a_silent_holder() {
        let before = Census::now();
        let (output, took) = common::timed(|| {
            child(&["fork-holder", "0", "--print-ready", "--say", "all of it"])
                .until(Until::Silent(SILENCE))
                .run()
                .unwrap()
        });
        let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
        assert!(took >= SILENCE);
        assert!(output.success() && output.stdout.ends_with(b"all of it\n"));
        assert_eq!(output.report.reason, Reason::Finished);
        assert!(common::lives(holder));
        for info in [&output.report.stdout_info, &output.report.stderr_info] {
            assert_eq!(holders(info), [holder]);
            assert!(info.as_ref().unwrap().complete);
        }
        sys::end(holder);
        before.comes_back();
    }
}

#[test]
fn a_silence_before_the_exit_does_not_count() {
    // The program is silent for twice as long as would do after all that was said.
    let line = format!("sleep 60 & echo $!; sleep {}", (2 * SILENCE).as_secs_f64());
    let (output, took) = common::timed(|| sh(&line).until(Until::Silent(SILENCE)).run().unwrap());
    assert!(took >= 3 * SILENCE, "{took:?}");
    assert!(!output.stdout.is_empty());
    sys::end(pid_in(&output.stdout));
}

#[test]
fn what_comes_after_the_exit_is_waited_for_and_begins_the_silence_anew() {
    let line = format!(
        "(sleep {0}; echo late >&2; sleep 60 & echo $!) & echo early",
        SILENCE.as_secs_f64()
    );
    // Ten times as long as the pause before the late words.
    let silence = 10 * SILENCE;
    let (output, took) = common::timed(|| sh(&line).until(Until::Silent(silence)).run().unwrap());
    assert!(output.stdout.starts_with(b"early\n"));
    assert_eq!(output.stderr, b"late\n");
    assert!(took >= SILENCE + silence, "{took:?}");
    sys::end(pid_in(&output.stdout["early\n".len()..]));
}

#[test]
fn output_that_goes_on_is_bounded_by_the_timeout_alone() {
    // Never silent for as long as a look takes.
    let line = "while :; do echo more; done & exit 0";
    let output = common::in_time(2 * SILENCE, |timeout| {
        let (result, took) = common::timed(|| {
            sh(line)
                .until(Until::Silent(ENDLESS))
                .timeout(timeout)
                .limit(procwright::Limit {
                    bytes: 100,
                    beyond: procwright::Beyond::HeadAndTail,
                })
                .run()
        });
        let output = stopped(result);
        assert!(took >= timeout);
        assert_eq!(output.report.reason, Reason::Timeout);
        (output.report.status.code() == Some(0)).then_some(output)
    });
    let text = output.report.explain(b"");
    assert!(
        text.contains("hint: the program had exited; until(Until::Exit) does not wait"),
        "{text}"
    );
}

#[test]
fn streams_at_their_end_are_silent() {
    // The silence would never be over.
    for line in [
        "echo x",
        "exec >&- 2>&-; sleep 0.1",
        "echo x; exec >&-; sleep 0.1",
    ] {
        let output = sh(line).until(Until::Silent(ENDLESS)).run().unwrap();
        assert!(output.success());
        assert_eq!(output.report.reason, Reason::Finished);
    }
}

#[test]
fn an_idle_timeout_counts_until_the_exit() {
    // It is shorter than the silence, which comes after the exit.
    let output = sh("sleep 60 & echo $!")
        .until(Until::Silent(10 * SILENCE))
        .idle_timeout(9 * SILENCE)
        .run()
        .unwrap();
    assert_eq!(output.report.reason, Reason::Finished);
    sys::end(pid_in(&output.stdout));
    let output = stopped(
        sh("sleep 60")
            .until(Until::Silent(SILENCE))
            .idle_timeout(SILENCE)
            .run(),
    );
    assert_eq!(output.report.reason, Reason::IdleTimeout);
}

#[test]
fn a_slow_callback_is_no_silence() {
    // The queue of the callback is full long before the silence is over: what waits in the
    // pipe behind it is not lost.
    let line = "(head -c 40000000 /dev/zero; exec sleep 60) & echo $!";
    let count = shared(0_u64);
    let counted = count.clone();
    let mut first = true;
    let output = sh(line)
        .until(Until::Silent(SILENCE))
        .on_stdout_line(move |bytes| {
            if std::mem::take(&mut first) {
                pause(4 * SILENCE);
            }
            *counted.lock().unwrap() += bytes.len() as u64;
            Ok(())
        })
        .run()
        .unwrap();
    let info = output.report.stdout_info.unwrap();
    assert_eq!(*count.lock().unwrap(), info.bytes);
    assert!(info.bytes > 40_000_000, "{}", info.bytes);
    // The number may come before the zeros, behind them, or in between.
    let words: Vec<u8> = output
        .stdout
        .into_iter()
        .filter(|byte| *byte != 0)
        .collect();
    sys::end(pid_in(&words));
}

#[test]
fn who_goes_on_talking_is_told_of_after_the_silence_and_a_second() {
    let told = shared(None);
    let note = told.clone();
    let (result, took) = common::timed(|| {
        sh("while :; do echo more; done & exit 0")
            .until(Until::Silent(SILENCE))
            .limit(procwright::Limit {
                bytes: 100,
                beyond: procwright::Beyond::HeadAndTail,
            })
            .on_event(move |event| {
                *note.lock().unwrap() = Some(event.to_string());
                Err("enough".into())
            })
            .run()
    });
    assert!(result.is_err());
    assert!(took >= SILENCE + Duration::from_secs(1));
    let text = told.lock().unwrap().take().unwrap();
    assert!(
        text.contains("waiting for that to end, or to say nothing for 0.3 s ("),
        "{text}"
    );
}

#[test]
fn a_silence_that_cannot_be_is_refused() {
    let refused = |command: Command<'_>| match command.run() {
        Err(procwright::Error::Invalid(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let text = refused(sh("exit 0").until(Until::Silent(Duration::ZERO)));
    assert!(
        text.starts_with("until is a silence of no time: say exit"),
        "{text}"
    );
    let unseen = sh("exit 0").stdout(Sink::Null).stderr(Sink::Null);
    let text = refused(unseen.until(Until::Silent(SILENCE)));
    assert!(text.starts_with("until needs a captured stream"), "{text}");
}

/// A callback that takes its time.
fn pause(time: Duration) {
    let until = Deadline::at(Instant::now() + time);
    let _ = procwright_os::poll::poll(&mut [], until);
}

fn sh(line: &str) -> Command<'static> {
    Command::new("sh").args(["-c", line])
}

/// The number in the first line.
fn pid_in(text: &[u8]) -> i32 {
    let line = text.split(|byte| *byte == b'\n').next().unwrap();
    str::from_utf8(line).unwrap().parse().unwrap()
}

alone! {
    fn until_eof_says_after_a_second_who_holds() {
        let before = Census::now();
        let events = shared(Vec::new());
        let told = events.clone();
        let (output, took) = common::timed(|| {
            child(&["fork-holder", "0", "--print-ready", "--say", "own"])
                .on_event(move |event| {
                    let Event::Held { command, streams, holders, complete, .. } = event else { panic!("{event:?}") };
                    assert!(command.contains("fork-holder"));
                    assert_eq!(streams, "stdout and stderr");
                    assert!(*complete || !common::sees_everyone());
                    assert!(event.to_string().ends_with("(until(Until::Exit) would not wait)"));
                    told.lock().unwrap().extend(holders.iter().map(|holder| holder.pid));
                    for holder in holders { sys::end(holder.pid); }
                    Ok(())
                })
                .run()
                .unwrap()
        });
        assert!(took >= Duration::from_secs(1));
        assert_eq!(*events.lock().unwrap(), common::ready_pids(&output.stdout));
        assert!(output.success() && output.stdout.ends_with(b"own\n"));
        assert_eq!(output.report.reason, Reason::Finished);
        before.comes_back();
    }
}

alone! {
    fn until_eof_waits_for_holders() {
        let (output, took) = common::timed(|| child(&["fork-holder", "300", "--say", "x"]).run().unwrap());
        assert!(output.success() && took >= Duration::from_millis(300));
        let info = output.report.stdout_info.unwrap();
        assert!(info.complete && info.held_by.is_empty());
    }
}

alone! {
    fn until_eof_ends_at_the_timeout_and_names_the_holder() {
        let before = Census::now();
        let told = shared(0);
        let run = |timeout| {
            let count = told.clone();
            let (result, took) = common::timed(|| {
                child(&["fork-holder", "0", "--print-ready", "--say", "own"])
                    .timeout(timeout)
                    .stop(Stop::new().with_grace(Duration::from_millis(50)))
                    .on_event(move |_| {
                        *count.lock().unwrap() += 1;
                        Ok(())
                    })
                    .run()
            });
            let output = stopped(result);
            assert!(took >= timeout);
            output
        };
        // The event comes a second after the exit: not within the first time, in which a busy
        // machine may not even come to the program.
        let ends_well = |output: &procwright::Output| output.stdout.ends_with(b"own\n");
        let first = (0..10).map(|_| run(Duration::from_millis(900))).find(ends_well).unwrap();
        assert_eq!(*told.lock().unwrap(), 0);
        let second = common::in_time(Duration::from_secs(3), |timeout| {
            Some(run(timeout)).filter(|_| *told.lock().unwrap() == 1)
        });
        for output in [first, second] {
            let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
            assert_eq!(output.report.reason, Reason::Timeout);
            // The program itself had ended well.
            assert_eq!(output.report.status.code(), Some(0));
            assert!(output.stdout.ends_with(b"own\n"));
            for info in [&output.report.stdout_info, &output.report.stderr_info] {
                assert_eq!(holders(info), [holder]);
                assert!(!info.as_ref().unwrap().complete);
            }
            assert!(!common::lives(holder) && output.report.survivors.is_empty());
            let text = output.report.explain(b"");
            assert!(text.contains(&format!("held open by test-child (pid {holder})")), "{text}");
            assert!(text.contains("hint: the program had exited; until(Until::Exit) does not wait"), "{text}");
        }
        before.comes_back();
    }
}

alone! {
    fn who_holds_is_not_claimed_where_nobody_could_look() {
        // No descriptor is left for a look through /proc.
        let limit = sys::nofile();
        let fill = shared(Vec::new());
        let filler = fill.clone();
        let output = child(&["fork-holder", "0", "--print-ready"])
            .until(Until::Exit)
            .on_stdout_line(move |_| {
                sys::set_nofile(60);
                filler.lock().unwrap().extend(std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()));
                Ok(())
            })
            .run()
            .unwrap();
        sys::set_nofile(limit);
        fill.lock().unwrap().clear();
        let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
        sys::end(holder);
        let info = output.report.stdout_info.unwrap();
        // A look before the descriptors were gone has found the holder.
        assert!(!info.held_by_complete || info.held_by[0].pid == holder, "{info:?}");
    }
}

alone! {
    fn nobody_is_named_because_of_a_start_elsewhere() {
        // A child of another thread has copies of our pipes between clone and exec; it
        // is not a holder.
        let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| {
            for _ in 0..common::scaled(60, 1000) {
                let output = child(&["exit", "0"]).until(Until::Exit).run().unwrap();
                let info = output.report.stdout_info.unwrap();
                assert!(info.held_by.is_empty(), "{info:?}");
            }
        })).collect();
        for thread in threads { thread.join().unwrap(); }
    }
}

#[test]
fn a_pidfd_names_a_process() {
    // The other tests rely on this.
    let mine = i32::try_from(std::process::id()).unwrap();
    assert!(
        sys::pidfd(mine)
            .unwrap()
            .as_fd()
            .try_clone_to_owned()
            .is_ok()
    );
    assert!(common::lives(mine) && !common::lives(i32::MAX));
}
