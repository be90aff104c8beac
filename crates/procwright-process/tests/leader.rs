//! Leaders of groups and sessions, as a pid namespace shows them.
#![cfg(target_os = "linux")]

use procwright_process::leader;
use test_support::{alone, root_or_skip, skip, sys};

alone! {
    fn a_group_from_outside_of_the_namespace_is_led_by_nobody_in_it() {
        let test = "a_group_from_outside_of_the_namespace_is_led_by_nobody_in_it";
        if !root_or_skip(test) {
            return;
        }
        if !sys::unshare_pids() {
            skip(test, "no pid namespace may be made here");
            return;
        }
        let code = sys::fork_running(|| {
            // In here the numbers of its group and of its session are 0.
            let child = sys::fork_pausing();
            let leads = leader::leads_others(child);
            sys::end(child);
            sys::reap(child);
            i32::from(leads)
        });
        assert_eq!(code, 0);
    }
}
