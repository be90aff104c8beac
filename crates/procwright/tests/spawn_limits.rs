//! A child that its caller holds, and that is stopped for a limit of its own: a timeout, an
//! idle timeout, a limit of output, a cancel; and streams that end with the program.

mod common;

use std::io::Read;
use std::time::Duration;
use test_support::alone;

use common::{Census, child, sys};
use procwright::process::{Exit, Signal, Stop};
use procwright::stream::{MergedItem, Patience};
use procwright::{
    Beyond, Cancel, Child, Command, Error, Limit, Overflow, ReachedLimit, Reason, Report, Until,
};

const SOON: Duration = Duration::from_millis(50);

fn soon() -> Stop {
    Stop::new().with_grace(Duration::from_millis(20))
}

/// Waits for a child that is to be stopped, and gives its report.
fn report_of_stopped(child: &Child) -> Report {
    assert!(child.wait(None).unwrap().is_some());
    let report = child.report().expect("it has ended, and its stop");
    assert_eq!(child.stopped_for(), Some(report.reason));
    report
}

/// A child that was ready before the limit of its time came, that limit, and its pids.
fn ready_in_time(
    first: Duration,
    command: impl Fn(Duration) -> Command<'static>,
) -> (Duration, Child, Vec<i32>) {
    common::in_time(first, |limit| {
        let child = command(limit).spawn().unwrap();
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            match child.stdout.as_ref().unwrap().read(&mut byte).unwrap() {
                0 => return None,
                _ => line.push(byte[0]),
            }
        }
        Some((limit, child, common::ready_pids(&line)))
    })
}

fn read_all(child: &mut Child) -> Vec<u8> {
    let mut read = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut read).unwrap();
    read
}

alone! {
    fn a_timeout_stops_the_whole_tree() {
        let before = Census::now();
        let (limit, mut tree, pids) = ready_in_time(Duration::from_millis(500), |limit| {
            child(&["setsid-grandchild", "--print-ready"]).timeout(limit).stop(soon()).stall_after(None)
        });
        assert_eq!(pids.len(), 3);
        let report = report_of_stopped(&tree);
        assert_eq!(report.reason, Reason::Timeout);
        assert_eq!(report.limit, Some(ReachedLimit::Time(limit)));
        assert!(report.duration >= limit);
        assert!(report.stop_duration.unwrap() <= report.duration);
        assert!(matches!(report.status, Exit::Signal { .. }));
        let told = format!("timed out after {}", limit.as_secs_f64());
        assert!(report.outcome().starts_with(&told), "{}", report.outcome());
        // What each was doing, before the first signal.
        assert!(report.processes.len() >= 3 || !common::sees_everyone(), "{:?}", report.processes);
        assert!(report.survivors.is_empty());
        assert!(!report.stdout_info.as_ref().unwrap().complete);
        for pid in pids {
            assert!(!common::lives(pid));
        }
        assert_eq!(read_all(&mut tree), b"");
        drop(tree);
        before.comes_back();
    }
}

alone! {
    fn who_ends_in_time_is_left_alone() {
        let before = Census::now();
        for _ in 0..20 {
            let cancel = Cancel::new().unwrap();
            let mut quick = child(&["echo", "x"])
                .timeout(Duration::from_secs(3600))
                .idle_timeout(Duration::from_secs(3600))
                .limit(Limit { bytes: 2, beyond: Beyond::Fail })
                .cancel_on(&cancel)
                .spawn()
                .unwrap();
            assert_eq!(read_all(&mut quick), b"x\n");
            assert_eq!(quick.wait(None).unwrap(), Some(Exit::Code(0)));
            assert_eq!(quick.stopped_for(), None);
            let report = quick.report().unwrap();
            assert_eq!((report.reason, report.limit, report.stop_duration), (Reason::Finished, None, None));
            assert!(report.stdout_info.unwrap().complete);
        }
        // Nothing waits for an hour: neither a thread nor a descriptor of theirs is left.
        before.comes_back();
    }
}

