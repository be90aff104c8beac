//! Monitors in event loops, and beside others in a wait set.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_liveness::{Invitation, Monitor, State, Token};
use procwright_process::Process;
use procwright_process::wait::{Event, Outcome, WaitSet, Want};
use test_support::{Census, sys};

/// A fork that holds a token for ever, and a monitor of it.
fn fork_holding_a_token() -> (i32, Monitor) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let token = Token::new().unwrap();
        token.invite().unwrap().send(&theirs).unwrap();
        std::mem::forget(token);
    });
    let monitor = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
    (pid, monitor)
}

fn own_token_and_monitor() -> (Token, Monitor) {
    let token = Token::new().unwrap();
    let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
    (token, monitor)
}

fn kill_and_reap(pid: i32) {
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
}

/// The census of this process once its lasting threads have started.
fn census_once_started() -> Census {
    let (_token, monitor) = own_token_and_monitor();
    Monitor::of_process(&Process::open(std::process::id().cast_signed()).unwrap()).unwrap();
    drop(monitor);
    test_support::eventually(|| {
        let threads = test_support::threads();
        ["procwright-aliv", "procwright-watc"]
            .iter()
            .all(|name| threads.iter().any(|t| t == name))
    });
    census_at_rest()
}

/// The census of this process once the threads have released what they had: the
/// watcher's eventfd is the one descriptor that is left.
fn census_at_rest() -> Census {
    test_support::eventually(|| {
        let fds = test_support::fds();
        let of = |what: &str| fds.iter().filter(|fd| fd.contains(what)).count();
        (of("pidfd"), of("[eventfd]")) == (0, 1)
    });
    Census::now()
}

/// Number of threads that sleep on words.
fn futex_threads() -> usize {
    test_support::threads()
        .iter()
        .filter(|name| name.starts_with("procwright-word"))
        .count()
}

fn assert_told(monitor: &Monitor) {
    sys::wait_for_end(monitor.readiness_fd().unwrap());
}

/// The ends of a killed peer and of one that gives its token back.
fn check_all_ends_are_told() {
    let (pid, killed) = fork_holding_a_token();
    let (token, released) = own_token_and_monitor();
    for monitor in [&killed, &released] {
        assert!(!sys::readable(monitor.readiness_fd().unwrap()));
    }
    kill_and_reap(pid);
    assert_told(&killed);
    assert_eq!(killed.state(), State::Died);
    assert!(!sys::readable(released.readiness_fd().unwrap()));
    drop(token);
    assert_told(&released);
    assert_eq!(released.state(), State::Released);
    // The answer stays, also for a caller that asks late.
    assert_told(&killed);
    let (token, late) = own_token_and_monitor();
    drop(token);
    assert!(sys::readable(late.readiness_fd().unwrap()));
}

alone! {
    fn a_descriptor_tells_of_the_end() {
        check_all_ends_are_told();
        assert_eq!(futex_threads(), 1);
    }
}

alone! {
    fn also_of_an_end_by_exec() {
        let (pid, monitor) = {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let pid = sys::fork_pausing_after(|| {
                sys::close(&ours);
                let token = Token::new().unwrap();
                token.invite().unwrap().send(&theirs).unwrap();
                sys::await_order(theirs.as_raw_fd());
                sys::exec_pausing();
            });
            drop(theirs);
            let monitor = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
            assert!(!sys::readable(monitor.readiness_fd().unwrap()));
            (pid, monitor)
        };
        assert_told(&monitor);
        assert_eq!(monitor.state(), State::Died);
        assert_eq!(monitor.confirm(), State::Died);
        assert!(monitor.process().unwrap().is_alive());
        kill_and_reap(pid);
    }
}

alone! {
    fn in_a_set_beside_processes() {
        let (with, monitor) = fork_holding_a_token();
        let without = sys::fork_pausing();
        let process = Process::open(without).unwrap();
        let mut set = WaitSet::new().unwrap();
        let first = set.add(Box::new(monitor) as Box<dyn procwright_process::wait::Waitable>, Event::Exited).unwrap();
        let of_process = Monitor::of_process(&process).unwrap();
        assert_eq!(
            of_process.readiness_fd().unwrap().as_raw_fd(),
            process.pidfd().unwrap().as_raw_fd()
        );
        let second = set.add(Box::new(of_process), Event::Exited).unwrap();
        assert_eq!(set.wait(Want::Any, Duration::from_millis(5)).unwrap().outcome, Outcome::TimedOut);
        kill_and_reap(with);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, first);
        kill_and_reap(without);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, second);
    }
}

