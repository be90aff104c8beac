//! A clock that is set while a thread waits.
//!
//! Setting the machine's clock would disturb the machine, so this process is shown
//! another: this file defines the C library's `clock_gettime`, by which the standard
//! library tells all time, and moves the wall clock back an hour with every call. The
//! kernel's own counting must not depend on the wall clock, which a filter proves: the
//! calls that can be told to count by it are fatal. The two calls that remain, ppoll(2)
//! and epoll_wait(2), take the time that is left, and the kernel counts that on its
//! monotonic clock.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use test_support::alone;

use procwright_process::Exit;
use procwright_process::wait::{Event, Outcome, WaitSet, Want};
use test_support::family::Family;
use test_support::sys;

static SET_BACK_HOURS: AtomicI64 = AtomicI64::new(0);

thread_local! {
    static LOOKS_AT_THE_WALL: Cell<u64> = const { Cell::new(0) };
}

/// # Safety
/// `time` points to memory for a timespec, as for clock_gettime(3).
#[unsafe(no_mangle)]
#[allow(clippy::undocumented_unsafe_blocks)] // the caller's pointer, handed on
unsafe extern "C" fn clock_gettime(
    clock: libc::clockid_t,
    time: *mut libc::timespec,
) -> libc::c_int {
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } as libc::c_int;
    let wall = [
        libc::CLOCK_REALTIME,
        libc::CLOCK_REALTIME_COARSE,
        libc::CLOCK_TAI,
    ];
    if result == 0 && wall.contains(&clock) {
        LOOKS_AT_THE_WALL.with(|looks| looks.set(looks.get() + 1));
        let hours = SET_BACK_HOURS.fetch_add(1, Ordering::Relaxed);
        unsafe { (*time).tv_sec -= 3600 * hours };
    }
    result
}

alone! {
    fn a_clock_that_is_set_back() {
        // This file's clock is the one that is read.
        let (first, second) = (SystemTime::now(), SystemTime::now());
        assert!(first.duration_since(second).unwrap() > Duration::from_secs(3000));

        let mut family = Family::obeying();
        let stranger = family.stranger();
        let mut set = WaitSet::new().unwrap();
        set.add(stranger.clone(), Event::Exited).unwrap();
        let timeout = Duration::from_millis(30);
        let looks = std::thread::scope(|scope| scope.spawn(|| {
            sys::kill_on_in_this_thread(&[
                libc::SYS_clock_nanosleep, libc::SYS_timer_create, libc::SYS_timer_settime,
                libc::SYS_timerfd_create, libc::SYS_timerfd_settime, libc::SYS_setitimer,
                libc::SYS_gettimeofday,
            ]);
            let before = LOOKS_AT_THE_WALL.get();
            let begun = Instant::now();
            assert_eq!(stranger.wait(timeout).unwrap(), None);
            let waited = set.wait(Want::Any, timeout).unwrap();
            assert_eq!((waited.ended.len(), waited.outcome), (0, Outcome::TimedOut));
            assert!(begun.elapsed() >= 2 * timeout);
            family.order("exit 1");
            assert_eq!(stranger.wait(timeout * 1000).unwrap(), Some(Exit::Code(1)));
            assert_eq!(set.wait(Want::Any, timeout * 1000).unwrap().ended.len(), 1);
            LOOKS_AT_THE_WALL.get() - before
        }).join().unwrap());
        assert_eq!(looks, 0, "a wait has looked at the clock on the wall");
    }
}
