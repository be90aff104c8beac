//! Forks of a process that waits: a fork finds no lock held for ever, and reports what
//! it cannot know as unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use test_support::alone;

use procwright_process::Process;
use procwright_process::wait::Event;
use procwright_process::wait::WaitSet;
use test_support::family::Family;
use test_support::sys;

/// Forks over and over while other threads wait by other means than pidfds; each fork
/// uses what it inherits and waits itself.
fn forks_go_on(families: &[Family], process: &Process) {
    let stop = Arc::new(AtomicBool::new(false));
    let busy = std::thread::spawn({
        let (stop, process) = (Arc::clone(&stop), process.clone());
        move || {
            while !stop.load(Ordering::Relaxed) {
                let mut set = WaitSet::new().unwrap();
                set.add(process.clone(), Event::Exited).unwrap();
            }
        }
    });
    for _ in 0..test_support::scaled(300, 5000) {
        let mut set = WaitSet::new().unwrap();
        for family in families {
            set.add(family.stranger(), Event::Exited).unwrap();
        }
        let status = sys::in_fork(|| {
            // SIGALRM ends a fork that waits for a lock which no thread in it will
            // release.
            sys::default(libc::SIGALRM);
            sys::alarm(120);
            drop(set);
            let ended = process.wait(Duration::from_micros(1)).unwrap();
            i32::from(ended.is_some() || !process.is_alive())
        });
        assert_eq!(status, 0);
    }
    stop.store(true, Ordering::Relaxed);
    busy.join().unwrap();
}

alone! {
    fn of_who_polls() {
        sys::deny(&[libc::SYS_pidfd_open], libc::ENOSYS);
        let families: Vec<Family> = (0..3).map(|_| Family::obeying()).collect();
        let process = families[0].stranger();
        forks_go_on(&families, &process);
    }
}

alone! {
    fn of_who_has_threads_for_children() {
        sys::deny(&[libc::SYS_pidfd_open], libc::ENOSYS);
        let child = sys::fork_pausing();
        // A child of this process, and a sibling of each fork, in which it lives
        // nevertheless.
        let process = Process::open(child).unwrap();
        forks_go_on(&[], &process);
        sys::end(child);
        sys::kill(child, libc::SIGKILL);
        sys::reap(child);
    }
}

alone! {
    fn of_who_has_threads_with_tables() {
        sys::limit_files(40);
        let families: Vec<Family> = (0..2).map(|_| Family::obeying()).collect();
        let mut hogs: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        hogs.truncate(hogs.len() - 5);
        let process = families[0].stranger();
        assert!(process.pidfd().is_none());
        forks_go_on(&families, &process);
    }
}