#[test]
fn a_timeout_that_has_expired_stops_even_a_quick_program() {
    let _dog = common::watchdog("a_timeout_that_has_expired_stops_even_a_quick_program");
    for _ in 0..10 {
        let child = child(&["sleep-forever"])
            .timeout(Duration::ZERO)
            .stop(soon())
            .spawn()
            .unwrap();
        assert_eq!(report_of_stopped(&child).reason, Reason::Timeout);
        let child = common::child(&["sleep-forever"])
            .idle_timeout(Duration::ZERO)
            .stop(soon())
            .spawn();
        assert_eq!(
            report_of_stopped(&child.unwrap()).reason,
            Reason::IdleTimeout
        );
    }
}

alone! {
    fn the_timeout_is_for_the_streams_as_well() {
        let before = Census::now();
        let (_, mut exited, pids) = ready_in_time(Duration::from_millis(500), |limit| {
            child(&["fork-holder", "0", "--print-ready", "--setsid"]).timeout(limit).stop(soon())
        });
        let [holder] = pids[..] else { panic!() };
        // The program ends at once, its output with the holder.
        assert_eq!(read_all(&mut exited), b"");
        assert!(!common::lives(holder));
        let report = report_of_stopped(&exited);
        assert_eq!((report.reason, report.status), (Reason::Timeout, Exit::Code(0)));
        assert!(report.held_after_exit);
        let held: Vec<_> = report.stdout_info.unwrap().held_by.iter().map(|one| one.pid).collect();
        assert!(held == [holder] || !common::sees_everyone());
        drop(exited);
        before.comes_back();
    }
}

#[test]
fn silence_is_counted_from_the_last_byte_and_not_while_nobody_reads() {
    let _dog = common::watchdog("silence_is_counted_from_the_last_byte_and_not_while_nobody_reads");
    let idle = Duration::from_secs(2);
    let mut busy = child(&["trickle", "25", "100"])
        .idle_timeout(idle)
        .spawn()
        .unwrap();
    assert_eq!(
        read_all(&mut busy)
            .iter()
            .filter(|byte| **byte == b'\n')
            .count(),
        25
    );
    assert_eq!(busy.wait(None).unwrap(), Some(Exit::Code(0)));
    assert_eq!(busy.stopped_for(), None);

    let silent = child(&["sleep-forever"])
        .idle_timeout(SOON)
        .stop(soon())
        .spawn()
        .unwrap();
    let report = report_of_stopped(&silent);
    assert_eq!(report.reason, Reason::IdleTimeout);
    assert!(report.duration >= SOON);

    // It writes all the time, and its reader takes nothing: the pipe is full, and the queue.
    common::in_time(SOON, |idle| {
        let mut held = child(&["flood-forever"])
            .idle_timeout(idle)
            .timeout(8 * idle)
            .stop(soon())
            .stall_after(None)
            .spawn_with(Overflow::Block { memory: 65536 })
            .unwrap();
        let reason = report_of_stopped(&held).reason;
        let has_written = !read_all(&mut held).is_empty();
        // It needs a while until it writes.
        (reason == Reason::Timeout && has_written).then_some(())
    });
}

#[test]
fn more_output_than_the_limit_stops_it() {
    let _dog = common::watchdog("more_output_than_the_limit_stops_it");
    for stream in [&[][..], &["--err"]] {
        let args = [&["flood-forever"], stream].concat();
        let limit = Limit {
            bytes: 100_000,
            beyond: Beyond::Fail,
        };
        let flood = child(&args).limit(limit).stop(soon()).spawn().unwrap();
        let report = report_of_stopped(&flood);
        assert_eq!(report.reason, Reason::OutputLimit);
        assert_eq!(report.limit, Some(ReachedLimit::Bytes(100_000)));
        let infos = [report.stdout_info, report.stderr_info].map(Option::unwrap);
        assert!(infos.iter().any(|info| info.bytes > 100_000));
    }
}

