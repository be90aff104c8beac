//! The number of a process that has ended goes to another process: a handle of the
//! first neither takes the second for the first nor harms it.
//!
//! These tests run in a pid namespace of their own, where they choose the next number.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use test_support::alone;

use procwright_os::time::Timeout;
use procwright_process::Process;
use procwright_process::holders::{self, PipeId};
use procwright_process::wait::{Event, WaitSet, Want};
use procwright_process::{Exit, ProcessError, Signal, Unknown};
use test_support::family::{Family, kernel, remembers};
use test_support::{scaled, sys};

/// Runs `body` as the first process of a new pid namespace with its own `/proc`.
fn in_pid_namespace(test: &str, body: impl FnOnce()) {
    if !test_support::root_or_skip(test) {
        return;
    }
    if !sys::unshare_pids() {
        test_support::skip(test, "no pid namespace may be made here");
        return;
    }
    let status = sys::in_fork(|| {
        sys::mount_proc();
        assert_eq!(std::process::id(), 1);
        body();
        0
    });
    assert_eq!(status, 0, "it failed in the namespace");
}

/// Makes the kernel give this number to the next process.
fn set_next_pid(pid: i32) {
    std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
}

/// Forks a process with this number that pauses.
fn fork_with_pid(pid: i32) -> i32 {
    set_next_pid(pid);
    assert_eq!(sys::fork_pausing(), pid);
    pid
}

fn assert_gone<T: std::fmt::Debug>(answer: Result<T, ProcessError>) {
    assert!(matches!(answer, Err(ProcessError::Gone(_))), "{answer:?}");
}

/// `old` has ended with `truth`, and another process has its number now.
fn assert_not_the_newcomer(old: &Process, truth: Exit, told_before: bool) {
    let new = Process::open(old.pid()).unwrap();
    assert!(new.is_alive() && new != *old);
    assert!(!old.is_alive());
    assert_gone(old.signal(Signal::KILL));
    assert_gone(old.stop(Default::default()));
    assert_gone(old.name());
    assert_gone(old.exe());
    assert_gone(old.start_time());
    if old.id().inode().is_some() {
        assert_gone(Process::open_id(old.id()));
        assert_ne!(old.id(), new.id());
    }
    // Both waits return; the watchdog ends the test if they do not.
    for event in [Event::Exited, Event::Reaped] {
        assert!(old.wait_for(event, Timeout::NEVER).unwrap().is_some());
        let mut set = WaitSet::new().unwrap();
        set.add(&new, event).unwrap();
        let key = set.add(old, event).unwrap();
        let waited = set.wait(Want::Any, None).unwrap();
        assert_eq!(waited.ended, [(key, old)]);
    }
    match old.exit().unwrap() {
        Exit::Unknown(Unknown::NotTold)
            if !told_before && (old.pidfd().is_none() || !remembers()) => {}
        told => assert_eq!(told, truth),
    }
    assert!(new.is_alive());
    assert_eq!(new.exit(), None);
    assert_eq!(new.wait(std::time::Duration::ZERO).unwrap(), None);
}

/// Start times have a resolution of 10 ms, and without a pidfd a process is known by
/// its number and start time alone.
fn wait_for_next_tick() {
    let now = || {
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
        uptime.split(' ').next().unwrap().to_owned()
    };
    let before = now();
    test_support::eventually(|| now() != before);
}

/// A child of this process has a number, and after it another child.
fn children_reuse(rounds: u64, denied: bool) {
    for round in 0..rounds {
        // Numbers far apart: threads of this process take the numbers behind each.
        let pid = 1000 + (round % 7) as i32 * 100;
        set_next_pid(pid);
        let (victim, truth) = match round % 3 {
            0 => (sys::fork_exiting(0), Exit::Code(0)),
            1 => (sys::fork_exiting(77), Exit::Code(77)),
            _ => {
                let killed = Exit::Signal {
                    signal: Signal::KILL,
                    core: false,
                };
                (sys::fork_pausing(), killed)
            }
        };
        assert_eq!(victim, pid);
        let old = Process::open(pid).unwrap();
        let late = Process::open(pid).unwrap();
        assert_eq!(old.pidfd().is_none(), denied);
        if round % 3 == 2 {
            old.signal(Signal::KILL).unwrap();
        }
        if round % 2 == 0 {
            assert_eq!(old.wait(Timeout::NEVER).unwrap(), Some(truth));
        }
        sys::reap(pid);
        if denied {
            wait_for_next_tick();
        }
        fork_with_pid(pid);
        assert_not_the_newcomer(&old, truth, round % 2 == 0);
        assert_not_the_newcomer(&late, truth, false);
        sys::kill(pid, libc::SIGTERM);
        // The newcomer has got this signal and no other.
        assert_eq!(sys::reap(pid), libc::SIGTERM);
    }
}

