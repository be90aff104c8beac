//! Several who sleep until the same peer dies.

use std::collections::BTreeMap;
use std::sync::mpsc;

use procwright::liveness::{Monitor, State};
use procwright::time::Timeout;
use procwright_bench::subject_wait::now_ns;

use crate::latency::{pidfd, print, readable, settle, token};
use crate::peer::Peer;

/// `KILLS WAITERS`: prints the microseconds until the first was awake, and the
/// last. That all were is part of it: it would not end.
pub(crate) fn run(kills: u64, waiters: u64) {
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for turn in 0..kills {
        let mut note = |names: [&'static str; 2], [first, last]: [f64; 2]| {
            found.entry(names[0]).or_default().push(first);
            found.entry(names[1]).or_default().push(last);
        };
        let peer = Peer::start(0);
        let monitor = token(&peer);
        let by_wait = || died(&monitor);
        note(
            ["wait: first", "wait: last"],
            all(peer, turn, waiters, by_wait),
        );
        let peer = Peer::start(0);
        drop(token(&peer));
        let pidfd = pidfd(&peer);
        let by_poll = || while !readable(&pidfd, None) {};
        note(
            ["poll, pidfd: first", "poll, pidfd: last"],
            all(peer, turn, waiters, by_poll),
        );
    }
    print(&found);
}

fn died(monitor: &Monitor) {
    assert_eq!(monitor.wait(Timeout::NEVER), Some(State::Died));
}

/// How long after the kill the first and the last of them are awake.
fn all(mut peer: Peer, turn: u64, waiters: u64, watch: impl Fn() + Sync) -> [f64; 2] {
    let (killed, mut seen) = std::thread::scope(|scope| {
        let (begins, begun) = mpsc::channel();
        let watching: Vec<_> = (0..waiters)
            .map(|_| {
                let (watch, begins) = (&watch, begins.clone());
                scope.spawn(move || {
                    begins.send(()).expect("the caller");
                    watch();
                    now_ns()
                })
            })
            .collect();
        (0..waiters).for_each(|_| begun.recv().expect("a waiting thread"));
        settle(turn);
        let killed = peer.kill();
        let seen: Vec<u64> = watching
            .into_iter()
            .map(|thread| thread.join().expect("a waiting thread"))
            .collect();
        (killed, seen)
    });
    peer.reap();
    seen.sort_unstable();
    let late = |at: Option<&u64>| (at.expect("a waiter") - killed) as f64 / 1e3;
    [late(seen.first()), late(seen.last())]
}