#[test]
fn whoever_reads_gets_the_limit_and_not_a_byte_more() {
    let _dog = common::watchdog("whoever_reads_gets_the_limit_and_not_a_byte_more");
    let limit = Limit {
        bytes: 100_000,
        beyond: Beyond::Fail,
    };
    // It ignores the stop's signal, and writes for all of the grace.
    let flood = || Command::shell("trap '' TERM; exec yes");
    let mut one = flood().limit(limit).stop(soon()).spawn().unwrap();
    assert_eq!(read_all(&mut one).len(), 100_000);
    let report = report_of_stopped(&one);
    assert_eq!(report.reason, Reason::OutputLimit);
    assert_eq!(report.status.signal(), Some(Signal::KILL));
    let info = report.stdout_info.unwrap();
    assert_eq!(info.kept_bytes, 100_000);
    assert!(info.dropped_bytes > 0 && info.bytes == info.kept_bytes + info.dropped_bytes);

    let merged = flood().limit(limit).stop(soon()).merged().spawn();
    let merged = merged.unwrap().merged.unwrap();
    let mut bytes = 0;
    while let Some(item) = merged.next_line(Patience::NEVER_ENDING).unwrap() {
        let MergedItem::Line(line) = item else {
            panic!("{item:?}");
        };
        bytes += line.bytes().len();
    }
    assert_eq!(bytes, 100_000);
}

#[test]
fn who_ends_right_behind_the_limit_has_passed_it() {
    let _dog = common::watchdog("who_ends_right_behind_the_limit_has_passed_it");
    let limit = Limit {
        bytes: 100,
        beyond: Beyond::Fail,
    };
    // Some are stopped, of others nothing is left to be stopped.
    for (bytes, reason) in [(100, Reason::Finished), (101, Reason::OutputLimit)].repeat(20) {
        let mut command = Command::new("head");
        command = command.args(["-c", &bytes.to_string(), "/dev/zero"]);
        let mut one = command.limit(limit).stop(soon()).spawn().unwrap();
        assert_eq!(read_all(&mut one).len(), 100);
        one.wait(None).unwrap();
        let (report, stopped_for) = (one.report().unwrap(), one.stopped_for());
        assert_eq!(report.reason, reason, "{report:?}");
        assert_eq!(stopped_for.unwrap_or(Reason::Finished), reason);
        let limit = (reason == Reason::OutputLimit).then_some(ReachedLimit::Bytes(100));
        assert_eq!(report.limit, limit);
    }
}

alone! {
    fn a_cancel_stops_all_that_have_it() {
        let before = Census::now();
        {
            let cancel = Cancel::new().unwrap();
            let many: Vec<_> = (0..20)
                .map(|_| child(&["sleep-forever"]).cancel_on(&cancel).stop(soon()).spawn().unwrap())
                .collect();
            // One thread for all of them.
            let supervisors = common::threads().iter().filter(|name| name.contains("procwright-supe")).count();
            assert_eq!(supervisors, 1);
            let (elsewhere, waits) = (cancel.clone(), &many[0]);
            std::thread::scope(|scope| {
                scope.spawn(move || assert!(waits.wait(None).unwrap().is_some()));
                elsewhere.cancel();
            });
            for child in &many {
                assert_eq!(report_of_stopped(child).reason, Reason::Cancelled);
            }
            let refused = child(&["sleep-forever"]).cancel_on(&cancel).spawn();
            assert!(matches!(refused, Err(Error::Cancelled { .. })));
        }
        before.comes_back();
    }
}

alone! {
    fn streams_end_with_the_program() {
        let before = Census::now();
        for extra in [&[][..], &["--setsid"], &["--setsid", "--double-fork"]] {
            let args = [&["fork-holder", "0", "--print-ready", "--say", "all of it"], extra].concat();
            let mut exited = child(&args).until(Until::Exit).spawn().unwrap();
            let mut stdout = exited.stdout.take().unwrap();
            let [holder] = common::ready_line(&mut stdout)[..] else { panic!() };
            let mut rest = Vec::new();
            stdout.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, b"all of it\n");
            assert!(exited.wait(None).unwrap().unwrap().success());
            assert!(common::lives(holder));
            let report = exited.report().unwrap();
            assert_eq!(report.reason, Reason::Finished);
            let info = report.stdout_info.unwrap();
            let held: Vec<_> = info.held_by.iter().map(|one| one.pid).collect();
            assert!(held == [holder] || !common::sees_everyone(), "{held:?}");
            assert!(info.complete);
            sys::end(holder);
        }
        before.comes_back();
    }
}

