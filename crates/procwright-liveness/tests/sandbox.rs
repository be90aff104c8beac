//! Monitors where something usual is missing: `/proc`, the sight of the holder, system
//! calls. Less may be known; no answer is wrong.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_liveness::{Invitation, Mechanism, Monitor, State, Token};
use procwright_process::Process;
use procwright_process::wait::{Event, WaitSet, Want};
use test_support::sys;

/// A fork that calls `before` and holds a token for ever, and an invitation to it.
fn fork_holding_a_token(before: impl FnOnce()) -> (i32, Invitation) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        before();
        let token = Token::new().unwrap();
        token.invite().unwrap().send(&theirs).unwrap();
        std::mem::forget(token);
    });
    (pid, Invitation::receive(&ours).unwrap())
}

/// Asks a peer everything until it is killed, and after.
fn check_until_killed(pid: i32, invitation: &Invitation) {
    let monitor = || Monitor::accept(invitation.try_clone().unwrap()).unwrap();
    let (one, other) = (monitor(), monitor());
    assert!(one.alive());
    assert_eq!((one.state(), one.confirm()), (State::Alive, State::Alive));
    assert_eq!(one.wait(Duration::from_millis(5)), None);
    let mut set = WaitSet::new().unwrap();
    let key = set.add(&other, Event::Exited).unwrap();
    assert!(!sys::readable(one.readiness_fd().unwrap()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(one.wait(None), Some(State::Died)));
        }
        sys::kill(pid, libc::SIGKILL);
    });
    assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, key);
    for monitor in [&one, &other] {
        assert!(!monitor.alive());
        assert_eq!(
            (monitor.state(), monitor.confirm()),
            (State::Died, State::Died)
        );
    }
    sys::wait_for_end(one.readiness_fd().unwrap());
    assert_eq!(monitor().state(), State::Died);
}

/// Asks about a token that is given back.
fn check_release() {
    let token = Token::new().unwrap();
    let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
    assert!(!sys::readable(monitor.readiness_fd().unwrap()));
    drop(token);
    sys::wait_for_end(monitor.readiness_fd().unwrap());
    assert_eq!(
        (monitor.state(), monitor.confirm()),
        (State::Released, State::Released)
    );
}

alone! {
    fn a_holder_in_a_namespace_that_cannot_be_seen() {
        let test = "a_holder_in_a_namespace_that_cannot_be_seen";
        if !test_support::root_or_skip(test) {
            return;
        }
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut numbers, tell) = std::io::pipe().unwrap();
        // A process that has unshared its pid namespace can start no thread any more,
        // so a fork does it.
        let parent = sys::fork_pausing_after(|| {
            let mut pid = 0;
            if sys::unshare_pids() {
                pid = sys::fork_pausing_after(|| {
                    // The holder's number there is 1, which is another process's here.
                    assert_eq!(std::process::id(), 1);
                    let token = Token::new().unwrap();
                    token.invite().unwrap().send(&theirs).unwrap();
                    std::mem::forget(token);
                });
            }
            (&tell).write_all(&pid.to_ne_bytes()).unwrap();
        });
        let mut pid = [0; 4];
        numbers.read_exact(&mut pid).unwrap();
        match i32::from_ne_bytes(pid) {
            0 => test_support::skip(test, "no pid namespace may be made here"),
            pid => {
                let invitation = Invitation::receive(&ours).unwrap();
                let monitor = Monitor::accept(invitation.try_clone().unwrap()).unwrap();
                assert!(monitor.process().is_none());
                assert_eq!(monitor.wait_gone(Duration::ZERO), None);
                // The number that the holder has here suffices to watch it.
                let by_number = Monitor::of_process(&Process::open(pid).unwrap()).unwrap();
                check_until_killed(pid, &invitation);
                assert_eq!(by_number.wait(None), Some(State::Died));
            }
        }
        sys::kill(parent, libc::SIGKILL);
        sys::reap(parent);
    }
}

alone! {
    fn a_watcher_in_a_namespace_who_cannot_see_the_holder() {
        let test = "a_watcher_in_a_namespace_who_cannot_see_the_holder";
        if !test_support::root_or_skip(test) {
            return;
        }
        let (pid, invitation) = fork_holding_a_token(|| {});
        let (told, tell) = std::io::pipe().unwrap();
        // Started before this process unshares its pid namespace, after which no thread
        // can be started.
        let killer = std::thread::spawn(move || {
            sys::await_order(told.as_raw_fd());
            sys::kill(pid, libc::SIGKILL);
        });
        if !sys::unshare_pids() {
            test_support::skip(test, "no pid namespace may be made here");
            sys::kill(pid, libc::SIGKILL);
            return;
        }
        let status = sys::in_fork(|| {
            sys::mount_proc();
            // A namesake: its number is that of the holder outside.
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
            let namesake = sys::fork_pausing();
            assert_eq!(namesake, pid);
            let monitor = Monitor::accept(invitation.try_clone().unwrap()).unwrap();
            assert!(monitor.process().is_none(), "it is a namesake");
            sys::kill(namesake, libc::SIGKILL);
            sys::reap(namesake);
            assert_eq!((monitor.state(), monitor.confirm()), (State::Alive, State::Alive));
            // The holder is killed by a process outside.
            sys::tell(tell.as_raw_fd(), b"k");
            assert_eq!(monitor.wait(None), Some(State::Died));
            sys::wait_for_end(monitor.readiness_fd().unwrap());
            0
        });
        assert_eq!(status, 0);
        killer.join().unwrap();
        sys::reap(pid);
    }
}

