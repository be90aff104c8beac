//! Waits while the last descriptors go elsewhere, at each step of a wait.

use std::fs::File;
use std::time::Duration;
use test_support::alone;

use procwright_process::Exit;
use procwright_process::Process;
use procwright_process::wait::WaitSet;
use procwright_process::wait::{Event, Mechanism, Outcome, Want};
use test_support::family::Family;
use test_support::sys;

const LIMIT: u64 = 40;

/// Takes all descriptors but `left`.
fn hog_all_but(left: usize) -> Vec<File> {
    let mut hogs: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    hogs.truncate(hogs.len() - left);
    hogs
}

alone! {
    fn a_stranger_ends_when_there_is_none_to_look_at_it_with() {
        sys::limit_files(LIMIT);
        let family = Family::obeying();
        let hogs = hog_all_but(4);
        let process = family.stranger();
        assert!(process.pidfd().is_none());
        let mut set = WaitSet::new().unwrap();
        let key = set.add(process.clone(), Event::Exited).unwrap();
        assert_eq!(set.mechanism(key), Some(Mechanism::OwnTable));
        let late = hog_all_but(0);
        sys::kill(family.child, libc::SIGKILL);
        // The end was seen by the thread that has a pidfd. This thread has only the
        // number, by which the end cannot be seen, and would retry for ever.
        let waited = set.wait(Want::All, None).unwrap();
        assert_eq!(waited.ended.len(), 1);
        assert!(!process.is_alive());
        drop((hogs, late));
    }
}

alone! {
    fn any_number_of_them_is_enough_for_one_wait() {
        sys::limit_files(LIMIT);
        for left in 0..5 {
            let mut child = sys::fork_pausing_then_exiting(7);
            let hogs = hog_all_but(0);
            let process = Process::open(child).unwrap();
            assert!(process.pidfd().is_none());
            drop(hogs);
            let hogs = hog_all_but(left);
            for event in [Event::Exited, Event::Reaped] {
                let over = process.wait_for(event, Duration::from_millis(2));
                assert_eq!(over.unwrap(), None, "{event:?} with {left} left");
            }
            sys::kill(child, libc::SIGUSR1);
            let exit = process.wait(None).unwrap();
            assert_eq!(exit, Some(Exit::Code(7)), "with {left} left");
            drop(hogs);
            sys::reap(std::mem::take(&mut child));
            assert!(process.wait_for(Event::Reaped, None).unwrap().is_some());
        }
    }
}

alone! {
    fn a_reap_that_nothing_tells_of_is_not_made_up() {
        // Kernels before Linux 6.9.
        sys::deny(&[libc::SYS_fstatfs], libc::ENOSYS);
        sys::limit_files(LIMIT);
        let family = Family::obeying();
        let process = family.stranger();
        assert!(process.pidfd().is_some());
        for left in 0..5 {
            let hogs = hog_all_but(left);
            match process.wait_for(Event::Reaped, Duration::from_millis(2)) {
                Ok(over) => assert_eq!(over, None, "with {left} left"),
                Err(error) => assert_eq!(error.errno(), libc::EMFILE),
            }
            drop(hogs);
        }
        assert!(process.is_alive());
    }
}

alone! {
    fn a_timeout_of_a_set_is_one_with_no_descriptor_left() {
        sys::limit_files(LIMIT);
        let family = Family::obeying();
        let mut set = WaitSet::new().unwrap();
        set.add(family.stranger(), Event::Reaped).unwrap();
        let hogs = hog_all_but(0);
        let waited = set.wait(Want::All, Duration::from_millis(5)).unwrap();
        assert_eq!(waited.outcome, Outcome::TimedOut);
        drop(hogs);
    }
}
