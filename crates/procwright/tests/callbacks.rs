//! Callbacks that take their time, or never return: no deadline waits for them, and they
//! have as much time as a stop gives the program.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use common::{child, shared, stopped, sys};
use procwright::process::{Exit, Stop};
use procwright::stream::{Framing, LineTooLong, TooLong};
use procwright::{Command, Error, Foreign, Overflow, Reason};
use test_support::{Census, alone, forked};

/// A gate that callbacks wait at until it is dropped, and whether one has passed it.
struct Gate {
    _keep: mpsc::Sender<()>,
    passed: Arc<AtomicBool>,
}

impl Gate {
    /// The gate, and what waits at it.
    fn new() -> (Gate, impl FnMut() + Send + 'static) {
        let (keep, closed) = mpsc::channel::<()>();
        let passed = Arc::new(AtomicBool::new(false));
        let through = Arc::clone(&passed);
        let wait = move || {
            let _ = closed.recv();
            through.store(true, Ordering::SeqCst);
        };
        let _keep = keep;
        (Gate { _keep, passed }, wait)
    }

    fn has_let_through(&self) -> bool {
        self.passed.load(Ordering::SeqCst)
    }
}

/// What forks when it is called first, and waits for that fork, which returns from the
/// callback. The status of its end is told; if it is called back again, that is code 3.
fn forker() -> (mpsc::Receiver<i32>, impl FnMut() -> bool + Send + 'static) {
    let (tell, told) = mpsc::channel();
    let mut forked = None;
    let fork = move || {
        match forked {
            None => {
                let pid = forked::fork();
                forked = Some(pid);
                if pid > 0 {
                    tell.send(sys::reap(pid)).unwrap();
                }
            }
            Some(0) => forked::exit(3),
            Some(_) => {}
        }
        forked == Some(0)
    };
    (told, fork)
}

/// A pause of a known length: no message comes.
fn pause(milliseconds: u64) {
    let (_keep, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(Duration::from_millis(milliseconds));
}

fn holder() -> Command<'static> {
    child(&["fork-holder", "0", "--print-ready"])
}

fn soon() -> Stop {
    Stop::new().with_grace(Duration::from_millis(50))
}

alone! {
    fn an_event_hook_that_never_returns_holds_up_no_deadline() {
        let before = Census::now();
        // The event comes a second after the exit.
        common::in_time(Duration::from_millis(1300), |limit| {
            let (gate, mut wait) = Gate::new();
            let (tell, told) = mpsc::channel();
            let result = holder()
                .timeout(limit)
                .stop(soon())
                .on_event(move |event| {
                    tell.send(event.to_string())?;
                    wait();
                    Ok(())
                })
                .run();
            // The gate is still closed: a run that waited for the hook would be waiting.
            assert!(!gate.has_let_through());
            let output = stopped(result);
            assert_eq!(output.report.reason, Reason::Timeout);
            let told = told.try_recv().ok()?;
            let [holder] = common::ready_pids(&output.stdout)[..] else { panic!() };
            assert!(!common::lives(holder));
            assert!(told.contains("fork-holder"));
            drop(gate);
            Some(())
        });
        before.comes_back();
    }
}

alone! {
    fn a_cancel_is_not_held_up_by_an_event_hook() {
        let before = Census::now();
        let (gate, mut wait) = Gate::new();
        let cancel = procwright::Cancel::new().unwrap();
        let from_hook = cancel.clone();
        let result = holder()
            .cancel_on(&cancel)
            .stop(soon())
            .on_event(move |_| {
                from_hook.cancel();
                wait();
                Ok(())
            })
            .run();
        assert!(!gate.has_let_through());
        assert_eq!(stopped(result).report.reason, Reason::Cancelled);
        drop((gate, cancel));
        before.comes_back();
    }
}

alone! {
    fn a_run_that_is_not_stopped_waits_for_its_event_hook() {
        let before = Census::now();
        let returned = shared(false);
        let done = returned.clone();
        let output = holder()
            .on_event(move |event| {
                let procwright::Event::Held { holders, .. } = event else { panic!("{event:?}") };
                holders.iter().for_each(|holder| sys::end(holder.pid));
                common::eventually(|| holders.iter().all(|holder| !common::lives(holder.pid)));
                // The pipes have ended meanwhile, and only the hook is left.
                pause(100);
                *done.lock().unwrap() = true;
                Ok(())
            })
            .run()
            .unwrap();
        assert!(*returned.lock().unwrap() && output.success());
        before.comes_back();
    }
}

