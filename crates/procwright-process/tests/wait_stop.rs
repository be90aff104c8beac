//! Stopping processes: those of other parents, and own children that no run holds.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::Duration;
use test_support::alone;

use procwright_os::time::{self, Timeout};
use procwright_process::Process;
use procwright_process::wait::Event;
use procwright_process::{Exit, Orphans, ProcessError, Scope, Signal, Stop, StopTarget};
use test_support::family::Family;
use test_support::{Census, sys, timed};

const GRACE: Duration = Duration::from_millis(30);
/// Longer than any watchdog's patience: a test that waits this long fails.
const LONG: Duration = Duration::from_secs(100_000);

fn stop_after_grace(scope: Scope) -> Stop {
    Stop::new().with_grace(GRACE).with_scope(scope)
}

fn ended_by(signal: Signal) -> Exit {
    Exit::Signal {
        signal,
        core: false,
    }
}

fn living(pids: &[i32]) -> Vec<bool> {
    pids.iter().map(|pid| test_support::lives(*pid)).collect()
}

/// Stops a process of another parent; none of its scope survives.
#[track_caller]
fn stop_leaving_none(process: &Process, stop: Stop) {
    let survivors = process.stop(stop).unwrap();
    assert!(survivors.is_empty(), "{survivors:?}");
    assert!(!process.is_alive());
}

alone! {
    fn a_tree() {
        let before = Census::now();
        for order in ["exec fork-tree 2 2 --print-ready", "exec setsid-grandchild --print-ready"] {
            let (mut family, pids) = Family::of(&[order]);
            let stranger = family.stranger();
            stop_leaving_none(&stranger, Stop::new().with_grace(LONG));
            assert!(living(&pids).iter().all(|lives| !lives));
            // The parent is not part of the tree.
            assert_eq!(family.reap(), ended_by(Signal::TERM));
            assert_eq!(stranger.exit(), Some(ended_by(Signal::TERM)));
        }
        for order in [
            "exec fork-tree 2 2 --ignore-term --print-ready",
            "exec leader-term-child-ignore --print-ready",
            "exec setsid-grandchild --ignore-term --print-ready",
            "exec stopped-member --print-ready",
            "exec ignore-term --print-ready",
        ] {
            let (family, pids) = Family::of(&[order]);
            let stranger = family.stranger();
            let ((), took) = timed(|| stop_leaving_none(&stranger, stop_after_grace(Scope::Tree)));
            assert!(took >= GRACE, "{order} had no grace");
            assert!(living(&pids).iter().all(|lives| !lives), "{order}");
        }
        before.comes_back();
    }
}

alone! {
    fn the_process_alone() {
        let (mut family, pids) = Family::of(&["lead", "exec fork-tree 1 2 --print-ready"]);
        stop_leaving_none(&family.stranger(), Stop::new().with_grace(LONG).with_scope(Scope::Process));
        assert_eq!(living(&pids), [false, true, true]);
        assert_eq!(family.reap(), ended_by(Signal::TERM));
        pids.iter().for_each(|pid| sys::end(*pid));
        let (mut family, _) = Family::of(&["exec ignore-term --print-ready"]);
        let ((), took) = timed(|| stop_leaving_none(&family.stranger(), stop_after_grace(Scope::Process)));
        assert!(took >= GRACE);
        assert_eq!(family.reap(), ended_by(Signal::KILL));
        let (mut family, _) = Family::of(&["exec ignore-term --print-ready"]);
        stop_leaving_none(&family.stranger(), Stop::kill());
        assert_eq!(family.reap(), ended_by(Signal::KILL));
        // The program prints a line when it is through.
        let (mut family, _) = Family::of(&["exec term-exit 23 --delay 30 --print-ready"]);
        stop_leaving_none(&family.stranger(), Stop::new().with_grace(LONG));
        assert_eq!(family.reap(), Exit::Code(23));
    }
}

alone! {
    fn a_group() {
        // A group that the process leads.
        let (mut family, pids) = Family::of(&["lead", "exec fork-tree 2 2 --ignore-term --print-ready"]);
        stop_leaving_none(&family.stranger(), stop_after_grace(Scope::Group));
        assert!(living(&pids).iter().all(|lives| !lives));
        assert_eq!(family.reap(), ended_by(Signal::KILL));
        // A group that it does not lead: its parent's and this test's, which would end
        // too.
        let (mut family, pids) = Family::of(&["exec fork-tree 1 2 --print-ready"]);
        stop_leaving_none(&family.stranger(), Stop::new().with_grace(LONG).with_scope(Scope::Group));
        assert_eq!(living(&pids), [false, true, true]);
        assert_eq!(family.reap(), ended_by(Signal::TERM));
        pids.iter().for_each(|pid| sys::end(*pid));
    }
}

alone! {
    fn one_that_has_ended() {
        for scope in [Scope::Process, Scope::Group, Scope::Tree] {
            let mut family = Family::obeying();
            let stranger = family.stranger();
            family.order("exit 0");
            stranger.wait(Timeout::NEVER).unwrap();
            assert!(matches!(stranger.stop(stop_after_grace(scope)), Err(ProcessError::Gone(_))));
            family.reap();
            assert!(matches!(stranger.stop(stop_after_grace(scope)), Err(ProcessError::Gone(_))));
            assert_eq!(stranger.exit(), Some(Exit::Code(0)));
        }
    }
}

alone! {
    fn another_users() {
        if !test_support::root_or_skip("another_users") { return; }
        let families: Vec<Family> = (0..3).map(|_| Family::obeying()).collect();
        sys::become_user(65534);
        for (family, scope) in families.iter().zip([Scope::Process, Scope::Group, Scope::Tree]) {
            let stranger = family.stranger();
            let error = stranger.stop(stop_after_grace(scope)).unwrap_err();
            assert_eq!(error.errno(), libc::EPERM, "{error}");
            assert!(error.to_string().contains(&family.child.to_string()), "{error}");
            assert!(stranger.is_alive());
        }
    }
}

