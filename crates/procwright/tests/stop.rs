//! No process of a run is alive after a stop, or it is named.

mod common;

use std::time::Duration;
use test_support::alone;

use common::{Census, child, scaled, shared, stopped_when_ready, sys};
use procwright::process::{Exit, Scope, Signal, Stop, Unknown};
use procwright::{Command, Output};

const GRACE: Duration = Duration::from_millis(30);

fn soon() -> Stop {
    Stop::new().with_grace(GRACE)
}

/// Stops a run whose program is ready; returns its pids, of which none lives.
#[track_caller]
fn nothing_lives_after(command: Command<'_>, what: &str) -> (Vec<i32>, Output) {
    let (pids, output) = none_lives_after(command, what);
    let survivors = &output.report.survivors;
    assert!(survivors.is_empty(), "{what}: {survivors:?}");
    (pids, output)
}

/// As [`nothing_lives_after`], of a run of which nobody can be certain at its end that none
/// was missed.
fn none_lives_after(command: Command<'_>, what: &str) -> (Vec<i32>, Output) {
    let pids = shared(Vec::new());
    let theirs = pids.clone();
    let output = stopped_when_ready(command, move |ready| {
        theirs.lock().unwrap().extend_from_slice(ready)
    });
    let pids = pids.lock().unwrap().clone();
    assert!(!pids.is_empty());
    let left: Vec<&i32> = pids.iter().filter(|pid| common::lives(**pid)).collect();
    assert!(left.is_empty(), "{what}: {left:?} of {pids:?} live");
    let mut survivors = output.report.survivors.iter();
    let named = survivors.find(|one| one.pid.is_some());
    assert_eq!(named, None, "{what}");
    (pids, output)
}

fn all_kinds() -> [&'static [&'static str]; 6] {
    [
        &["ignore-term", "--print-ready"],
        &["leader-term-child-ignore", "--print-ready"],
        &["stopped-member", "--print-ready"],
        &["setsid-grandchild", "--ignore-term", "--print-ready"],
        &["setsid-grandchild", "--print-ready"],
        &["fork-tree", "3", "3", "--ignore-term", "--print-ready"],
    ]
}

alone! {
    fn nothing_is_left() {
        let before = Census::now();
        for args in all_kinds() {
            for new_session in [false, true] {
                let mut command = child(args).stop(soon());
                if new_session { command = command.new_session(); }
                let (pids, output) = nothing_lives_after(command, &args.join(" "));
                assert_eq!(output.report.pid, pids[0]);
                // Programs that ignore the signal had the grace before SIGKILL.
                if args.iter().any(|arg| arg.contains("ignore")) {
                    assert!(output.report.duration >= GRACE);
                }
            }
            before.comes_back();
        }
    }
}

alone! {
    fn a_fork_storm() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        for round in 0..scaled(2, 10) {
            // An argument that no other storm on this machine has.
            let mark = dir.path().join(round.to_string()).to_str().unwrap().to_owned();
            let (_, output) = none_lives_after(
                child(&["fork-storm", "200", "--print-ready", "--pidfile", &mark]).stop(soon()),
                "fork-storm",
            );
            let left = common::with_argument(&mark);
            // On a machine that is busy enough a storm may outlive its stop, and that is told.
            let is_told = output.report.survivors.iter().any(|one| one.pid.is_none());
            assert!(
                left.is_empty() || is_told,
                "round {round}: {left:?} after {:?}", output.report.duration
            );
            common::eventually(|| {
                let left = common::with_argument(&mark);
                for pid in &left {
                    sys::kill(*pid, libc::SIGKILL);
                }
                left.is_empty()
            });
            assert!(!output.stdout.windows(8).any(|text| text == b"survived"));
            before.comes_back();
        }
    }
}

alone! {
    fn many_stops_leave_nothing() {
        let before = Census::now();
        let rounds = scaled(60, 1000);
        let kinds = all_kinds();
        let ((), took) = common::timed(|| for (round, args) in (0..rounds).zip(kinds.iter().cycle()) {
            let stop = Stop::new().with_grace(Duration::from_millis(round % 3));
            nothing_lives_after(child(args).stop(stop), &format!("round {round}: {args:?}"));
        });
        before.comes_back();
        common::figure(&format!("{rounds} stops in {took:?} leave nothing"));
    }
}

alone! {
    fn stops_of_others_do_not_touch_a_run() {
        // Runs that are stopped, beside runs that must come to their own end.
        let threads: Vec<_> = (0..8).map(|index| std::thread::spawn(move || {
            for round in 0..scaled(6, 60) {
                if index % 2 == 0 {
                    nothing_lives_after(child(&["setsid-grandchild", "--ignore-term", "--print-ready"]).stop(
                        Stop::new().with_grace(Duration::from_millis(1))), "a stop");
                } else {
                    let lines = (round + 3).to_string();
                    let output = child(&["trickle", &lines, "7"]).run().unwrap();
                    assert!(output.success(), "{:?}", output.report);
                    assert_eq!(output.stdout.iter().filter(|b| **b == b'\n').count() as u64, round + 3);
                }
            }
        })).collect();
        for thread in threads { thread.join().unwrap(); }
    }
}

