//! The call that `restart_syscall` stands for.
//!
//! SIGSTOP and SIGCONT, Ctrl-Z and `fg`, a debugger or strace that attaches: each ends the sleep of
//! a call. The kernel begins it anew, most calls by their own number. One that has to go on with
//! the rest of its time, and `poll` with or without a limit, goes on as `restart_syscall`. The
//! registers keep the arguments, which that does not look at, since it has them in a place of its
//! own; their meaning is lost with the number.
//!
//! The place in the kernel where the thread sleeps has a name (`/proc/PID/wchan`), which tells the
//! number: on Linux 6.18 `poll`, `futex` with a limit, `nanosleep` and
//! `clock_nanosleep` for a time were all that came back so. *Rejected: to guess by the arguments.*
//! `poll(fds, 128, 0)` and a `futex` with a limit have the same ones, and a guess could prove.

use libc::c_long;

/// Number of the call that goes on at this place. `None` if the place does not tell: some kernels
/// give none, and a filter of system calls or a freezer may hold it up before it sleeps.
pub(super) fn call_at(place: &str) -> Option<c_long> {
    let has = |words: &[&str]| words.iter().any(|word| place.contains(word));
    // Elsewhere `poll` is a `ppoll`, which begins anew by its own number.
    #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
    if has(&["poll"]) {
        return Some(libc::SYS_poll);
    }
    if has(&["futex"]) {
        return Some(libc::SYS_futex);
    }
    // A sleep by the usual clocks is all within the scheduler, which is passed over, so that
    // the way into the call is named: "do_syscall_64", "invoke_syscall", "el0_svc_common".
    let sleeps = ["nsleep", "nanosleep", "restart_syscall"];
    let enters = ["do_syscall", "invoke_syscall", "sys_call", "el0_svc"];
    (has(&sleeps) || has(&enters)).then_some(libc::SYS_nanosleep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_tells_the_call() {
        #[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
        for place in ["poll_schedule_timeout.constprop.0", "do_sys_poll"] {
            assert_eq!(call_at(place), Some(libc::SYS_poll), "{place}");
        }
        for place in ["futex_do_wait", "futex_wait_queue_me"] {
            assert_eq!(call_at(place), Some(libc::SYS_futex), "{place}");
        }
        for place in [
            "do_syscall_64",
            "invoke_syscall",
            "hrtimer_nanosleep",
            "do_cpu_nanosleep",
            "alarmtimer_do_nsleep",
        ] {
            assert_eq!(call_at(place), Some(libc::SYS_nanosleep), "{place}");
        }
    }

    #[test]
    fn another_place_tells_nothing() {
        for place in ["", "0", "seccomp_do_user_notification", "do_freezer_trap"] {
            assert_eq!(call_at(place), None, "{place}");
        }
    }
}
