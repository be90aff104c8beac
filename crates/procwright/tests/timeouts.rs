//! Deadlines, idleness, cancelling, and the text of the error then.

mod common;

use std::sync::mpsc;
use std::time::Duration;
use test_support::alone;

use bytes::Bytes;
use common::{Census, child, stopped};
use procwright::process::Stop;
use procwright::time::Timeout;
use procwright::{Cancel, Error, Reason, StdStream};

fn soon() -> Stop {
    Stop::new().with_grace(Duration::from_millis(20))
}

alone! {
    fn odd_timeouts() {
        let before = Census::now();
        for secs in [0.0, -0.0, -1.0, f64::NEG_INFINITY, 1e-9, 1e-300, 0.001] {
            let timeout = Timeout::from_secs_f64(secs).unwrap();
            let output = stopped(child(&["sleep-forever"]).timeout(timeout).stop(soon()).run());
            assert_eq!(output.report.reason, Reason::Timeout, "{secs}");
            let output = stopped(child(&["sleep-forever"]).idle_timeout(timeout).stop(soon()).run());
            assert_eq!(output.report.reason, Reason::IdleTimeout, "{secs}");
            assert!(!common::lives(output.report.pid));
        }
        for secs in [f64::INFINITY, 1e10, 1e18, 1e300, f64::MAX] {
            let timeout = Timeout::from_secs_f64(secs).unwrap();
            let output = child(&["echo", "x"]).timeout(timeout).idle_timeout(timeout).run().unwrap();
            assert_eq!(output.stdout, b"x\n", "{secs}");
        }
        let most = Duration::MAX;
        let stop = Stop::new().with_grace(most);
        let output = child(&["echo", "x"]).timeout(most).idle_timeout(most).stop(stop).run().unwrap();
        assert!(output.success());
        // An endless grace is one that a program may use.
        let output = stopped(child(&["sleep-forever"]).timeout(Duration::from_millis(10)).stop(stop).run());
        assert_eq!(output.report.reason, Reason::Timeout);
        // A grace of zero.
        let stop = Stop::new().with_grace(Duration::ZERO);
        stopped(child(&["ignore-term"]).timeout(Duration::from_millis(10)).stop(stop).run());
        assert!(Timeout::from_secs_f64(f64::NAN).is_err());
        before.comes_back();
    }
}

#[test]
fn an_expired_timeout_stops_even_a_quick_program() {
    let _dog = common::watchdog("an_expired_timeout_stops_even_a_quick_program");
    for _ in 0..30 {
        let output = stopped(child(&["exit", "0"]).timeout(Duration::ZERO).run());
        assert_eq!(output.report.reason, Reason::Timeout);
    }
}

#[test]
fn silence_is_counted_from_the_last_byte() {
    let _dog = common::watchdog("silence_is_counted_from_the_last_byte");
    // The run lasts longer than the idle timeout, but is never silent for as long. The
    // margin is for a busy machine.
    let idle = Duration::from_secs(2);
    for err in [&[][..], &["--err"]] {
        let (output, took) = common::timed(|| {
            child(&[&["trickle", "25", "100"], err].concat())
                .idle_timeout(idle)
                .run()
                .unwrap()
        });
        assert!(output.success() && took >= Duration::from_millis(2400));
    }
    common::in_time(Duration::from_millis(200), |limit| {
        let (result, took) = common::timed(|| {
            child(&["sleep-forever", "--print-ready"])
                .idle_timeout(limit)
                .stop(soon())
                .run()
        });
        let output = stopped(result);
        assert!(output.report.reason == Reason::IdleTimeout && took >= limit);
        output.stdout.starts_with(b"ready ").then_some(())
    });
}

#[test]
fn a_slow_callback_is_not_the_programs_silence() {
    let _dog = common::watchdog("a_slow_callback_is_not_the_programs_silence");
    let (keep, never) = mpsc::channel::<()>();
    let mut first = true;
    let output = child(&["flood", "--out", "40M"])
        .idle_timeout(Duration::from_secs(2))
        .on_stdout_line(move |_| {
            let _ = &keep;
            if std::mem::take(&mut first) {
                // No message comes, so this is a pause of known length.
                let _ = never.recv_timeout(Duration::from_secs(3));
            }
            Ok(())
        })
        .run()
        .unwrap();
    assert_eq!(
        (output.report.reason, output.stdout.len()),
        (Reason::Finished, 40 << 20)
    );
}

#[test]
fn a_callback_that_takes_its_time_after_the_end_is_no_silence() {
    let _dog = common::watchdog("a_callback_that_takes_its_time_after_the_end_is_no_silence");
    let (keep, never) = mpsc::channel::<()>();
    let output = child(&["echo", "a line"])
        .idle_timeout(Duration::from_secs(2))
        .on_stdout_line(move |_| {
            let _ = &keep;
            // The program has long ended, and its pipes with it.
            let _ = never.recv_timeout(Duration::from_secs(3));
            Ok(())
        })
        .run()
        .unwrap();
    assert_eq!(output.report.reason, Reason::Finished);
}