alone! {
    fn our_own_child() {
        for (args, signal) in [
            (&["fork-tree", "1", "1", "--print-ready"], Signal::TERM),
            (&["fork-tree", "1", "1", "--print-ready"], Signal::INT),
        ] {
            let mut child = Command::new(test_children::path())
                .args(args).process_group(0).stdout(Stdio::piped()).spawn().unwrap();
            let pids = test_support::ready_line(child.stdout.as_mut().unwrap());
            let process = Process::of_child(&child).unwrap();
            stop_leaving_none(&process, Stop::new().with_signal(signal).with_grace(LONG));
            assert!(living(&pids).iter().all(|lives| !lives));
            // The zombie is this process's to reap, and was not reaped.
            assert_eq!(test_support::state(pids[0]), Some('Z'));
            assert_eq!(process.wait_for(Event::Reaped, Duration::ZERO).unwrap(), None);
            assert_eq!(process.exit(), Some(ended_by(signal)));
            assert_eq!(child.wait().unwrap().signal(), Some(signal.number()));
            assert!(process.wait_for(Event::Reaped, Timeout::NEVER).unwrap().is_some());
        }
    }
}

alone! {
    fn one_without_its_first_thread() {
        // A process shown as a zombie that is alive.
        for scope in [Scope::Process, Scope::Group, Scope::Tree] {
            let mut family = Family::obeying();
            let stranger = family.stranger();
            family.ask("leader-exit", "left");
            test_support::eventually(|| test_support::state(family.child) == Some('Z'));
            assert!(stranger.is_alive());
            stop_leaving_none(&stranger, Stop::new().with_grace(LONG).with_scope(scope));
            assert_eq!(family.reap().signal(), Some(Signal::TERM));
        }
    }
}

alone! {
    fn one_that_stands_still() {
        for scope in [Scope::Process, Scope::Group, Scope::Tree] {
            let mut family = Family::obeying();
            let stranger = family.stranger();
            stranger.signal(Signal::STOP).unwrap();
            test_support::eventually(|| test_support::state(family.child) == Some('T'));
            stop_leaving_none(&stranger, stop_after_grace(scope));
            assert!(family.reap().signal().is_some());
            if !test_support::family::may_trace_or_skip("one_that_stands_still") { continue; }
            // Held by a debugger that does not let it go.
            let mut family = Family::obeying();
            let mut tracer = Family::obeying();
            let stranger = family.stranger();
            tracer.ask(&format!("trace {}", family.child), "traced");
            stop_leaving_none(&stranger, stop_after_grace(scope));
            drop(tracer);
            assert!(family.reap().signal().is_some());
        }
    }
}

alone! {
    fn while_others_wait() {
        let (mut family, _) = Family::of(&["exec ignore-term --print-ready"]);
        let stranger = family.stranger();
        let waiters: Vec<_> = [Event::Exited, Event::Reaped].into_iter().map(|event| {
            let stranger = stranger.clone();
            std::thread::spawn(move || stranger.wait_for(event, Timeout::NEVER).unwrap())
        }).collect();
        // Two stops at once: either may find that the process has ended.
        std::thread::scope(|scope| {
            let stops: Vec<_> = (0..2).map(|_| scope.spawn(|| stranger.stop(stop_after_grace(Scope::Tree)))).collect();
            for stop in stops {
                match stop.join().unwrap() {
                    Ok(survivors) => assert!(survivors.is_empty(), "{survivors:?}"),
                    Err(error) => assert!(matches!(error, ProcessError::Gone(_)), "{error}"),
                }
            }
        });
        let truth = family.reap();
        assert_eq!(truth, ended_by(Signal::KILL));
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Some(truth));
        }
    }
}

/// Stops a tree in a sandbox that answers `calls` with `errno`.
#[track_caller]
fn stop_where(calls: &[i64], errno: i32) {
    let (mut family, pids) = Family::of(&["exec fork-tree 2 2 --ignore-term --print-ready"]);
    sys::deny(calls, errno);
    stop_leaving_none(&family.stranger(), stop_after_grace(Scope::Tree));
    assert!(living(&pids).iter().all(|lives| !lives));
    assert_eq!(family.reap(), ended_by(Signal::KILL));
}

alone! {
    fn where_signals_by_pidfd_are_denied_in_any_words() {
        stop_where(&[libc::SYS_pidfd_send_signal], libc::EACCES);
    }
}

alone! {
    fn where_pidfds_are_denied_as_if_no_process_were_there() {
        stop_where(&[libc::SYS_pidfd_open], libc::EINVAL);
    }
}

alone! {
    fn where_pidfds_are_denied_as_if_all_were_gone() {
        stop_where(&[libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal], libc::ESRCH);
    }
}

alone! {
    fn where_all_signals_are_denied() {
        let family = Family::obeying();
        let process = family.stranger();
        sys::deny(&[libc::SYS_pidfd_send_signal, libc::SYS_kill], libc::EACCES);
        let target = StopTarget {
            root: process.proc_id(),
            pipes: Vec::new(),
            session: None,
            orphans: Orphans::Unknown,
        };
        let before = time::thread_cpu();
        let survivors = process.stop_all(stop_after_grace(Scope::Process), target, None);
        let spent = time::thread_cpu() - before;
        assert_eq!(survivors.len(), 1, "{survivors:?}");
        assert_eq!(survivors[0].pid, Some(family.child));
        // A process that keeps being found is worth a second of it.
        assert!(spent < Duration::from_millis(500), "{spent:?} for one that nothing can end");
    }
}