/// A process that is not a child has a number, and after it a child has it.
fn strangers_reuse(rounds: u64, denied: bool) {
    for round in 0..rounds {
        let pid = 2001 + (round % 7) as i32 * 100;
        set_next_pid(pid - 1);
        let mut family = Family::obeying();
        assert_eq!(family.child, pid);
        let (old, late) = (family.stranger(), family.stranger());
        assert_eq!(old.pidfd().is_none(), denied);
        family.order("exit 5");
        if round % 2 == 0 {
            assert_eq!(old.wait(Timeout::NEVER).unwrap(), Some(Exit::Code(5)));
        }
        let truth = family.reap();
        if denied {
            wait_for_next_tick();
        }
        fork_with_pid(pid);
        assert_not_the_newcomer(&old, truth, round % 2 == 0);
        assert_not_the_newcomer(&late, truth, false);
        sys::kill(pid, libc::SIGTERM);
        assert_eq!(sys::reap(pid), libc::SIGTERM);
    }
}

/// The newcomer ends as well, and its status can be seen.
fn a_zombie_has_the_number(rounds: u64, denied: bool) {
    for round in 0..rounds {
        let pid = 1500 + (round % 7) as i32 * 100;
        set_next_pid(pid);
        assert_eq!(sys::fork_exiting(5), pid);
        let old = Process::open(pid).unwrap();
        assert_eq!(old.pidfd().is_none(), denied);
        sys::reap(pid);
        if denied {
            wait_for_next_tick();
        }
        fork_with_pid(pid);
        let new = Process::open(pid).unwrap();
        sys::kill(pid, libc::SIGTERM);
        test_support::eventually(|| test_support::state(pid) == Some('Z'));
        match old.exit().unwrap() {
            Exit::Unknown(Unknown::NotTold) if denied || !remembers() => {}
            told => assert_eq!(told, Exit::Code(5)),
        }
        assert_eq!(new.exit().unwrap().signal(), Some(Signal::TERM));
        assert_gone(old.signal(Signal::TERM));
        assert_gone(old.name());
        sys::reap(pid);
        // Without a pidfd the kernel's memory cannot be asked either.
        match new.exit().unwrap() {
            Exit::Unknown(Unknown::NotTold) if denied || !remembers() => {}
            told => assert_eq!(told.signal(), Some(Signal::TERM)),
        }
    }
}

/// A process that held a pipe had a number, and after it another that holds the pipe as well.
fn holders_reuse(denied: bool) {
    let (read, _write) = std::io::pipe().unwrap();
    let pipe = [PipeId::of(&read).unwrap()];
    let find = |pid| {
        let ends = holders::of_pipes_among(&pipe, &[pid]);
        ends[0].writers.list[0].clone()
    };
    let pid = fork_with_pid(1300);
    let holder = find(pid);
    let process = holder.process().unwrap();
    assert_eq!(process.pidfd().is_none(), denied);
    assert!(process.is_alive() && process == Process::open(pid).unwrap());
    process.signal(Signal::KILL).unwrap();
    process.wait(Timeout::NEVER).unwrap();
    // It has ended, and its number is its own still.
    assert_gone(holder.process());
    sys::reap(pid);
    assert_gone(holder.process());
    wait_for_next_tick();
    fork_with_pid(pid);
    assert_gone(holder.process());
    assert_ne!(find(pid), holder);
    find(pid).process().unwrap().signal(Signal::TERM).unwrap();
    assert_eq!(sys::reap(pid), libc::SIGTERM);
}

/// Kernels before 5.3.
fn deny_pidfds() {
    sys::deny(
        &[libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal],
        libc::ENOSYS,
    );
}

alone! {
    fn a_number_that_our_child_had() {
        in_pid_namespace("a_number_that_our_child_had", || children_reuse(scaled(300, 10_000), false));
    }
}

alone! {
    fn a_number_that_a_stranger_had() {
        in_pid_namespace("a_number_that_a_stranger_had", || strangers_reuse(scaled(30, 1000), false));
    }
}

alone! {
    fn a_number_that_a_holder_had() {
        in_pid_namespace("a_number_that_a_holder_had", || holders_reuse(false));
    }
}