alone! {
    fn hundreds_and_then_none() {
        census_once_started();
        own_token_and_monitor().1.readiness_fd().unwrap();
        test_support::eventually(|| futex_threads() == 1);
        let before = census_at_rest();
        // Three threads have room for 381.
        let mut many: Vec<_> = (0..383).map(|_| own_token_and_monitor()).collect();
        for (_, monitor) in &many {
            monitor.readiness_fd().unwrap();
        }
        test_support::eventually(|| futex_threads() == 4);
        // One token of each thread's, and then a whole thread's.
        for (i, place) in [0, 127, 254, 382].into_iter().enumerate() {
            drop(many.remove(place - i).0);
        }
        for (token, monitor) in many.drain(..200) {
            assert!(!sys::readable(monitor.readiness_fd().unwrap()));
            drop(token);
            assert_told(&monitor);
        }
        // The other monitors are dropped before their peers have ended.
        drop(many);
        // The cells are in another file by now, so only numbers are compared.
        let has = |census: &Census| (census.fds.len(), census.threads.clone());
        test_support::eventually(|| has(&before) == has(&Census::now()));
        assert_eq!(futex_threads(), 1);
    }
}

alone! {
    fn a_thread_a_word_where_none_can_sleep_on_many() {
        sys::deny(&[libc::SYS_futex_waitv, libc::SYS_io_uring_setup], libc::ENOSYS);
        let before = census_once_started();
        check_all_ends_are_told();
        let many: Vec<_> = (0..20).map(|_| own_token_and_monitor()).collect();
        for (_, monitor) in &many {
            monitor.readiness_fd().unwrap();
        }
        test_support::eventually(|| futex_threads() == 20);
        drop(many);
        // Each thread ends with the monitor that it served.
        before.comes_back();
    }
}

alone! {
    fn where_the_attempt_to_sleep_on_many_kills() {
        sys::kill_on(&[libc::SYS_futex_waitv, libc::SYS_get_robust_list]);
        check_all_ends_are_told();
        let (pid, monitor) = fork_holding_a_token();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(monitor.wait(None), Some(State::Died)));
            kill_and_reap(pid);
        });
    }
}

alone! {
    fn a_filter_that_comes_later() {
        let (pid, monitor) = fork_holding_a_token();
        assert!(!sys::readable(monitor.readiness_fd().unwrap()));
        sys::deny(&[libc::SYS_futex_waitv], libc::EPERM);
        let (token, other) = own_token_and_monitor();
        assert!(!sys::readable(other.readiness_fd().unwrap()));
        kill_and_reap(pid);
        assert_told(&monitor);
        drop(token);
        assert_told(&other);
    }
}

alone! {
    fn nobody_wakes_up_for_nothing() {
        for denied in [false, true] {
            if denied {
                sys::deny(&[libc::SYS_futex_waitv], libc::ENOSYS);
            }
            let status = sys::in_fork(|| {
                let many: Vec<_> = (0..40).map(|_| own_token_and_monitor()).collect();
                let bells: Vec<_> = many.iter().map(|(_, monitor)| monitor.readiness_fd().unwrap()).collect();
                let pass = |time| assert_eq!(many[0].1.wait(time), None);
                let threads = if denied { 40 } else { 1 };
                let before = test_support::settled("procwright-word", threads, pass);
                pass(Duration::from_secs(1));
                assert_eq!(test_support::sleeps_of("procwright-word", threads), before);
                assert!(!bells.into_iter().any(sys::readable));
                0
            });
            assert_eq!(status, 0);
        }
    }
}

alone! {
    fn a_fork_does_not_have_it() {
        let (token, monitor) = own_token_and_monitor();
        monitor.readiness_fd().unwrap();
        let (_other, unused) = own_token_and_monitor();
        let invitation = token.invite().unwrap();
        let mut monitor = Some(monitor);
        let mut invitation = Some(invitation);
        let status = sys::in_fork(|| {
            let monitor = monitor.take().unwrap();
            assert!(monitor.alive());
            let error = monitor.readiness_fd().unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
            let mut set = WaitSet::new().unwrap();
            let refused = set.add(&monitor, Event::Exited).unwrap_err();
            assert_eq!(refused.to_string(), error.to_string());
            drop(monitor);
            // Readiness that was not made before the fork, or that is the fork's own,
            // works.
            assert!(!sys::readable(unused.readiness_fd().unwrap()));
            let own = Monitor::accept(invitation.take().unwrap()).unwrap();
            assert!(!sys::readable(own.readiness_fd().unwrap()));
            0
        });
        assert_eq!(status, 0);
        let monitor = monitor.unwrap();
        assert!(!sys::readable(monitor.readiness_fd().unwrap()));
        drop(token);
        assert_told(&monitor);
    }
}

alone! {
    fn where_no_descriptor_is_left() {
        let (token, monitor) = own_token_and_monitor();
        let mut set = WaitSet::new().unwrap();
        let limit = sys::nofile();
        let last = std::fs::File::open("/dev/null").unwrap();
        sys::set_nofile(u64::try_from(last.as_fd().as_raw_fd()).unwrap());
        let error = set.add(&monitor, Event::Exited).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
        sys::set_nofile(limit);
        // The error concerned that call only.
        let key = set.add(&monitor, Event::Exited).unwrap();
        drop(token);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, key);
    }
}
