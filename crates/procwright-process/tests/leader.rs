//! Leaders of groups and sessions, as a pid namespace shows them.
#![cfg(target_os = "linux")]

use procwright_os::proc;
use procwright_process::leader;
use test_support::{alone, eventually, root_or_skip, skip, sys};

/// Calls `body` in a fork that is the first process of a new pid namespace, and expects 0.
fn in_pid_namespace(test: &str, body: impl FnOnce() -> i32) {
    if !root_or_skip(test) {
        return;
    }
    if !sys::unshare_pids() {
        skip(test, "no pid namespace may be made here");
        return;
    }
    assert_eq!(sys::fork_running(body), 0);
}

alone! {
    fn a_group_from_outside_of_the_namespace_is_led_by_nobody_in_it() {
        let test = "a_group_from_outside_of_the_namespace_is_led_by_nobody_in_it";
        in_pid_namespace(test, || {
            // In here the numbers of its group and of its session are 0.
            let child = sys::fork_pausing();
            let leads = leader::leads_others(child);
            sys::end(child);
            sys::reap(child);
            i32::from(leads)
        });
    }
}

alone! {
    fn a_zombie_from_before_the_numbers_went_around_is_no_newborn() {
        let test = "a_zombie_from_before_the_numbers_went_around_is_no_newborn";
        in_pid_namespace(test, || {
            sys::mount_proc();
            let next = |pid: i32| {
                std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
            };
            next(5000);
            let zombie = sys::fork_exiting(0);
            assert_eq!(zombie, 5000);
            let born = proc::now_ticks();
            eventually(|| proc::now_ticks() > born);
            next(100);
            let child = sys::fork_pausing();
            sys::lead_a_group(child);
            let leads_nobody = !leader::leads_others(child);
            sys::end(child);
            for one in [child, zombie] {
                sys::reap(one);
            }
            i32::from(!leads_nobody)
        });
    }
}
