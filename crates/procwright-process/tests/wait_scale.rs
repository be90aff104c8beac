//! Many processes at once: each end is seen once, and no thread runs meanwhile.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_process::Cancel;
use procwright_process::Process;
use procwright_process::wait::{Event, Key, Mechanism, Outcome, WaitSet, Want, stats};
use procwright_process::{Exit, Signal};
use test_support::{Census, scaled, sys};

/// `count` pausing children, or as many as can be watched at once with three
/// descriptors each.
fn pausing_children(count: u64) -> Vec<Process> {
    let most = (sys::all_files() - 200) / 3;
    (0..count.min(most))
        .map(|_| Process::open(sys::fork_pausing()).unwrap())
        .collect()
}

fn kill_and_reap_all(crowd: &[Process]) {
    for process in crowd {
        sys::kill(process.pid(), libc::SIGKILL);
    }
    for process in crowd {
        sys::reap(process.pid());
    }
}

alone! {
    fn a_mass_exit() {
        let before = Census::now();
        let count = scaled(2_000, 5_000);
        for want in [Want::Any, Want::All, Want::First(700), Want::First(1)] {
            let looks = stats().looks;
            let crowd = pausing_children(count);
            let count = crowd.len();
            let mut set = WaitSet::new().unwrap();
            let keys: BTreeSet<Key> = crowd.iter()
                .map(|process| set.add(process, Event::Exited).unwrap())
                .collect();
            assert!(keys.iter().all(|key| set.mechanism(*key) == Some(Mechanism::Pidfd)));
            let sleeps = sys::sleeps();
            let (waits, seen) = std::thread::scope(|scope| {
                scope.spawn(|| for process in &crowd {
                    sys::kill(process.pid(), libc::SIGKILL);
                });
                let mut seen = BTreeSet::new();
                let mut waits = 0_u64;
                while !set.is_empty() {
                    let waited = set.wait(want, None).unwrap();
                    waits += 1;
                    assert_eq!(waited.outcome, Outcome::Satisfied);
                    assert!(!waited.ended.is_empty());
                    if let Want::First(most) = want {
                        assert!(waited.ended.len() <= most);
                    }
                    for (key, process) in waited.ended {
                        assert!(seen.insert(key), "{key:?} came twice");
                        assert_eq!(process.exit(), Some(Exit::Signal { signal: Signal::KILL, core: false }));
                    }
                }
                (waits, seen)
            });
            assert_eq!(seen, keys);
            let slept = sys::sleeps() - sleeps;
            test_support::figure(&format!("{count} exits, {want:?}: {waits} waits, {slept} sleeps"));
            kill_and_reap_all(&crowd);
            assert_eq!(stats().looks, looks, "polled");
        }
        before.comes_back();
    }
}

alone! {
    fn exited_and_reaped_of_many() {
        let crowd = pausing_children(scaled(300, 3_000));
        let mut set = WaitSet::new().unwrap();
        for process in &crowd {
            set.add(process, Event::Reaped).unwrap();
            set.add(process, Event::Exited).unwrap();
            set.add(process, Event::Reaped).unwrap();
        }
        let all = set.len();
        for process in &crowd { sys::kill(process.pid(), libc::SIGKILL); }
        let waited = set.wait(Want::First(crowd.len()), None).unwrap();
        assert_eq!((waited.ended.len(), set.len()), (all / 3, all / 3 * 2));
        // All are zombies, and none is reaped.
        let waited = set.wait(Want::Any, Duration::from_millis(20)).unwrap();
        assert_eq!(waited.outcome, Outcome::TimedOut);
        for process in &crowd { sys::reap(process.pid()); }
        assert_eq!(set.wait(Want::All, Duration::ZERO).unwrap().ended.len(), all / 3 * 2);
    }
}

alone! {
    fn sleeping_is_all_that_a_wait_does() {
        // 10 s may take three sleeps: one for the timeout, and two for the machine
        // (page faults, a lock of the allocator).
        let time = Duration::from_secs(scaled(3, 10));
        let child = Process::open(sys::fork_pausing()).unwrap();
        let cancel = Cancel::new().unwrap();
        for event in [Event::Exited, Event::Reaped] {
            let before = sys::sleeps();
            assert_eq!(child.wait_for(event, time).unwrap(), None);
            let one = sys::sleeps() - before;
            let mut set = WaitSet::new().unwrap();
            set.cancel_on(cancel.clone()).unwrap();
            set.add(&child, event).unwrap();
            let before = sys::sleeps();
            assert_eq!(set.wait(Want::All, time).unwrap().outcome, Outcome::TimedOut);
            let many = sys::sleeps() - before;
            test_support::figure(&format!("waits of {time:?} for {}: {one} and {many} sleeps", event.name()));
            assert!(one <= 3 && many <= 3);
        }
        kill_and_reap_all(&[child]);
    }
}

alone! {
    fn a_crowd_that_lives_costs_nothing() {
        let crowd = pausing_children(1_200);
        let mut set = WaitSet::new().unwrap();
        for process in &crowd {
            set.add(process, Event::Exited).unwrap();
        }
        for want in [Want::Any, Want::All, Want::First(300)] {
            let (sleeps, begun) = (sys::sleeps(), Instant::now());
            let waited = set.wait(want, Duration::from_secs(2)).unwrap();
            assert!(begun.elapsed() >= Duration::from_secs(2));
            assert_eq!(waited.outcome, Outcome::TimedOut);
            let slept = sys::sleeps() - sleeps;
            test_support::figure(&format!("{} that live, {want:?} for 2 s: {slept} sleeps", crowd.len()));
            assert!(slept < 10, "{slept} sleeps");
        }
        // One process ends, and no other is looked at.
        let sleeps = sys::sleeps();
        std::thread::scope(|scope| {
            scope.spawn(|| sys::kill(crowd[crowd.len() / 2].pid(), libc::SIGKILL));
            assert_eq!(set.wait(Want::Any, None).unwrap().ended.len(), 1);
        });
        let slept = sys::sleeps() - sleeps;
        assert!(slept < 10, "{slept} sleeps");
        drop(set);
        kill_and_reap_all(&crowd);
    }
}

alone! {
    fn idle_waits_do_not_wake() {
        // Two threads wait: the kernel's counts of their context switches must be equal
        // at two moments.
        let child = Process::open(sys::fork_pausing()).unwrap();
        let cancel = Cancel::new().unwrap();
        let other = child.clone();
        let waiters = [
            std::thread::spawn({
                let child = child.clone();
                move || {
                    child.wait(None).unwrap();
                }
            }),
            std::thread::spawn({
                let cancel = cancel.clone();
                move || {
                    let mut set = WaitSet::new().unwrap();
                    set.cancel_on(cancel).unwrap();
                    set.add(other.clone(), Event::Reaped).unwrap();
                    set.add(other, Event::Exited).unwrap();
                    set.wait(Want::All, Duration::from_secs(3600)).unwrap();
                }
            }),
        ];
        // The allocations and the start of a thread are over once both threads sleep in
        // a poll.
        let me = sys::thread_id();
        let waiting = || test_support::polling_threads(me);
        test_support::eventually(|| waiting().len() == waiters.len());
        let before = waiting();
        // Time in which something could go wrong.
        assert_eq!(child.wait(Duration::from_secs(scaled(1, 10))).unwrap(), None);
        assert_eq!(waiting(), before, "a waiting thread was woken");
        cancel.cancel();
        kill_and_reap_all(&[child]);
        for waiter in waiters { waiter.join().unwrap(); }
    }
}
