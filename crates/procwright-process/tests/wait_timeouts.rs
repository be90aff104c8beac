//! Timeouts of waits: never early, never started again, whatever number is given and
//! whatever interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_os::time::Timeout;
use procwright_process::Exit;
use procwright_process::Process;
use procwright_process::wait::{Event, Outcome, WaitSet, Want};
use test_support::family::Family;
use test_support::sys;

/// Waits in each way for an event that does not come, and passes each elapsed time to
/// `check`.
fn wait_in_vain(process: &Process, timeout: Timeout, check: impl Fn(Duration)) {
    for event in [Event::Exited, Event::Reaped] {
        let begun = Instant::now();
        assert_eq!(process.wait_for(event, timeout).unwrap(), None);
        check(begun.elapsed());
        for want in [Want::Any, Want::All, Want::First(1), Want::First(9)] {
            let mut set = WaitSet::new().unwrap();
            set.add(process, event).unwrap();
            let begun = Instant::now();
            let waited = set.wait(want, timeout).unwrap();
            check(begun.elapsed());
            assert_eq!((waited.ended.len(), waited.outcome), (0, Outcome::TimedOut));
            assert_eq!(set.len(), 1);
        }
    }
}

fn seconds(number: f64) -> Timeout {
    Timeout::from_secs_f64(number).unwrap()
}

alone! {
    fn short_ones_are_not_early() {
        let family = Family::obeying();
        let stranger = family.stranger();
        // Most of these, rounded to milliseconds, would end too soon or at once.
        for micros in [1, 100, 900, 999, 1_000, 1_001, 1_900, 10_500] {
            for _ in 0..5 {
                let timeout = Duration::from_micros(micros);
                wait_in_vain(&stranger, timeout.into(), |took| assert!(took >= timeout, "{took:?} of {timeout:?}"));
            }
        }
        wait_in_vain(&stranger, seconds(0.0009), |took| assert!(took >= Duration::from_micros(900)));
    }
}

alone! {
    fn none_at_all() {
        let mut family = Family::obeying();
        let stranger = family.stranger();
        let expired = [Duration::ZERO.into(), seconds(0.0), seconds(-0.0), seconds(-1.0), seconds(f64::NEG_INFINITY)];
        for timeout in expired {
            let sleeps = sys::sleeps();
            wait_in_vain(&stranger, timeout, |_| ());
            assert_eq!(sys::sleeps(), sleeps, "{timeout:?} is no reason to sleep");
        }
        assert!(Timeout::from_secs_f64(f64::NAN).is_err());
        // Events that have happened by then are reported all the same.
        family.order("exit 2");
        stranger.wait(Timeout::NEVER).unwrap();
        for timeout in expired {
            assert_eq!(stranger.wait(timeout).unwrap(), Some(Exit::Code(2)));
            for want in [Want::Any, Want::All, Want::First(1)] {
                let mut set = WaitSet::new().unwrap();
                set.add(&stranger, Event::Exited).unwrap();
                assert_eq!(set.wait(want, timeout).unwrap().outcome, Outcome::Satisfied);
            }
        }
    }
}

alone! {
    fn long_ones() {
        // More than an int of milliseconds holds (24.8 days), more than a time_t of 32
        // bits, more than the clock counts; and no end.
        let day = 86_400.0;
        let long = [25.0 * day, 30_000.0 * day, 1e12, 1e300, f64::INFINITY].map(seconds);
        let longest = [Timeout::NEVER, Duration::MAX.into(), Duration::from_secs(1 << 62).into()];
        for timeout in long.into_iter().chain(longest) {
            let mut family = Family::obeying();
            let stranger = family.stranger();
            let waiting = stranger.clone();
            let one = std::thread::spawn(move || waiting.wait(timeout));
            let waiting = stranger.clone();
            let many = std::thread::spawn(move || {
                let mut set = WaitSet::new().unwrap();
                set.add(waiting, Event::Reaped).unwrap();
                set.wait(Want::All, timeout).unwrap()
            });
            // A timeout that was cut short would have ended the waits before.
            assert_eq!(stranger.wait(Duration::from_millis(20)).unwrap(), None);
            assert!(!one.is_finished() && !many.is_finished(), "{timeout:?}");
            family.order("exit 21");
            assert_eq!(one.join().unwrap().unwrap(), Some(Exit::Code(21)));
            assert!(!many.is_finished(), "{timeout:?}");
            family.reap();
            assert_eq!(many.join().unwrap().outcome, Outcome::Satisfied);
        }
    }
}