alone! {
    fn a_number_that_a_holder_had_without_pidfds() {
        in_pid_namespace("a_number_that_a_holder_had_without_pidfds", || {
            deny_pidfds();
            holders_reuse(true);
        });
    }
}

alone! {
    fn all_numbers_once_around() {
        if kernel() < (6, 14) {
            test_support::skip("all_numbers_once_around", "the number of numbers is the whole machine's here");
            return;
        }
        in_pid_namespace("all_numbers_once_around", || {
            std::fs::write("/proc/sys/kernel/pid_max", "400").unwrap();
            // The kernel starts again at 300.
            set_next_pid(350);
            for _ in 0..scaled(3, 200) {
                let pid = sys::fork_exiting(3);
                let old = Process::open(pid).unwrap();
                sys::reap(pid);
                let mut forks = 0;
                let again = loop {
                    forks += 1;
                    assert!(forks < 400, "{pid} does not come again");
                    match sys::fork_pausing() {
                        again if again == pid => break again,
                        other => {
                            sys::kill(other, libc::SIGKILL);
                            sys::reap(other);
                        }
                    }
                };
                assert_not_the_newcomer(&old, Exit::Code(3), false);
                sys::kill(again, libc::SIGTERM);
                assert_eq!(sys::reap(again), libc::SIGTERM);
            }
        });
    }
}

alone! {
    fn signals_that_race_with_the_reap() {
        in_pid_namespace("signals_that_race_with_the_reap", || {
            let target: Arc<Mutex<Option<Process>>> = Arc::default();
            let (over, shots) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
            let shooter = {
                let (target, over, shots) = (target.clone(), over.clone(), shots.clone());
                std::thread::spawn(move || {
                    let mut hits = 0_u64;
                    while !over.load(Ordering::Relaxed) {
                        let process = target.lock().unwrap().clone();
                        let Some(process) = process else { continue };
                        match process.signal(Signal::KILL) {
                            Ok(()) => hits += 1,
                            Err(ProcessError::Gone(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                        shots.fetch_add(1, Ordering::Release);
                    }
                    hits
                })
            };
            let rounds = scaled(1_000, 100_000);
            for round in 0..rounds {
                let pid = 3000 + (round % 5) as i32 * 100;
                set_next_pid(pid);
                // Some of the processes end by themselves meanwhile.
                let victim = if round % 2 == 0 { sys::fork_pausing() } else { sys::fork_exiting(0) };
                assert_eq!(victim, pid);
                *target.lock().unwrap() = Some(Process::open(pid).unwrap());
                // Killed without the lock, as by an owner that knows nothing of the
                // shooter.
                sys::kill(pid, libc::SIGKILL);
                sys::reap(pid);
                fork_with_pid(pid);
                // Two more shots: one at the wrong process would have hit the newcomer by now.
                let before = shots.load(Ordering::Acquire);
                test_support::eventually(|| shots.load(Ordering::Acquire) > before + 1);
                sys::kill(pid, libc::SIGTERM);
                assert_eq!(sys::reap(pid), libc::SIGTERM, "round {round}: the newcomer was hit");
            }
            over.store(true, Ordering::Relaxed);
            let hits = shooter.join().unwrap();
            assert!(hits > 0, "no shot ever came before the reap");
            test_support::figure(&format!("{rounds} reaps raced with {} signals, {hits} in time", shots.load(Ordering::Relaxed)));
        });
    }
}

alone! {
    fn a_number_that_a_zombie_has() {
        in_pid_namespace("a_number_that_a_zombie_has", || a_zombie_has_the_number(scaled(100, 5_000), false));
    }
}

alone! {
    fn a_number_that_a_zombie_has_without_pidfds() {
        in_pid_namespace("a_number_that_a_zombie_has_without_pidfds", || {
            deny_pidfds();
            a_zombie_has_the_number(scaled(20, 500), true);
        });
    }
}

alone! {
    fn a_number_that_our_child_had_without_pidfds() {
        in_pid_namespace("a_number_that_our_child_had_without_pidfds", || {
            deny_pidfds();
            children_reuse(scaled(30, 1_000), true);
        });
    }
}

alone! {
    fn a_number_that_a_stranger_had_without_pidfds() {
        in_pid_namespace("a_number_that_a_stranger_had_without_pidfds", || {
            deny_pidfds();
            strangers_reuse(scaled(10, 300), true);
        });
    }
}
