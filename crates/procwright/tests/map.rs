//! Many commands, so many at a time.

mod common;

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use common::{Census, eventually};
use procwright::map::{Error, Map, Outcome, Running, Step, StoppedBy};
use procwright::{Cancel, Failure, Piece, Reason, Sink, Spec, Stdin, Tap};
use test_support::{alone, watchdog};

fn test_child(args: &[&str]) -> Spec {
    let mut argv = vec![test_children::path().into_os_string()];
    argv.extend(args.iter().map(Into::into));
    Spec::new(argv)
}

fn exit(code: u32) -> Spec {
    test_child(&["exit", &code.to_string()])
}

fn echo(word: u64) -> Spec {
    test_child(&["echo", &word.to_string()])
}

/// Does nothing, for ever.
fn sleeper() -> Spec {
    test_child(&["sleep-forever"])
}

fn stdout(ended: &procwright::map::Ended) -> String {
    match &ended.outcome {
        Outcome::Ran(collected) => {
            let bytes = collected.stdout.as_ref().unwrap();
            String::from_utf8(bytes.clone()).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn reason(ended: &procwright::map::Ended) -> Reason {
    match &ended.outcome {
        Outcome::Ran(collected) => collected.report.reason,
        other => panic!("{other:?}"),
    }
}

/// The results that are left, and the error at the end.
fn rest(map: &mut Running) -> (Vec<procwright::map::Ended>, Option<Error>) {
    let (mut all, mut failed) = (Vec::new(), None);
    for ended in map {
        match ended {
            Ok(ended) => all.push(ended),
            Err(error) => failed = Some(error),
        }
    }
    (all, failed)
}

#[test]
fn each_command_is_run_once() {
    let _watchdog = watchdog("each_command_is_run_once");
    for parallel in [1, 3, 200] {
        let mut map = Map::new((0..40).map(echo))
            .parallel(parallel)
            .start()
            .unwrap();
        let (ended, error) = rest(&mut map);
        assert!(error.is_none() && map.stopped_by().is_none());
        for one in &ended {
            assert!(one.success(), "{}", one.summary());
            assert_eq!(stdout(one).trim(), one.index.to_string());
        }
        let seen: BTreeSet<u64> = ended.iter().map(|one| one.index).collect();
        assert_eq!((ended.len(), seen.len()), (40, 40));
        let progress = map.progress();
        assert_eq!(
            (progress.succeeded, progress.failed, progress.running),
            (40, 0, 0)
        );
        assert!(progress.all_taken && map.next().is_none());
    }
}

#[test]
fn nothing_to_run_is_no_error() {
    let mut map = Map::new([]).start().unwrap();
    assert!(map.next().is_none() && map.next().is_none());
}

#[test]
fn results_come_in_the_order_of_the_input_if_asked() {
    let _watchdog = watchdog("results_come_in_the_order_of_the_input_if_asked");
    let map = Map::new((0..50).map(echo))
        .parallel(7)
        .ordered()
        .start()
        .unwrap();
    let order: Vec<u64> = map.map(|ended| ended.unwrap().index).collect();
    assert_eq!(order, (0..50).collect::<Vec<_>>());
}

#[test]
fn an_endless_input_is_asked_for_what_there_is_room_for() {
    let _watchdog = watchdog("an_endless_input_is_asked_for_what_there_is_room_for");
    for ordered in [false, true] {
        let asked = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&asked);
        let endless = (0..).map(move |number| {
            theirs.fetch_add(1, Ordering::Relaxed);
            echo(number)
        });
        let map = Map::new(endless).parallel(3).ahead(4);
        let map = if ordered { map.ordered() } else { map };
        let mut map = map.start().unwrap();
        // Whoever takes nothing gets nothing more started.
        eventually(|| map.progress().succeeded == 7);
        assert_eq!(asked.load(Ordering::Relaxed), 7);
        for taken in 1..20 {
            assert!(map.next().unwrap().unwrap().success());
            assert!(asked.load(Ordering::Relaxed) <= taken + 7);
        }
    }
}

alone! {
    fn so_many_run_at_a_time_and_a_drop_ends_them() {
        let before = Census::now();
        let endless = std::iter::repeat_with(sleeper);
        let map = Map::new(endless).parallel(3).start().unwrap();
        eventually(|| map.progress().running == 3);
        let progress = map.progress();
        assert_eq!((progress.taken, progress.running), (3, 3));
        drop(map);
        before.comes_back();
    }

}

alone! {
    fn threads_come_with_the_commands_that_need_them() {
        let before = Census::now();
        let (tell, told) = mpsc::channel();
        let map = Map::new(told).parallel(50).start().unwrap();
        tell.send(sleeper()).unwrap();
        tell.send(sleeper()).unwrap();
        eventually(|| map.progress().running == 2);
        // One for each command, and one that waits for the next.
        assert!(Census::now().threads.len() <= before.threads.len() + 3);
        drop(tell);
        drop(map);
        before.comes_back();
    }

}

alone! {
    fn nothing_is_left_after_the_end() {
        let before = Census::now();
        let map = Map::new((0..30).map(|_| exit(0))).parallel(4).start().unwrap();
        assert_eq!(map.count(), 30);
        before.comes_back();
    }
}

#[test]
fn all_are_run_whatever_becomes_of_the_others() {
    let _watchdog = watchdog("all_are_run_whatever_becomes_of_the_others");
    let missing = Spec::new(["/does/not/exist"]);
    let specs = [exit(0), exit(3), missing, exit(1), exit(0)];
    let mut map = Map::new(specs).parallel(2).start().unwrap();
    let (mut ended, error) = rest(&mut map);
    assert!(error.is_none());
    ended.sort_by_key(|one| one.index);
    let successes: Vec<bool> = ended.iter().map(|one| one.success()).collect();
    assert_eq!(successes, [true, false, false, false, true]);
    assert!(
        ended[1].summary().ends_with("exited with code 3"),
        "{}",
        ended[1].summary()
    );
    assert!(matches!(
        ended[2].outcome,
        Outcome::NotStarted(procwright::Error::Spawn { .. })
    ));
    // What to do about it the error says, and not the line.
    let [ended] = &mut rest(&mut Map::new([Spec::new(["no-such-program"])]).start().unwrap()).0[..]
    else {
        panic!("one command")
    };
    let Outcome::NotStarted(error) = &ended.outcome else {
        panic!("{ended:?}")
    };
    assert!(error.to_string().contains("hint: "), "{error}");
    assert_eq!(ended.summary().lines().count(), 1, "{}", ended.summary());
    assert_eq!((map.progress().succeeded, map.progress().failed), (2, 3));
    assert_eq!(map.stopped_by(), None);
}

#[test]
fn so_many_failures_stop_what_runs() {
    let _watchdog = watchdog("so_many_failures_stop_what_runs");
    let specs = [sleeper(), exit(1), exit(0), exit(1)].into_iter();
    let specs = specs.chain(std::iter::repeat_with(sleeper));
    let two = NonZero::new(2).unwrap();
    let mut map = Map::new(specs)
        .parallel(2)
        .stop_after_failures(two)
        .start()
        .unwrap();
    let (ended, error) = rest(&mut map);
    assert!(error.is_none());
    assert_eq!(map.stopped_by(), Some(StoppedBy::Failures));
    let cancelled = ended.iter().filter(|one| match &one.outcome {
        Outcome::Ran(collected) => collected.report.reason == Reason::Cancelled,
        _ => false,
    });
    assert!(cancelled.count() >= 1);
    assert!(ended.len() <= 5, "{}", ended.len());
}

#[test]
fn the_failure_that_stops_others_is_told_with_them_and_can_be_taken_before_its_turn() {
    let _watchdog = watchdog("the_failure_that_stops_others_is_told_with_them");
    let mut map = Map::new([sleeper(), exit(0), exit(3), sleeper()])
        .parallel(3)
        .ordered()
        .stop_after_failures(NonZero::new(1).unwrap())
        .start()
        .unwrap();
    assert!(map.take_cause().is_none_or(|early| early.index == 2));
    let first = map.next().unwrap().unwrap();
    assert_eq!((first.index, first.cause), (0, Some(2)));
    assert!(first.was_stopped());
    // It may have been taken above already, on a machine that was slow to get here.
    if let Some(early) = map.take_cause() {
        assert_eq!((early.index, early.cause), (2, Some(2)));
        assert!(
            early.summary().ends_with("exited with code 3"),
            "{}",
            early.summary()
        );
    }
    assert!(map.take_cause().is_none());
    let (ended, error) = rest(&mut map);
    assert!(error.is_none());
    // The second has ended by itself, or was stopped too.
    assert!(matches!(
        (ended[0].success(), ended[0].cause),
        (true, None) | (false, Some(2))
    ));
    assert_eq!((ended[1].index, ended[1].cause), (2, Some(2)));
    assert!(matches!(ended[1].outcome, Outcome::Taken));
    assert!(!ended[1].success() && !ended[1].was_stopped());
    assert!(ended[2..].iter().all(|one| one.cause == Some(2)));
    assert_eq!(map.progress().failed, 1);
}

#[test]
fn what_a_cancel_has_stopped_has_no_other_cause() {
    let _watchdog = watchdog("what_a_cancel_has_stopped_has_no_other_cause");
    let mut map = Map::new([sleeper(), exit(3)])
        .parallel(1)
        .stop_after_failures(NonZero::new(1).unwrap())
        .start()
        .unwrap();
    eventually(|| map.progress().running == 1);
    map.remote().stop();
    let (ended, error) = rest(&mut map);
    assert!(error.is_none());
    assert!(ended.iter().all(|one| one.cause.is_none()));
    assert!(map.take_cause().is_none());
}

#[test]
fn what_the_caller_has_stopped_after_a_failure_was_not_stopped_for_that() {
    let _watchdog = watchdog("what_the_caller_has_stopped_after_a_failure");
    let mut map = Map::new([sleeper(), exit(3)])
        .parallel(2)
        .start_no_more_after_failures(NonZero::new(1).unwrap())
        .start()
        .unwrap();
    eventually(|| map.progress().failed == 1);
    map.remote().stop();
    let (mut ended, error) = rest(&mut map);
    assert!(error.is_none());
    ended.sort_unstable_by_key(|one| one.index);
    assert!(ended[0].was_stopped());
    let causes: Vec<_> = ended.iter().map(|one| one.cause).collect();
    assert_eq!(causes, [None, Some(1)]);
}

#[test]
fn a_failure_by_a_deadline_that_nobody_has_noted_is_no_cause() {
    let _watchdog = watchdog("a_failure_by_a_deadline");
    // The deadline may come before the first command has been started.
    let mut map = test_support::in_time(Duration::from_millis(50), |deadline| {
        let map = Map::new([sleeper(), sleeper()])
            .parallel(1)
            .stop_after_failures(NonZero::new(1).unwrap())
            .deadline(deadline)
            .start()
            .unwrap();
        let begun = Instant::now();
        let has_begun = || map.progress().running + map.progress().failed > 0;
        eventually(|| has_begun() || begun.elapsed() > deadline);
        has_begun().then_some(map)
    });
    // Nobody asks for results meanwhile, and so nobody looks after the time.
    eventually(|| map.progress().failed == 1);
    assert_eq!(map.stopped_by(), Some(StoppedBy::Deadline));
    let (ended, error) = rest(&mut map);
    assert!(error.is_none());
    assert!(ended.iter().all(|one| one.cause.is_none()), "{ended:?}");
}

#[test]
fn the_deadline_stops_what_runs_and_what_waits_for_input() {
    let _watchdog = watchdog("the_deadline_stops_what_runs_and_what_waits_for_input");
    let deadline = Duration::from_millis(300);
    let ended = test_support::in_time(deadline, |deadline| {
        let endless = std::iter::repeat_with(sleeper);
        let mut map = Map::new(endless)
            .parallel(2)
            .deadline(deadline)
            .start()
            .unwrap();
        let (ended, error) = rest(&mut map);
        assert!(error.is_none());
        assert_eq!(map.stopped_by(), Some(StoppedBy::Deadline));
        let both = ended.len() == 2;
        let were_started = ended
            .iter()
            .all(|one| matches!(one.outcome, Outcome::Ran(_)));
        (both && were_started).then_some(ended)
    });
    assert!(
        ended.iter().all(|one| reason(one) == Reason::Timeout),
        "{ended:?}"
    );

    let (_tell, told) = mpsc::channel();
    let mut map = Map::new(told).deadline(deadline).start().unwrap();
    assert!(map.next().is_none());
    assert_eq!(map.stopped_by(), Some(StoppedBy::Deadline));
}

#[test]
fn a_command_keeps_its_own_timeout_under_a_deadline() {
    let _watchdog = watchdog("a_command_keeps_its_own_timeout_under_a_deadline");
    let mut spec = sleeper();
    spec.timeout = Duration::from_millis(50).into();
    let mut map = Map::new([spec])
        .deadline(Duration::from_secs(3600))
        .start()
        .unwrap();
    let (ended, _) = rest(&mut map);
    assert_eq!(reason(&ended[0]), Reason::Timeout);
    assert_eq!(map.stopped_by(), None);
}

#[test]
fn a_cancel_ends_it_also_while_the_input_blocks() {
    let _watchdog = watchdog("a_cancel_ends_it_also_while_the_input_blocks");
    let cancel = Cancel::new().unwrap();
    let (tell, told) = mpsc::channel();
    let (ready, is_ready) = ready();
    let mut map = Map::new(told)
        .parallel(4)
        .cancel_on(&cancel)
        .tap_with(ready)
        .start()
        .unwrap();
    tell.send(test_child(&["sleep-forever", "--print-ready"]))
        .unwrap();
    is_ready.recv().unwrap();
    let elsewhere = cancel.clone();
    let thread = std::thread::spawn(move || elsewhere.cancel());
    let (ended, error) = rest(&mut map);
    thread.join().unwrap();
    assert!(error.is_none());
    assert_eq!(map.stopped_by(), Some(StoppedBy::Cancel));
    assert_eq!(ended.len(), 1);
    assert_eq!(reason(&ended[0]), Reason::Cancelled);
    // What comes now is not run.
    let _ = tell.send(exit(0));
    assert!(map.next().is_none());
    assert_eq!(map.progress().taken, 1);
}

#[test]
fn what_runs_may_come_to_its_end() {
    let _watchdog = watchdog("what_runs_may_come_to_its_end");
    let (tell, told) = mpsc::channel();
    let (ready, is_ready) = ready();
    let mut map = Map::new(told).parallel(2).tap_with(ready).start().unwrap();
    let (read, mut write) = std::io::pipe().unwrap();
    write.write_all(b"some").unwrap();
    let mut spec = test_child(&["cat"]);
    spec.stdin = Stdin::Fd(Arc::new(read.into()));
    tell.send(spec).unwrap();
    is_ready.recv().unwrap();
    map.remote().start_no_more();
    assert!(map.next_within(Duration::from_millis(50)).is_none());
    drop(write);
    let (ended, _) = rest(&mut map);
    assert!(ended.len() == 1 && ended[0].success());
}

#[test]
fn a_second_wish_kills() {
    let _watchdog = watchdog("a_second_wish_kills");
    let mut spec = test_child(&["ignore-term", "--print-ready"]);
    spec.stop = spec.stop.with_grace(Duration::MAX);
    spec.until = procwright::Until::Exit;
    let (ready, is_ready) = ready();
    let mut map = Map::new([spec]).tap_with(ready).start().unwrap();
    is_ready.recv().unwrap();
    map.remote().stop();
    assert!(map.next_within(Duration::from_millis(100)).is_none());
    map.remote().kill();
    assert_eq!(reason(&rest(&mut map).0[0]), Reason::Cancelled);
}

/// A maker of taps that tell of output, and the end where it is told.
#[allow(clippy::type_complexity)]
fn ready() -> (
    impl Fn(u64, &Spec) -> Option<Box<dyn Tap>> + Send + Sync + 'static,
    mpsc::Receiver<()>,
) {
    let (tell, told) = mpsc::channel();
    let make = move |_: u64, _: &Spec| Some(Box::new(Ready(tell.clone())) as Box<dyn Tap>);
    (make, told)
}

/// Tells of output.
struct Ready(mpsc::Sender<()>);

impl Tap for Ready {
    fn piece(&mut self, _piece: Piece<'_>) -> Result<(), procwright::BoxError> {
        let _ = self.0.send(());
        Ok(())
    }
}

#[test]
fn taps_get_what_comes_captured_or_relayed() {
    let _watchdog = watchdog("taps_get_what_comes_captured_or_relayed");
    for sink in [Sink::Capture, Sink::Relay] {
        let (tell, told) = mpsc::channel();
        let specs = (0..5).map(move |number| {
            let mut spec = echo(number);
            spec.stdout = sink.clone();
            spec
        });
        let tap = move |index: u64, _: &Spec| Some(Box::new(Told(index, tell.clone())) as _);
        let map = Map::new(specs).parallel(2).tap_with(tap).start().unwrap();
        assert!(map.map(Result::unwrap).all(|one| one.success()));
        let mut lines: Vec<(u64, Vec<u8>)> = told.into_iter().collect();
        lines.sort();
        let expected = (0..5).map(|number| (number, format!("{number}\n").into_bytes()));
        assert_eq!(lines, expected.collect::<Vec<_>>());
    }
}

struct Told(u64, mpsc::Sender<(u64, Vec<u8>)>);

impl Tap for Told {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), procwright::BoxError> {
        Ok(self.1.send((self.0, piece.bytes.to_vec()))?)
    }
}

#[test]
fn errors_and_panics_of_the_input_come_through() {
    let _watchdog = watchdog("errors_and_panics_of_the_input_come_through");
    let failing = [Ok(exit(0)), Err("no more of it".into()), Ok(exit(0))];
    let mut map = Map::fallible(failing).parallel(1).start().unwrap();
    let (ended, error) = rest(&mut map);
    assert_eq!(ended.len(), 1);
    let error = error.unwrap();
    assert!(matches!(error, Error::Input(_)), "{error:?}");
    assert!(error.to_string().ends_with("no more of it"));
    assert_eq!(map.stopped_by(), Some(StoppedBy::Error));

    let panicking = (0..3).map(|number| match number {
        0 => exit(0),
        _ => panic!("as a mistake of the host's would"),
    });
    let mut map = Map::new(panicking).parallel(1).start().unwrap();
    let (ended, error) = rest(&mut map);
    assert_eq!(ended.len(), 1);
    assert!(matches!(error, Some(Error::Panicked(_))));

    let tap = |_: u64, _: &Spec| panic!("as a mistake of the host's would");
    let mut map = Map::new([exit(0)]).tap_with(tap).start().unwrap();
    let (ended, error) = rest(&mut map);
    assert!(matches!(ended[0].outcome, Outcome::NotStarted(_)));
    assert!(matches!(error, Some(Error::Panicked(_))));
}

#[test]
fn a_failing_tap_is_the_commands_failure() {
    let _watchdog = watchdog("a_failing_tap_is_the_commands_failure");
    struct Failing;
    impl Tap for Failing {
        fn piece(&mut self, _: Piece<'_>) -> Result<(), procwright::BoxError> {
            Err("full".into())
        }
    }
    let tap = |_: u64, _: &Spec| Some(Box::new(Failing) as _);
    let mut map = Map::new([echo(1)]).tap_with(tap).start().unwrap();
    let (ended, error) = rest(&mut map);
    assert!(error.is_none() && !ended[0].success());
    match &ended[0].outcome {
        Outcome::Ran(collected) => {
            assert!(matches!(collected.failure, Some(Failure::Foreign(..))));
        }
        other => panic!("{other:?}"),
    }
    assert!(
        ended[0].summary().ends_with("failed: full"),
        "{}",
        ended[0].summary()
    );
}

#[test]
fn what_makes_no_sense_is_refused() {
    for parallel in [0, 100_001] {
        let error = Map::new([exit(0)]).parallel(parallel).start().unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("parallel is {parallel}: "))
        );
    }
    let mut inherits = exit(0);
    inherits.stdin = Stdin::Inherit;
    let mut map = Map::new([inherits]).start().unwrap();
    let ended = map.next().unwrap().unwrap();
    let refused = matches!(
        ended.outcome,
        Outcome::NotStarted(procwright::Error::Invalid(_))
    );
    assert!(refused, "{ended:?}");
}