alone! {
    fn cancelling_from_another_thread() {
        let before = Census::now();
        {
            let cancel = Cancel::new().unwrap();
            // One cancel serves any number of runs, at any time, from any thread.
            let runs: Vec<_> = (0..6).map(|_| {
                let cancel = cancel.clone();
                std::thread::spawn(move || stopped(child(&["ignore-term"]).cancel_on(&cancel).stop(soon()).run()))
            }).collect();
            common::eventually(|| common::children().len() == 6);
            std::thread::spawn({ let cancel = cancel.clone(); move || cancel.cancel() }).join().unwrap();
            for run in runs {
                let output = run.join().unwrap();
                assert_eq!(output.report.reason, Reason::Cancelled);
                assert!(!common::lives(output.report.pid));
            }
            assert!(cancel.is_cancelled());
            // The cancel stays cancelled, and what comes after it is not started.
            let late = child(&["sleep-forever"]).cancel_on(&cancel).stop(soon()).run();
            assert!(matches!(late, Err(Error::Cancelled { .. })), "{late:?}");
        }
        before.comes_back();
    }
}

#[test]
fn the_error_names_process_pipe_and_holder() {
    let _dog = common::watchdog("the_error_names_process_pipe_and_holder");
    // The program is blocked reading: no input ever comes.
    let (limit, text, pid) = common::in_time(Duration::from_millis(300), |limit| {
        let (keep, never) = mpsc::channel::<Bytes>();
        let result = child(&["cat"])
            .stdin_iter(never.into_iter().map(Ok))
            .timeout(limit)
            .stop(soon())
            .run();
        let text = result.as_ref().unwrap_err().to_string();
        let pid = result.unwrap_err().output().unwrap().report.pid;
        drop(keep);
        let is_there = text.contains("blocked reading");
        is_there.then_some((limit.as_secs_f64(), text, pid))
    });
    for part in [
        "cat",
        &format!("timed out after {limit} s (stopped in "),
        &format!("test-child (pid {pid}): blocked reading stdin"),
    ] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    // The program is blocked writing: its output is not taken.
    let (text, pid) = common::in_time(Duration::from_secs(1), |limit| {
        let (keep, never) = mpsc::channel::<()>();
        let result = child(&["flood-forever", "--err"])
            .on_stderr_line(move |_| {
                let _ = never.recv();
                Ok(())
            })
            .tap_stream(StdStream::Stderr, Box::new(Takes(mpsc::channel().1)))
            .timeout(limit)
            .stop(soon())
            .run();
        let text = result.as_ref().unwrap_err().to_string();
        let pid = result.unwrap_err().output().unwrap().report.pid;
        drop(keep);
        text.contains("blocked writing").then_some((text, pid))
    });
    for part in [
        "flood-forever",
        &format!("test-child (pid {pid}): blocked writing to stderr (pipe full)"),
        "not taken",
    ] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    // The program is gone, and another process holds the pipe.
    let (text, holder) = common::in_time(Duration::from_millis(200), |limit| {
        let result = child(&["fork-holder", "0", "--print-ready", "--say", "x y"])
            .timeout(limit)
            .stop(soon())
            .run();
        let error = result.unwrap_err();
        let text = error.to_string();
        let is_over = text.contains("exited with code 0");
        is_over.then(|| (text, common::ready_pids(&error.output().unwrap().stdout)[0]))
    });
    for part in [
        "'x y'",
        "exited with code 0",
        &format!("stdout was held open by test-child (pid {holder})"),
        &format!("stderr was held open by test-child (pid {holder})"),
    ] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    // The error has the end of stderr, and how the program ended.
    let text = child(&["echo", "--stderr", "the last words"])
        .timeout(Duration::ZERO)
        .run()
        .unwrap_err()
        .to_string();
    assert!(text.contains("timed out"), "{text}");
    let text = child(&["no-such-subcommand"])
        .check()
        .run()
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("exited with code 125") && text.contains("no subcommand"),
        "{text}"
    );
}

/// A tap that takes one piece and then no more, until it is dropped.
struct Takes(mpsc::Receiver<()>);

impl procwright::Tap for Takes {
    fn piece(&mut self, _: procwright::Piece<'_>) -> Result<(), procwright::BoxError> {
        let _ = self.0.recv();
        Ok(())
    }
}

/// A watch that rings when the program is ready, and again as soon as the run is
/// stopping: a user who presses Ctrl-C twice.
struct Bell {
    rung: std::io::PipeReader,
    rope: std::io::PipeWriter,
}

impl procwright::Watch for Bell {
    fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.rung.as_fd()
    }

    fn ready(
        &mut self,
        run: procwright::Moment<'_>,
    ) -> Result<procwright::Demand, procwright::BoxError> {
        use std::io::{Read, Write};
        self.rung.read_exact(&mut [0])?;
        if !run.stopping {
            self.rope.write_all(b"!")?;
        }
        Err("the user".into())
    }
}

alone! {
    fn a_watch_stops_and_comes_through() {
        let before = Census::now();
        let (rung, rope) = std::io::pipe().unwrap();
        let mut pull = rope.try_clone().unwrap();
        // The grace outlasts the watchdog: the second ring has to end it.
        let result = child(&["ignore-term", "--print-ready"])
            .stop(Stop::new().with_grace(Duration::from_secs(1_000_000)))
            .on_stdout_line(move |_| Ok(std::io::Write::write_all(&mut pull, b"!")?))
            .watch(Bell { rung, rope })
            .run();
        let Err(Error::Foreign { what, source, output, .. }) = result else { panic!("{result:?}") };
        assert_eq!((what, source.to_string().as_str()), (procwright::Foreign::Watch, "the user"));
        assert!(!common::lives(output.report.pid));
        before.comes_back();
    }
}
