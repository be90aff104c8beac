//! The threads with descriptor tables of their own are woken by a signal, which the
//! host can take away or forbid.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use test_support::alone;

use procwright_process::Process;
use procwright_process::wait::WaitSet;
use procwright_process::wait::{Event, Mechanism, Want};
use test_support::sys;

fn hog_descriptors() -> Vec<File> {
    let mut hogs: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    hogs.truncate(hogs.len() - 5);
    hogs
}

fn add_wait_and_remove(rounds: u64) -> Option<Mechanism> {
    let child = sys::fork_pausing();
    let hogs = hog_descriptors();
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
        // A change of the signal's action discards pending ones, blocked ones too.
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
        // Either mechanism is right: a thread that does not answer is passed over. A
        // call that never returns would be wrong.
        let mechanism = add_wait_and_remove(test_support::scaled(40, 2_000));
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
        let mechanism = add_wait_and_remove(10);
        assert_eq!(mechanism, Some(Mechanism::ChildThread));
    }
}

alone! {
    fn no_signal_may_be_sent_any_more() {
        sys::limit_files(40);
        let child = sys::fork_pausing();
        let hogs = hog_descriptors();
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
