//! The threads with descriptor tables of their own are woken by a signal, which
//! the host can take away or forbid.

mod common;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::sys;
use procwright::wait::{Event, Mechanism, Want};
use procwright::{Process, WaitSet};

fn hog() -> Vec<File> {
    let mut hogs: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    hogs.truncate(hogs.len() - 5);
    hogs
}

fn comes_and_goes(rounds: u64) -> Option<Mechanism> {
    let child = sys::fork_pausing();
    let hogs = hog();
    let process = Process::open(child).unwrap();
    let mut set = WaitSet::new().unwrap();
    let key = set.add(process.clone(), Event::Exited).unwrap();
    let mechanism = set.mechanism(key);
    for _ in 0..rounds {
        let key = set.add(process.clone(), Event::Exited).unwrap();
        assert!(set.remove(key).is_some());
    }
    sys::kill(child, libc::SIGKILL);
    assert_eq!(set.wait(Want::All, None).unwrap().ended.len(), 1);
    sys::reap(child);
    drop(hogs);
    mechanism
}

alone! {
    fn the_host_ignores_the_signal_again_and_again() {
        // Which throws away those that are under way, also blocked ones.
        sys::limit_files(40);
        let stop = Arc::new(AtomicBool::new(false));
        let host = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                while !stop.load(Ordering::Relaxed) {
                    sys::ignore(libc::SIGURG);
                }
            }
        });
        // Either may serve: a thread that does not answer is passed over. What
        // must not be is a call that never returns.
        let mechanism = comes_and_goes(common::scaled(40, 2_000));
        let sleeps = [Mechanism::OwnTable, Mechanism::ChildThread];
        assert!(mechanism.is_some_and(|one| sleeps.contains(&one)), "{mechanism:?}");
        stop.store(true, Ordering::Relaxed);
        host.join().unwrap();
    }
}

alone! {
    fn no_signal_may_be_sent_to_a_thread() {
        sys::deny(&[libc::SYS_tgkill], libc::EPERM);
        sys::limit_files(40);
        let mechanism = comes_and_goes(10);
        assert_eq!(mechanism, Some(Mechanism::ChildThread));
    }
}

alone! {
    fn no_signal_may_be_sent_any_more() {
        sys::limit_files(40);
        let child = sys::fork_pausing();
        let hogs = hog();
        let process = Process::open(child).unwrap();
        let mut set = WaitSet::new().unwrap();
        let key = set.add(process.clone(), Event::Exited).unwrap();
        assert_eq!(set.mechanism(key), Some(Mechanism::OwnTable));
        sys::deny(&[libc::SYS_tgkill], libc::EPERM);
        let key = set.add(process.clone(), Event::Exited).unwrap();
        assert_eq!(set.mechanism(key), Some(Mechanism::ChildThread));
        sys::kill(child, libc::SIGKILL);
        assert_eq!(set.wait(Want::All, None).unwrap().ended.len(), 2);
        sys::reap(child);
        drop(hogs);
    }
}