alone! {
    fn an_error_or_a_panic_of_an_event_hook_comes_through() {
        let before = Census::now();
        let result = holder().stop(soon()).on_event(|_| Err("enough".into())).run();
        let Err(Error::Foreign { what: Foreign::Event, source, output, .. }) = result else { panic!("{result:?}") };
        assert_eq!((source.to_string().as_str(), output.report.reason), ("enough", Reason::Cancelled));
        let result = holder().stop(soon()).on_event(|_| panic!("on purpose")).run();
        assert!(matches!(&result, Err(Error::Foreign { what: Foreign::Event, .. })), "{result:?}");
        before.comes_back();
    }
}

/// A callback that needs well over half a second for all lines, counted from the stop.
fn slow_lines(command: Command<'_>) -> (Arc<AtomicU64>, Command<'_>) {
    let taken = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&taken);
    let command = command.on_stdout_line(move |_| {
        pause(15);
        count.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    (taken, command)
}

alone! {
    fn a_callback_has_the_grace_of_the_stop() {
        let before = Census::now();
        // The program ends by the first signal; only the callback needs the grace.
        let line = "i=0; while [ $i -lt 100 ]; do echo line; i=$((i+1)); done; echo said >&2; \
                    exec sleep 1000000";
        let cancel = procwright::Cancel::new().unwrap();
        let when_said = cancel.clone();
        let (taken, command) = slow_lines(Command::shell(line));
        let result = command
            .cancel_on(&cancel)
            .on_stderr_line(move |_| {
                when_said.cancel();
                Ok(())
            })
            .stop(Stop::new().with_grace(Duration::from_secs(1_000_000)))
            .run();
        let output = stopped(result);
        drop(cancel);
        assert_eq!(output.report.reason, Reason::Cancelled);
        assert_eq!(taken.load(Ordering::SeqCst), 100);
        assert_eq!(output.report.stdout_info.unwrap().undelivered_bytes, 0);
        before.comes_back();
    }
}

alone! {
    fn who_ends_the_grace_ends_it_for_callbacks_too() {
        let before = Census::now();
        let (gate, mut wait) = Gate::new();
        let mut run = child(&["says", "out:a line\\n"])
            .stop(Stop::new().with_grace(Duration::MAX))
            .on_stdout_line(move |_| {
                wait();
                Ok(())
            })
            .begin_into::<Vec<u8>>()
            .unwrap();
        run.kill();
        let collected = run.finish().unwrap();
        assert!(!gate.has_let_through());
        assert_eq!(collected.report.reason, Reason::Cancelled);
        drop(gate);
        before.comes_back();
    }
}

alone! {
    fn an_event_hook_of_a_child_holds_up_no_other_child() {
        let before = Census::now();
        let (gate, mut wait) = Gate::new();
        let (tell, told) = mpsc::channel();
        let drops = Overflow::DropOldest { memory: 65536 };
        let flood = child(&["flood", "--out", "1M"])
            .on_stream_event(move |_| {
                let _ = tell.send(());
                wait();
            })
            .spawn_with(drops)
            .unwrap();
        told.recv().unwrap();
        // The hook is at work for as long as the gate is closed, and the thread that empties
        // all pipes goes on.
        assert!(flood.wait(None).unwrap().is_some());
        let mut other = child(&["flood", "--out", "1M"]).spawn().unwrap();
        let mut all = Vec::new();
        std::io::Read::read_to_end(other.stdout.as_mut().unwrap(), &mut all).unwrap();
        assert_eq!(all.len(), 1 << 20);
        assert!(!gate.has_let_through());
        other.wait(None).unwrap();
        drop((gate, flood, other));
        before.comes_back();
    }
}

/// The lengths of the lines that a callback gets.
fn lengths(command: Command<'_>) -> (Arc<std::sync::Mutex<Vec<u64>>>, Command<'_>) {
    let lengths = shared(Vec::new());
    let seen = Arc::clone(&lengths);
    let command = command.on_stdout_line(move |line| {
        seen.lock().unwrap().push(line.len() as u64);
        Ok(())
    });
    (lengths, command)
}

fn longest(bytes: usize, too_long: TooLong) -> Framing {
    Framing {
        max_length: Some(bytes),
        too_long,
        ..Framing::default()
    }
}

alone! {
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let size = 200 << 20;
        let big = || child(&["big-line", &(size - 1).to_string()]).limit(procwright::Limit { bytes: 1000, beyond: procwright::Beyond::HeadAndTail });
        for (command, most) in [(big(), 16 << 20), (big().line_framing(longest(1 << 20, TooLong::Split)), 1 << 20)] {
            let base = common::reset_peak();
            let (lengths, command) = lengths(command);
            let output = command.run().unwrap();
            let peak = common::status_bytes("VmHWM") - base;
            let lengths = lengths.lock().unwrap();
            assert!(lengths.iter().all(|length| *length <= most), "{lengths:?}");
            assert_eq!(lengths.iter().sum::<u64>(), output.report.stdout_info.unwrap().bytes);
            // What waits for the callback, and a line: twice its length while it grows.
            let bound = (20 << 20) + 3 * most;
            assert!(peak < bound, "{peak} with lines of {most}");
            common::figure(&format!("200 MiB without a newline, lines of {most} at most: peak {peak}"));
        }
    }
}