alone! {
    fn the_grace_is_used_and_not_waited_out() {
        // The program prints a line when it is through, and is not killed. A grace that
        // were waited out would last beyond the watchdog's patience.
        let grace = Duration::from_secs(1_000_000);
        let (_, output) = nothing_lives_after(
            child(&["term-exit", "23", "--delay", "80", "--print-ready"]).stop(Stop::new().with_grace(grace)), "term-exit");
        assert_eq!(output.status(), Exit::Code(23));
        assert!(output.report.duration >= Duration::from_millis(80));
        // A stop by another signal.
        let stop = Stop::new().with_grace(grace).with_signal(Signal::USR1);
        let (_, output) = nothing_lives_after(child(&["ignore-term", "--print-ready"]).stop(stop), "USR1");
        assert_eq!(output.status().signal(), Some(Signal::USR1));
        // A stop by SIGKILL at once.
        let (_, output) = nothing_lives_after(child(&["ignore-term", "--print-ready"]).stop(Stop::kill()), "KILL");
        assert_eq!(output.status().signal(), Some(Signal::KILL));
    }
}

alone! {
    fn the_drain_goes_on_during_the_grace() {
        // A program that is blocked on a full pipe could never come to its end.
        let (_, output) = nothing_lives_after(
            child(&["fork-tree", "1", "1", "--print-ready"]).stop(Stop::new().with_grace(Duration::from_secs(100))), "fork-tree");
        assert_eq!(output.status().signal(), Some(Signal::TERM));
        let output = common::stopped(child(&["flood", "--out", "200M"])
            .stop(Stop::new().with_signal(Signal::CHLD).with_grace(Duration::from_secs(100)))
            .timeout(Duration::from_millis(1))
            .run());
        // The program ignores that signal by default, and wrote everything in the
        // grace.
        assert_eq!((output.status(), output.stdout.len()), (Exit::Code(0), 200 << 20));
    }
}

alone! {
    fn scope_process_is_the_program_alone() {
        let pids = shared(Vec::new());
        let theirs = pids.clone();
        let output = stopped_when_ready(
            child(&["fork-tree", "2", "2", "--print-ready"]).stop(soon().with_scope(Scope::Process)),
            move |ready| theirs.lock().unwrap().extend_from_slice(ready),
        );
        assert_eq!(output.status().signal(), Some(Signal::TERM));
        let pids = pids.lock().unwrap().clone();
        assert!(!common::lives(pids[0]));
        assert!(pids[1..].iter().all(|pid| common::lives(*pid)), "the others are nobody's business");
        // The others hold the pipes, and are named.
        let held = &output.report.stdout_info.as_ref().unwrap().held_by;
        assert!(pids[1..].iter().all(|pid| held.iter().any(|holder| holder.pid == *pid)), "{held:?}");
        pids.iter().for_each(|pid| sys::end(*pid));
    }
}

alone! {
    fn scope_group_is_the_group() {
        let stop = soon().with_scope(Scope::Group);
        nothing_lives_after(child(&["fork-tree", "2", "2", "--ignore-term", "--print-ready"]).stop(stop), "group");
        nothing_lives_after(child(&["leader-term-child-ignore", "--print-ready"]).stop(stop), "group");
        nothing_lives_after(child(&["stopped-member", "--print-ready"]).stop(stop), "group");
        // A process that left the group goes on.
        let pids = shared(Vec::new());
        let theirs = pids.clone();
        stopped_when_ready(child(&["setsid-grandchild", "--print-ready"]).stop(stop),
            move |ready| theirs.lock().unwrap().extend_from_slice(ready));
        let pids = pids.lock().unwrap().clone();
        assert_eq!(pids.iter().map(|pid| common::lives(*pid)).collect::<Vec<_>>(), [false, false, true]);
        sys::end(pids[2]);
    }
}

alone! {
    fn who_cannot_be_killed_is_named() {
        if !common::root_or_skip("who_cannot_be_killed_is_named") { return; }
        let before = Census::now();
        let pids = shared(Vec::new());
        let theirs = pids.clone();
        let output = stopped_when_ready(
            child(&["hold-lock-uid", "65534", "600000"]).stop(soon()),
            move |ready| {
                theirs.lock().unwrap().extend_from_slice(ready);
                sys::pass_for_user(65_533);
            },
        );
        sys::become_root_again();
        let [pid] = pids.lock().unwrap()[..] else { panic!() };
        assert!(common::lives(pid));
        assert_eq!(output.status(), Exit::Unknown(Unknown::StillRunning));
        let [survivor] = &output.report.survivors[..] else { panic!("{:?}", output.report) };
        assert_eq!((survivor.pid, survivor.name.as_str()), (Some(pid), "test-child"));
        let text = output.report.explain(b"");
        assert!(text.contains(&format!("test-child (pid {pid}")) && text.contains("could not be ended"), "{text}");
        let info = output.report.stdout_info.as_ref().unwrap();
        // The descriptors of that process cannot be seen either, and the report says
        // so.
        assert!(!info.held_by_complete && !info.complete);
        // The process is reaped when it ends, and the thread for that ends too.
        sys::end(pid);
        before.comes_back();
    }
}