#[test]
fn the_descriptor_tells_when_it_is_worth_asking() {
    let _watchdog = watchdog("the_descriptor_tells_when_it_is_worth_asking");
    let (tell, told) = mpsc::channel();
    let mut map = Map::new(told).start().unwrap();
    assert!(map.try_next().is_none());
    tell.send(exit(0)).unwrap();
    drop(tell);
    let mut ended = 0;
    loop {
        match map.try_next() {
            Some(Step::Ended(_)) => ended += 1,
            Some(Step::Over) => break,
            Some(other) => panic!("{other:?}"),
            None => {
                let fd = procwright_os::poll::Fd::from_borrowed_fd(
                    map.fd(),
                    procwright_os::poll::Flags::IN,
                );
                let forever = procwright_os::time::Deadline::NEVER;
                procwright_os::poll::wait_one(fd, forever).unwrap();
            }
        }
    }
    assert_eq!(ended, 1);
}

alone! {
    fn a_fork_has_no_part_in_it() {
        let endless = std::iter::repeat_with(sleeper);
        let mut map = Map::new(endless).parallel(1).start().unwrap();
        eventually(|| map.progress().running == 1);
        let said = test_support::sys::in_fork(|| {
            test_support::sys::default(libc::SIGALRM);
            test_support::sys::alarm(120);
            let forked = matches!(map.next(), Some(Err(Error::Forked)));
            let over = map.next().is_none();
            i32::from(!(forked && over))
        });
        assert_eq!(said, 0);
        assert_eq!(map.progress().running, 1);
    }
}