#[test]
fn a_line_that_is_too_long_comes_in_pieces_or_ends_the_run() {
    let _dog = common::watchdog("a_line_that_is_too_long_comes_in_pieces_or_ends_the_run");
    let says = || child(&["says", "out:one\\n", "out:three four\\n", "out:end"]);
    let (got, command) = lengths(says().line_framing(longest(6, TooLong::Split)));
    command.run().unwrap();
    assert_eq!(*got.lock().unwrap(), [4, 6, 5, 3]);
    let (got, command) = lengths(says().line_framing(longest(6, TooLong::Fail)));
    let result = command.run();
    let Err(Error::Foreign {
        what: Foreign::Callback,
        source,
        ..
    }) = &result
    else {
        panic!("{result:?}")
    };
    let source = source.downcast_ref::<std::io::Error>().unwrap();
    let too_long = source
        .get_ref()
        .and_then(|error| error.downcast_ref::<LineTooLong>());
    assert_eq!(too_long.map(|error| error.max_length), Some(6));
    assert_eq!(*got.lock().unwrap(), [4]);
    let refused = says().line_framing(longest(0, TooLong::Split)).run();
    assert!(matches!(&refused, Err(Error::Invalid(_))), "{refused:?}");
}

alone! {
    fn the_beginning_of_a_line_counts_as_undelivered() {
        let before = Census::now();
        let (gate, mut wait) = Gate::new();
        // The two parts may come in one read, and mostly do not.
        let output = stopped(
            Command::shell("printf abc; sleep 0.3; printf 'd\\nef\\n'; exec sleep 1000000")
                .timeout(Duration::from_millis(800))
                .stop(soon())
                .on_stdout_line(move |_| {
                    wait();
                    Ok(())
                })
                .run(),
        );
        let info = output.report.stdout_info.unwrap();
        assert_eq!(info.bytes, info.undelivered_bytes);
        drop(gate);
        before.comes_back();
    }
}

alone! {
    fn a_fork_that_a_line_callback_returns_in_ends_there() {
        let (told, mut fork) = forker();
        let output = Command::new("printf")
            .arg("a\\nb\\nc\\n")
            .on_stdout_line(move |_| {
                fork();
                Ok(())
            })
            .run()
            .unwrap();
        assert_eq!(told.recv(), Ok(0));
        assert_eq!(output.stdout, b"a\nb\nc\n");
    }
}

alone! {
    fn a_fork_that_an_event_hook_returns_in_ends_there() {
        let (told, mut fork) = forker();
        let cancel = procwright::Cancel::new().unwrap();
        let from_hook = cancel.clone();
        let result = holder()
            .cancel_on(&cancel)
            .stop(soon())
            .on_event(move |_| {
                fork();
                from_hook.cancel();
                Ok(())
            })
            .run();
        assert_eq!(stopped(result).report.reason, Reason::Cancelled);
        assert_eq!(told.recv(), Ok(0));
    }
}

alone! {
    fn a_fork_of_the_source_of_stdin_feeds_nobody() {
        for spawned in [false, true] {
            let (told, mut fork) = forker();
            let mut pieces = vec!["of the parent", "of the fork"];
            let input = std::iter::from_fn(move || {
                if fork() {
                    return pieces.pop().map(|piece| Ok(piece.into()));
                }
                pieces.truncate(1);
                pieces.pop().map(|piece| Ok(piece.into()))
            });
            let cat = Command::new("cat").stdin_iter(input);
            let output = match spawned {
                true => {
                    let mut child = cat.spawn().unwrap();
                    let mut talk = child.communicate(Vec::new());
                    talk.proceed(None).unwrap();
                    talk.into_outputs()[0].clone()
                }
                false => cat.run().unwrap().stdout,
            };
            assert_eq!(told.recv(), Ok(0));
            assert_eq!(output, b"of the parent");
        }
    }
}

alone! {
    fn an_error_in_a_fork_of_the_source_of_stdin_stops_nobody() {
        let (told, mut fork) = forker();
        let input = std::iter::from_fn(move || match fork() {
            true => Some(Err("it is the fork's".into())),
            false => None,
        });
        let child = Command::new("cat").stdin_iter(input).spawn().unwrap();
        assert!(matches!(child.wait(None), Ok(Some(Exit::Code(0)))));
        assert_eq!(told.recv(), Ok(0));
    }
}
