//! Monitors in event loops, and beside others in a wait set.

mod common;

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::{Census, sys};
use procwright::liveness::{Invitation, Monitor, State, Token};
use procwright::process::Process;
use procwright::wait::{Event, Outcome, WaitSet, Want};

/// A fork that holds a token for ever, and what is seen of it from here.
fn peer() -> (i32, Monitor) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let token = Token::new().unwrap();
        token.invite().unwrap().send(&theirs).unwrap();
        std::mem::forget(token);
    });
    let monitor = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
    (pid, monitor)
}

fn of_our_own() -> (Token, Monitor) {
    let token = Token::new().unwrap();
    let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
    (token, monitor)
}

fn end(pid: i32) {
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
}

/// What this process has once its threads that stay have begun.
fn begun() -> Census {
    let (_token, monitor) = of_our_own();
    Monitor::of_process(&Process::open(std::process::id().cast_signed()).unwrap()).unwrap();
    drop(monitor);
    common::eventually(|| {
        let threads = common::threads();
        ["procwright-aliv", "procwright-watc"]
            .iter()
            .all(|name| threads.iter().any(|t| t == name))
    });
    settled()
}

/// What this process has when the threads have let go of what they had: the one
/// descriptor that is left of that is the watcher's bell.
fn settled() -> Census {
    common::eventually(|| {
        let fds = common::fds();
        let of = |what: &str| fds.iter().filter(|fd| fd.contains(what)).count();
        (of("pidfd"), of("[eventfd]")) == (0, 1)
    });
    Census::now()
}

/// How many threads there are that sleep on words.
fn heralds() -> usize {
    common::threads()
        .iter()
        .filter(|name| name.starts_with("procwright-hera"))
        .count()
}

fn is_told(monitor: &Monitor) {
    sys::wait_for_end(monitor.readiness_fd().unwrap());
}

/// Of a peer that is killed, and of one that gives its token back.
fn all_ends_are_told() {
    let (pid, killed) = peer();
    let (token, released) = of_our_own();
    for monitor in [&killed, &released] {
        assert!(!sys::readable(monitor.readiness_fd().unwrap()));
    }
    end(pid);
    is_told(&killed);
    assert_eq!(killed.state(), State::Died);
    assert!(!sys::readable(released.readiness_fd().unwrap()));
    drop(token);
    is_told(&released);
    assert_eq!(released.state(), State::Released);
    // For ever, and also for who asks late.
    is_told(&killed);
    let (token, late) = of_our_own();
    drop(token);
    assert!(sys::readable(late.readiness_fd().unwrap()));
}

alone! {
    fn a_descriptor_tells_of_the_end() {
        all_ends_are_told();
        assert_eq!(heralds(), 1);
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
        is_told(&monitor);
        assert_eq!(monitor.state(), State::Died);
        assert_eq!(monitor.confirm(), State::Died);
        assert!(monitor.process().unwrap().is_alive());
        end(pid);
    }
}

alone! {
    fn in_a_set_beside_processes() {
        let (with, monitor) = peer();
        let without = sys::fork_pausing();
        let process = Process::open(without).unwrap();
        let mut set = WaitSet::new().unwrap();
        let first = set.add(Box::new(monitor) as Box<dyn procwright::wait::Waitable>, Event::Exited).unwrap();
        let of_process = Monitor::of_process(&process).unwrap();
        assert_eq!(
            of_process.readiness_fd().unwrap().as_raw_fd(),
            process.pidfd().unwrap().as_raw_fd()
        );
        let second = set.add(Box::new(of_process), Event::Exited).unwrap();
        assert_eq!(set.wait(Want::Any, Duration::from_millis(5)).unwrap().outcome, Outcome::TimedOut);
        end(with);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, first);
        end(without);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, second);
    }
}