alone! {
    fn streams_that_end_with_the_program_have_all_of_it() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let pidfile = dir.path().join("pid");
        for own in [0_u64, 1, 50_000, 1_000_000] {
            let args = ["fork-flooder", "--own", &own.to_string(), "--pidfile", pidfile.to_str().unwrap()];
            let mut flood = child(&args).until(Until::Exit).spawn_with(Overflow::Block { memory: 65536 }).unwrap();
            let read = read_all(&mut flood);
            let count = read.iter().filter(|byte| **byte == test_children::OWN_BYTE).count() as u64;
            assert_eq!(count, own);
            assert!(flood.wait(None).unwrap().unwrap().success());
        }
        before.comes_back();
    }
}

alone! {
    fn a_child_that_nobody_holds_is_stopped_in_its_time() {
        let before = Census::now();
        let mut dropped = child(&["sleep-forever", "--print-ready"]).timeout(SOON).stop(soon()).spawn().unwrap();
        let process = dropped.process();
        drop(dropped.stdin.take());
        drop(dropped);
        assert!(process.wait(None).unwrap().is_some());
        drop(process);
        before.comes_back();
    }
}

alone! {
    fn a_wait_lasts_until_all_are_stopped() {
        // The leader dies by the first signal, its child takes the whole grace.
        let before = Census::now();
        let grace = Duration::from_millis(300);
        let stop = Stop::new().with_grace(grace);
        let cancel = Cancel::new().unwrap();
        let mut tree = child(&["leader-term-child-ignore", "--print-ready"]).cancel_on(&cancel).stop(stop).spawn().unwrap();
        let pids = common::ready_line(tree.stdout.as_mut().unwrap());
        cancel.cancel();
        let report = report_of_stopped(&tree);
        assert!(pids.into_iter().all(|pid| !common::lives(pid)));
        assert!(report.stop_duration.unwrap() >= grace);
        // A stop afterwards finds nobody, and the reason stays.
        assert!(tree.stop().is_empty());
        assert_eq!(tree.report().unwrap().reason, Reason::Cancelled);
        drop((tree, cancel));
        before.comes_back();
    }
}

alone! {
    fn a_stop_by_the_caller_waits_for_that_of_a_limit() {
        let before = Census::now();
        let stop = Stop::new().with_grace(Duration::from_millis(300));
        let (_, tree, pids) = ready_in_time(SOON, |limit| {
            child(&["leader-term-child-ignore", "--print-ready"]).timeout(limit).stop(stop)
        });
        // Whichever is first.
        assert!(tree.process().wait(None).unwrap().is_some());
        assert!(tree.stop().is_empty());
        assert!(pids.into_iter().all(|pid| !common::lives(pid)));
        assert_eq!(tree.report().unwrap().reason, Reason::Timeout);
        drop(tree);
        before.comes_back();
    }
}

#[test]
fn a_limit_is_not_missed_while_others_look() {
    let _dog = common::watchdog("a_limit_is_not_missed_while_others_look");
    for _ in 0..20 {
        let looked_at = child(&["sleep-forever"])
            .timeout(SOON)
            .stop(soon())
            .spawn()
            .unwrap();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                // Each look has the child for a moment.
                scope.spawn(|| while looked_at.report().is_none() {});
            }
        });
        assert_eq!(looked_at.stopped_for(), Some(Reason::Timeout));
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let refused = |command: Command<'_>, overflow: Option<Overflow>, text: &str| {
        let Err(Error::Invalid(error)) = command.spawn_with(overflow) else {
            panic!("not refused: {text}");
        };
        assert!(error.to_string().starts_with(text), "{error}");
    };
    let keeps = Limit {
        bytes: 9,
        beyond: Beyond::HeadAndTail,
    };
    let fails = Limit {
        bytes: 9,
        beyond: Beyond::Fail,
    };
    let ahead = Some(Overflow::default());
    refused(
        child(&["exit", "0"]).limit(keeps),
        ahead,
        "limit is for run()",
    );
    for (command, name) in [
        (child(&["exit", "0"]).limit(fails), "limit"),
        (child(&["exit", "0"]).idle_timeout(SOON), "idle_timeout"),
        (child(&["exit", "0"]).until(Until::Exit), "until"),
    ] {
        refused(
            command,
            None,
            &format!("{name} needs the streams to be read ahead"),
        );
    }
    // A timeout and a cancel need no reader.
    let bare = child(&["sleep-forever"])
        .timeout(SOON)
        .stop(soon())
        .spawn_with(None)
        .unwrap();
    assert_eq!(report_of_stopped(&bare).reason, Reason::Timeout);
}
