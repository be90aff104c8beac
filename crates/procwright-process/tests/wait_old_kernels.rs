//! Linux before 6.9: a pidfd neither names its process nor tells of its reap.

use procwright_process::Exit;
use procwright_process::Process;
use procwright_process::wait::WaitSet;
use procwright_process::wait::{Event, Outcome, Want};
use std::time::Duration;
use test_support::alone;
use test_support::family::Family;
use test_support::sys;

fn no_pidfs() {
    sys::deny(&[libc::SYS_fstatfs], libc::ENOSYS);
}

alone! {
    fn both_events_of_one_process_in_one_set() {
        no_pidfs();
        let mut family = Family::obeying();
        let process = family.stranger();
        let mut set = WaitSet::new().unwrap();
        let exited = set.add(process.clone(), Event::Exited).unwrap();
        let reaped = set.add(process.clone(), Event::Reaped).unwrap();
        let again = set.add(process, Event::Reaped).unwrap();
        family.order("exit 3");
        let waited = set.wait(Want::First(1), None).unwrap();
        assert_eq!(waited.ended[0].0, exited);
        assert_eq!(set.wait(Want::Any, Duration::from_millis(5)).unwrap().outcome, Outcome::TimedOut);
        assert_eq!(family.reap(), Exit::Code(3));
        let mut ended: Vec<_> = set.wait(Want::All, None).unwrap().ended.into_iter().map(|(key, _)| key).collect();
        ended.sort();
        assert_eq!(ended, [reaped, again]);
    }
}

alone! {
    fn the_zombie_of_another_user_is_not_reaped() {
        if !test_support::root_or_skip("the_zombie_of_another_user_is_not_reaped") {
            return;
        }
        no_pidfs();
        let mut family = Family::obeying();
        let process = family.stranger();
        family.order("exit 3");
        sys::pass_for_user(65534);
        assert!(process.wait(None).unwrap().is_some());
        let over = process.wait_for(Event::Reaped, Duration::from_millis(20)).unwrap();
        assert_eq!(over, None, "nobody has reaped it");
        sys::become_root_again();
        assert_eq!(family.reap(), Exit::Code(3));
        sys::pass_for_user(65534);
        assert!(process.wait_for(Event::Reaped, None).unwrap().is_some());
        assert!(Process::open(family.child).is_err());
        sys::become_root_again();
    }
}

alone! {
    fn who_has_the_number_later_is_another() {
        let test = "who_has_the_number_later_is_another";
        if !test_support::root_or_skip(test) {
            return;
        }
        if !sys::unshare_pids() {
            test_support::skip(test, "no pid namespace may be made here");
            return;
        }
        no_pidfs();
        let status = sys::in_fork(|| {
            sys::mount_proc();
            let next_is = |pid: i32| {
                std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
            };
            next_is(1000);
            let first = sys::fork_exiting(0);
            let old = Process::open(first).unwrap();
            assert_eq!(old, Process::open(first).unwrap());
            sys::reap(first);
            // Start times have a resolution of 10 ms.
            let now = || std::fs::read_to_string("/proc/uptime").unwrap();
            let before = now();
            test_support::eventually(|| now().split(' ').next() != before.split(' ').next());
            next_is(1000);
            let second = sys::fork_pausing();
            assert_eq!(first, second);
            assert_ne!(old, Process::open(second).unwrap());
            0
        });
        assert_eq!(status, 0, "it failed in the namespace");
    }
}
