//! Thousands of peers without a token, one thread that watches them all, and no
//! wake-ups without a cause.

use std::time::Duration;
use test_support::alone;

use procwright_liveness::{Monitor, State};
use procwright_process::Process;
use test_support::sys;

const WATCHER: &str = "procwright-watc";

alone! {
    fn thousands_of_peers_and_one_thread() {
        // Each process takes one descriptor, and each has one monitor.
        let most = sys::all_files().saturating_sub(200);
        let wanted = test_support::scaled(2_000, 10_000);
        let count = wanted.min(most);
        if count < wanted {
            test_support::skip("thousands_of_peers_and_one_thread", "too few descriptors may be open");
        }
        let peers: Vec<Process> = (0..count)
            .map_while(|_| sys::try_fork_pausing())
            .map(|pid| Process::open(pid).unwrap())
            .collect();
        if (peers.len() as u64) < count {
            test_support::skip("thousands_of_peers_and_one_thread", "too few processes may be had");
        }
        let monitors: Vec<Monitor> = peers
            .iter()
            .map(|peer| Monitor::of_process(peer).unwrap())
            .collect();
        assert!(monitors.iter().all(Monitor::alive));
        let pass = |time| assert_eq!(peers[0].wait(time).unwrap(), None);
        let before = test_support::settled(WATCHER, 1, pass);
        let looks = procwright_process::wait::stats().looks;
        pass(Duration::from_secs(1));
        assert_eq!(test_support::sleeps_of(WATCHER, 1), before, "it woke up for nothing");
        // Half of the monitors are dropped.
        let mut monitors = monitors;
        let rest = monitors.split_off(monitors.len() / 2);
        drop(monitors);
        let (gone, left) = peers.split_at(peers.len() / 2);
        for peer in left {
            sys::kill(peer.pid(), libc::SIGKILL);
        }
        for monitor in &rest {
            assert_eq!(monitor.wait(None), Some(State::Died));
            assert!(!monitor.alive());
        }
        for peer in gone {
            sys::kill(peer.pid(), libc::SIGKILL);
        }
        for peer in &peers {
            sys::reap(peer.pid());
        }
        drop(rest);
        assert_eq!(procwright_process::wait::stats().looks, looks, "polled");
        test_support::figure(&format!("{} peers, no wake-up in an idle second", peers.len()));
    }
}

alone! {
    fn all_are_told_without_being_asked() {
        let peers: Vec<Process> = (0..500)
            .map(|_| Process::open(sys::fork_pausing()).unwrap())
            .collect();
        let monitors: Vec<Monitor> = peers
            .iter()
            .map(|peer| Monitor::of_process(peer).unwrap())
            .collect();
        for peer in &peers {
            sys::kill(peer.pid(), libc::SIGKILL);
        }
        // `alive` is one load: it makes no system call.
        test_support::eventually(|| !monitors.iter().any(Monitor::alive));
        for peer in &peers {
            sys::reap(peer.pid());
        }
    }
}
