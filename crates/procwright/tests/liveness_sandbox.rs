//! Monitors where something is missing that is usually there: `/proc`, the sight of
//! the holder, system calls. Less may be known; nothing is wrong.

mod common;

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::sys;
use procwright::Process;
use procwright::liveness::{Invitation, Mechanism, Monitor, State, Token};
use procwright::wait::{Event, WaitSet, Want};

/// A fork that does `before`, holds a token for ever, and how to watch it.
fn peer(before: impl FnOnce()) -> (i32, Invitation) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        before();
        let token = Token::new().unwrap();
        token.invite().unwrap().send(&theirs).unwrap();
        std::mem::forget(token);
    });
    (pid, Invitation::receive(&ours).unwrap())
}

/// Everything that can be asked of a peer until it is killed, and after.
fn all_is_right(pid: i32, invitation: &Invitation) {
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

/// And of a token that is given back.
fn a_release_is_told() {
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
        if !common::root_or_skip(test) {
            return;
        }
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut numbers, tell) = std::io::pipe().unwrap();
        // Whoever leaves its pid namespace can start no thread any more: so another.
        let parent = sys::fork_pausing_after(|| {
            let mut pid = 0;
            if sys::unshare_pids() {
                pid = sys::fork_pausing_after(|| {
                    // Its number there is 1, which here is another's.
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
            0 => common::skip(test, "no pid namespace may be made here"),
            pid => {
                let invitation = Invitation::receive(&ours).unwrap();
                let monitor = Monitor::accept(invitation.try_clone().unwrap()).unwrap();
                assert!(monitor.process().is_none());
                assert_eq!(monitor.wait_gone(Duration::ZERO), None);
                // By the number that it has here it can be watched all the same.
                let by_number = Monitor::of_process(&Process::open(pid).unwrap()).unwrap();
                all_is_right(pid, &invitation);
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
        if !common::root_or_skip(test) {
            return;
        }
        let (pid, invitation) = peer(|| {});
        let (told, tell) = std::io::pipe().unwrap();
        // Before we leave the namespace, after which no thread can be started.
        let killer = std::thread::spawn(move || {
            sys::await_order(told.as_raw_fd());
            sys::kill(pid, libc::SIGKILL);
        });
        if !sys::unshare_pids() {
            common::skip(test, "no pid namespace may be made here");
            sys::kill(pid, libc::SIGKILL);
            return;
        }
        let status = sys::in_fork(|| {
            sys::mount_proc();
            // One whose number is that of the holder outside.
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
            let namesake = sys::fork_pausing();
            assert_eq!(namesake, pid);
            let monitor = Monitor::accept(invitation.try_clone().unwrap()).unwrap();
            assert!(monitor.process().is_none(), "it is a namesake");
            sys::kill(namesake, libc::SIGKILL);
            sys::reap(namesake);
            assert_eq!((monitor.state(), monitor.confirm()), (State::Alive, State::Alive));
            // The holder is killed by somebody outside.
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
        if !common::root_or_skip("without_proc") {
            return;
        }
        let nothing = tempfile::tempdir().unwrap();
        sys::chroot(nothing.path());
        a_release_is_told();
        let (pid, invitation) = peer(|| {});
        let process = Process::open(pid).unwrap();
        let of_process = Monitor::of_process(&process).unwrap();
        assert!(of_process.alive());
        all_is_right(pid, &invitation);
        assert_eq!(of_process.wait(None), Some(State::Died));
        sys::reap(pid);
        assert_eq!(of_process.confirm(), State::Died);
    }
}

const WAITS: [i64; 2] = [libc::SYS_futex_waitv, libc::SYS_io_uring_setup];

alone! {
    fn where_words_are_not_marked() {
        sys::deny(&[libc::SYS_set_robust_list], libc::EPERM);
        let (pid, invitation) = peer(|| {});
        let monitor = Monitor::accept(invitation.try_clone().unwrap()).unwrap();
        assert_eq!(monitor.guarantee().mechanism, Mechanism::Watcher);
        all_is_right(pid, &invitation);
        sys::reap(pid);
        a_release_is_told();
    }
}

alone! {
    fn where_next_to_nothing_is_allowed() {
        sys::deny(&[&WAITS[..], &[libc::SYS_set_robust_list, libc::SYS_get_robust_list]].concat(), libc::ENOSYS);
        let (pid, invitation) = peer(|| {});
        all_is_right(pid, &invitation);
        sys::reap(pid);
        a_release_is_told();
    }
}

alone! {
    fn where_no_pidfd_can_be_had() {
        sys::deny(&[&WAITS[..], &[libc::SYS_pidfd_open, libc::SYS_get_robust_list]].concat(), libc::EPERM);
        let (pid, invitation) = peer(|| {});
        let of_process = Monitor::of_process(&Process::open(pid).unwrap()).unwrap();
        let error = of_process.readiness_fd().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
        assert!(of_process.alive());
        let mut set = WaitSet::new().unwrap();
        set.add(&of_process, Event::Exited).unwrap();
        all_is_right(pid, &invitation);
        assert_eq!(set.wait(Want::All, None).unwrap().ended.len(), 1);
        assert_eq!(of_process.wait(None), Some(State::Died));
        assert!(!of_process.alive());
        sys::reap(pid);
        a_release_is_told();
    }
}

/// What the kernel lets nobody do any more who waits for many at a time.
fn deny_waits() {
    #[cfg(target_arch = "x86_64")]
    sys::deny(&[libc::SYS_epoll_wait], libc::EPERM);
    sys::deny(
        &[libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2],
        libc::EPERM,
    );
}

/// A peer and a monitor of its process.
fn watched() -> (i32, Monitor) {
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
                let (first, of_first) = watched();
                assert!(of_first.alive());
                deny();
                // It hears of that one and can watch nobody any more.
                let (second, of_second) = watched();
                sys::kill(first, libc::SIGKILL);
                common::eventually(|| !of_first.alive());
                let (third, of_third) = watched();
                let later = [(second, of_second), (third, of_third)];
                assert!(later.iter().all(|(_, monitor)| monitor.alive()));
                for (pid, _) in &later {
                    sys::kill(*pid, libc::SIGKILL);
                }
                // By themselves: nothing but `alive` is asked.
                common::eventually(|| !later.iter().any(|(_, monitor)| monitor.alive()));
                0
            });
            assert_eq!(code, 0);
        }
    }
}