alone! {
    fn hundreds_and_then_none() {
        begun();
        of_our_own().1.readiness_fd().unwrap();
        common::eventually(|| heralds() == 1);
        let before = settled();
        // Three threads have room for 381.
        let mut many: Vec<_> = (0..383).map(|_| of_our_own()).collect();
        for (_, monitor) in &many {
            monitor.readiness_fd().unwrap();
        }
        common::eventually(|| heralds() == 4);
        // One of each thread's, and then a whole thread's.
        for (i, place) in [0, 127, 254, 382].into_iter().enumerate() {
            drop(many.remove(place - i).0);
        }
        for (token, monitor) in many.drain(..200) {
            assert!(!sys::readable(monitor.readiness_fd().unwrap()));
            drop(token);
            is_told(&monitor);
        }
        // The others are forgotten.
        drop(many);
        // Their cells are in another file by now.
        let has = |census: &Census| (census.fds.len(), census.threads.clone());
        common::eventually(|| has(&before) == has(&Census::now()));
        assert_eq!(heralds(), 1);
    }
}

alone! {
    fn a_thread_a_word_where_none_can_sleep_on_many() {
        sys::deny(&[libc::SYS_futex_waitv, libc::SYS_io_uring_setup], libc::ENOSYS);
        let before = begun();
        all_ends_are_told();
        let many: Vec<_> = (0..20).map(|_| of_our_own()).collect();
        for (_, monitor) in &many {
            monitor.readiness_fd().unwrap();
        }
        common::eventually(|| heralds() == 20);
        drop(many);
        // Each has ended when its monitor is dropped, as far as we are concerned.
        before.comes_back();
    }
}

alone! {
    fn where_the_attempt_to_sleep_on_many_kills() {
        sys::kill_on(&[libc::SYS_futex_waitv, libc::SYS_get_robust_list]);
        all_ends_are_told();
        let (pid, monitor) = peer();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(monitor.wait(None), Some(State::Died)));
            end(pid);
        });
    }
}

alone! {
    fn a_filter_that_comes_later() {
        let (pid, monitor) = peer();
        assert!(!sys::readable(monitor.readiness_fd().unwrap()));
        sys::deny(&[libc::SYS_futex_waitv], libc::EPERM);
        let (token, other) = of_our_own();
        assert!(!sys::readable(other.readiness_fd().unwrap()));
        end(pid);
        is_told(&monitor);
        drop(token);
        is_told(&other);
    }
}

alone! {
    fn nobody_wakes_up_for_nothing() {
        for denied in [false, true] {
            if denied {
                sys::deny(&[libc::SYS_futex_waitv], libc::ENOSYS);
            }
            let status = sys::in_fork(|| {
                let many: Vec<_> = (0..40).map(|_| of_our_own()).collect();
                let bells: Vec<_> = many.iter().map(|(_, monitor)| monitor.readiness_fd().unwrap()).collect();
                let pass = |time| assert_eq!(many[0].1.wait(time), None);
                let threads = if denied { 40 } else { 1 };
                let before = common::settled("procwright-hera", threads, pass);
                pass(Duration::from_secs(1));
                assert_eq!(common::sleeps_of("procwright-hera", threads), before);
                assert!(!bells.into_iter().any(sys::readable));
                0
            });
            assert_eq!(status, 0);
        }
    }
}

alone! {
    fn a_fork_does_not_have_it() {
        let (token, monitor) = of_our_own();
        monitor.readiness_fd().unwrap();
        let (_other, unused) = of_our_own();
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
            // What was not made before, or is the fork's own, works.
            assert!(!sys::readable(unused.readiness_fd().unwrap()));
            let own = Monitor::accept(invitation.take().unwrap()).unwrap();
            assert!(!sys::readable(own.readiness_fd().unwrap()));
            0
        });
        assert_eq!(status, 0);
        let monitor = monitor.unwrap();
        assert!(!sys::readable(monitor.readiness_fd().unwrap()));
        drop(token);
        is_told(&monitor);
    }
}

alone! {
    fn where_no_descriptor_is_left() {
        let (token, monitor) = of_our_own();
        let mut set = WaitSet::new().unwrap();
        let limit = sys::nofile();
        let last = std::fs::File::open("/dev/null").unwrap();
        sys::set_nofile(u64::try_from(last.as_fd().as_raw_fd()).unwrap());
        let error = set.add(&monitor, Event::Exited).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
        sys::set_nofile(limit);
        // It was that time only.
        let key = set.add(&monitor, Event::Exited).unwrap();
        drop(token);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, key);
    }
}
