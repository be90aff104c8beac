//! From SIGKILL until it is known.

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc;
use std::time::Duration;

use procwright::liveness::{Monitor, State};
use procwright::time::Timeout;
use procwright_bench::subject_wait::now_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::peer::Peer;

/// Ends when the peer has. It borrows nothing, so that a thread can have it.
type Watch = Box<dyn FnOnce() + Send>;

/// A way to learn of the end, and how it is prepared.
type Way = (&'static str, fn(&Peer) -> Watch);

/// In turn, a peer for each: so all meet the same machine.
const WAYS: [Way; 6] = [
    ("alive, spinning", |peer| {
        let monitor = token(peer);
        Box::new(move || spin(&monitor))
    }),
    ("wait", |peer| {
        let monitor = token(peer);
        Box::new(move || assert_eq!(monitor.wait(Timeout::NEVER), Some(State::Died)))
    }),
    ("alive process, spinning", |peer| {
        drop(token(peer));
        let monitor = Monitor::of_process(&peer.process).expect("a monitor");
        Box::new(move || spin(&monitor))
    }),
    ("wait process", |peer| {
        drop(token(peer));
        let monitor = Monitor::of_process(&peer.process).expect("a monitor");
        Box::new(move || assert_eq!(monitor.wait(Timeout::NEVER), Some(State::Died)))
    }),
    ("poll, pidfd", |peer| {
        drop(token(peer));
        let pidfd = pidfd(peer);
        Box::new(move || while !readable(&pidfd, None) {})
    }),
    ("poll, pidfd, spinning", |peer| {
        drop(token(peer));
        let pidfd = pidfd(peer);
        Box::new(move || while !readable(&pidfd, Some(&Timespec::default())) {})
    }),
];

/// `KILLS MIB`: prints the microseconds of each way.
pub(crate) fn run(kills: u64, mib: u64) {
    let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for turn in 0..kills {
        for at in 0..WAYS.len() {
            let (name, way) = WAYS[(at + turn as usize) % WAYS.len()];
            let mut peer = Peer::start(mib);
            let watch = way(&peer);
            let (begins, begun) = mpsc::channel();
            let watching = std::thread::spawn(move || {
                begins.send(()).expect("the caller");
                watch();
                now_ns()
            });
            begun.recv().expect("the watching thread");
            settle(turn);
            let killed = peer.kill();
            let seen = watching.join().expect("the watching thread");
            peer.reap();
            found
                .entry(name)
                .or_default()
                .push((seen - killed) as f64 / 1e3);
        }
    }
    print(&found);
}

/// Long enough to be asleep, at no preferred moment of the clock.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when another thread sleeps"
)]
pub(crate) fn settle(turn: u64) {
    std::thread::sleep(Duration::from_micros(2_000 + turn * 377 % 1_000));
}

/// One line of JSON.
pub(crate) fn print(found: &BTreeMap<&str, Vec<f64>>) {
    // Names and figures are written as JSON writes them.
    let fields: Vec<String> = found
        .iter()
        .map(|(name, figures)| format!("{name:?}: {figures:?}"))
        .collect();
    procwright_bench::subject_wait::print(&format!("{{{}}}", fields.join(", ")));
}

/// A monitor of its token. Everybody waits for the token, whether it is used or
/// not: it comes when the peer has its memory.
pub(crate) fn token(peer: &Peer) -> Monitor {
    Monitor::accept(peer.invitation()).expect("a monitor")
}

pub(crate) fn pidfd(peer: &Peer) -> OwnedFd {
    let pid = Pid::from_child(&peer.child);
    pidfd_open(pid, PidfdFlags::empty()).expect("pidfd_open")
}

fn spin(monitor: &Monitor) {
    while monitor.alive() {
        std::hint::spin_loop();
    }
    assert_eq!(monitor.state(), State::Died);
}

pub(crate) fn readable(pidfd: &OwnedFd, timeout: Option<&Timespec>) -> bool {
    let file: BorrowedFd<'_> = std::os::fd::AsFd::as_fd(pidfd);
    let ready = poll(
        &mut [PollFd::from_borrowed_fd(file, PollFlags::IN)],
        timeout,
    );
    matches!(ready, Ok(1))
}