alone! {
    fn without_proc() {
        if !test_support::root_or_skip("without_proc") {
            return;
        }
        let nothing = tempfile::tempdir().unwrap();
        sys::chroot(nothing.path());
        check_release();
        let (pid, invitation) = fork_holding_a_token(|| {});
        let process = Process::open(pid).unwrap();
        let of_process = Monitor::of_process(&process).unwrap();
        assert!(of_process.alive());
        check_until_killed(pid, &invitation);
        assert_eq!(of_process.wait(None), Some(State::Died));
        sys::reap(pid);
        assert_eq!(of_process.confirm(), State::Died);
    }
}

const WAITS: [i64; 2] = [libc::SYS_futex_waitv, libc::SYS_io_uring_setup];

alone! {
    fn where_words_are_not_marked() {
        sys::deny(&[libc::SYS_set_robust_list], libc::EPERM);
        let (pid, invitation) = fork_holding_a_token(|| {});
        let monitor = Monitor::accept(invitation.try_clone().unwrap()).unwrap();
        assert_eq!(monitor.guarantee().mechanism, Mechanism::Watcher);
        check_until_killed(pid, &invitation);
        sys::reap(pid);
        check_release();
    }
}

alone! {
    fn where_next_to_nothing_is_allowed() {
        sys::deny(&[&WAITS[..], &[libc::SYS_set_robust_list, libc::SYS_get_robust_list]].concat(), libc::ENOSYS);
        let (pid, invitation) = fork_holding_a_token(|| {});
        check_until_killed(pid, &invitation);
        sys::reap(pid);
        check_release();
    }
}

alone! {
    fn where_no_pidfd_can_be_had() {
        sys::deny(&[&WAITS[..], &[libc::SYS_pidfd_open, libc::SYS_get_robust_list]].concat(), libc::EPERM);
        let (pid, invitation) = fork_holding_a_token(|| {});
        let of_process = Monitor::of_process(&Process::open(pid).unwrap()).unwrap();
        let error = of_process.readiness_fd().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
        assert!(of_process.alive());
        let mut set = WaitSet::new().unwrap();
        set.add(&of_process, Event::Exited).unwrap();
        check_until_killed(pid, &invitation);
        assert_eq!(set.wait(Want::All, None).unwrap().ended.len(), 1);
        assert_eq!(of_process.wait(None), Some(State::Died));
        assert!(!of_process.alive());
        sys::reap(pid);
        check_release();
    }
}

/// Denies the calls that wait for many descriptors.
fn deny_waits() {
    #[cfg(target_arch = "x86_64")]
    sys::deny(&[libc::SYS_epoll_wait], libc::EPERM);
    sys::deny(
        &[libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2],
        libc::EPERM,
    );
}

/// A peer and a monitor of its process.
fn peer_and_monitor() -> (i32, Monitor) {
    let pid = sys::fork_pausing();
    (
        pid,
        Monitor::of_process(&Process::open(pid).unwrap()).unwrap(),
    )
}

alone! {
    fn a_filter_that_comes_when_the_watcher_runs_already() {
        let denials: [fn(); 2] = [|| sys::deny(&[libc::SYS_epoll_ctl], libc::EPERM), deny_waits];
        for deny in denials {
            let code = sys::fork_running(|| {
                let (first, of_first) = peer_and_monitor();
                assert!(of_first.alive());
                deny();
                // The watcher hears of the first and can watch no other any more.
                let (second, of_second) = peer_and_monitor();
                sys::kill(first, libc::SIGKILL);
                test_support::eventually(|| !of_first.alive());
                let (third, of_third) = peer_and_monitor();
                let later = [(second, of_second), (third, of_third)];
                assert!(later.iter().all(|(_, monitor)| monitor.alive()));
                for (pid, _) in &later {
                    sys::kill(*pid, libc::SIGKILL);
                }
                // These monitors notice by themselves: only `alive` is called.
                test_support::eventually(|| !later.iter().any(|(_, monitor)| monitor.alive()));
                0
            });
            assert_eq!(code, 0);
        }
    }
}