alone! {
    fn a_deadline_in_the_past_or_the_future() {
        let family = Family::obeying();
        let mut set = WaitSet::new().unwrap();
        set.add(family.stranger(), Event::Exited).unwrap();
        let now = Instant::now();
        let deadline = Timeout::after(Duration::from_millis(30)).starting(now);
        // A deadline that is used in several calls stays the same moment.
        loop {
            let waited = set.wait_until(Want::Any, deadline.min(Timeout::after(Duration::from_millis(4)).starting(Instant::now()))).unwrap();
            assert_eq!(waited.outcome, Outcome::TimedOut);
            if deadline.reached(Instant::now()) { break; }
        }
        assert!(now.elapsed() >= Duration::from_millis(30));
        assert_eq!(set.wait_until(Want::Any, deadline).unwrap().outcome, Outcome::TimedOut);
    }
}

/// Interrupts this thread from another, as often as the machine can.
struct SignalStorm(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl SignalStorm {
    fn this_thread(signal: i32) -> SignalStorm {
        sys::count_signal(signal);
        let thread = sys::thread_id();
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let pest = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                sys::signal_thread(thread, signal);
                std::thread::yield_now();
            }
        });
        SignalStorm(over, Some(pest))
    }
}

impl Drop for SignalStorm {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap();
    }
}

/// Every wait under this storm of signals lasts its time, ends all the same, and
/// reports its event.
fn check_waits_in_a_storm(storm: &str) {
    let before = sys::counted();
    let timeout = Duration::from_millis(20);
    {
        let family = Family::obeying();
        let stranger = family.stranger();
        // A wait that started again with every signal would never end. A busy machine
        // needs several rounds until there were enough signals for a storm.
        while sys::counted() - before <= 50 {
            wait_in_vain(&stranger, timeout.into(), |took| {
                assert!(took >= timeout, "{took:?}")
            });
        }
    }
    for round in 0..5 {
        let mut family = Family::obeying();
        let stranger = family.stranger();
        let mut set = WaitSet::new().unwrap();
        set.add(stranger.clone(), Event::Exited).unwrap();
        set.add(stranger.clone(), Event::Reaped).unwrap();
        family.order(&format!("exit {round}"));
        assert_eq!(
            stranger.wait(Timeout::NEVER).unwrap(),
            Some(Exit::Code(round))
        );
        assert_eq!(set.wait(Want::First(1), None).unwrap().ended.len(), 1);
        family.reap();
        assert!(
            stranger
                .wait_for(Event::Reaped, Timeout::NEVER)
                .unwrap()
                .is_some()
        );
        assert_eq!(set.wait(Want::All, None).unwrap().ended.len(), 1);
    }
    let signals = sys::counted() - before;
    test_support::figure(&format!("{storm}: {signals} signals"));
}

alone! {
    fn a_storm_from_a_timer() {
        sys::count_signal(libc::SIGUSR2);
        let _pester = sys::Pester::this_thread(libc::SIGUSR2, 100);
        check_waits_in_a_storm("a signal every 100 µs");
    }
}

alone! {
    fn a_storm_from_another_thread() {
        let _pestering = SignalStorm::this_thread(libc::SIGUSR1);
        check_waits_in_a_storm("a thread that sends signals");
    }
}
