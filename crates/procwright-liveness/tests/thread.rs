//! Tokens that a thread holds, without a thread of the library.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_liveness::{Error, Invitation, Mechanism, Monitor, Names, State, ThreadToken};
use test_support::{Census, sys};

/// A fork whose main thread holds a token and calls `then`, and a monitor of it.
fn fork_holding_a_token(then: impl FnOnce(ThreadToken)) -> (i32, Monitor) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let token = ThreadToken::new().unwrap();
        token.invite().unwrap().send(&theirs).unwrap();
        then(token)
    });
    let monitor = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
    (pid, monitor)
}

/// Runs `work` on the main thread of a process: a test's body runs on another.
fn on_main(work: impl FnOnce()) {
    assert_eq!(
        sys::in_fork(|| {
            work();
            0
        }),
        0
    );
}

alone! {
    fn a_killed_peer_has_died() {
        let (pid, monitor) = fork_holding_a_token(std::mem::forget);
        assert!(monitor.alive());
        assert_eq!(monitor.guarantee().names, Names::Thread);
        assert_eq!(monitor.guarantee().mechanism, Mechanism::RobustWord);
        assert_eq!(monitor.process().unwrap().pid(), pid);
        assert_eq!(monitor.wait(Duration::from_millis(20)), None);
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
        assert_eq!(monitor.wait_gone(Duration::MAX), Some(true));
        sys::reap(pid);
        assert_eq!(monitor.state(), State::Died);
    }
}

alone! {
    fn every_one_of_ten_who_wait_is_woken() {
        for how in [State::Died, State::Released] {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let (pid, monitor) = fork_holding_a_token(|token| {
                (&theirs).read_exact(&mut [0]).unwrap();
                drop(token);
            });
            std::thread::scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| assert_eq!(monitor.wait(Duration::MAX), Some(how)));
                }
                match how {
                    State::Died => assert!(sys::kill(pid, libc::SIGKILL)),
                    _ => ours.write_all(b"g").unwrap(),
                }
            });
            sys::kill(pid, libc::SIGKILL);
            sys::reap(pid);
            assert_eq!(monitor.state(), how);
        }
    }
}

alone! {
    fn the_main_thread_alone_may_have_one() {
        // A test's body does not run on the main thread.
        assert!(matches!(ThreadToken::new(), Err(Error::NotMain)));
        on_main(|| {
            let token = ThreadToken::new().unwrap();
            let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
            assert_eq!(token.guarantee(), monitor.guarantee());
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert!(matches!(ThreadToken::new(), Err(Error::NotMain)));
                });
            });
            drop(token);
            assert_eq!(monitor.state(), State::Released);
        });
    }
}

alone! {
    fn a_fork_has_no_part_in_it() {
        on_main(|| {
            let mut token = Some(ThreadToken::new().unwrap());
            let monitor = Monitor::accept(token.as_ref().unwrap().invite().unwrap()).unwrap();
            on_main(|| {
                let inherited = token.take().unwrap();
                assert!(matches!(inherited.invite(), Err(Error::Forked)));
                // The inherited token lies between two of the fork's own.
                let first = ThreadToken::new().unwrap();
                drop(inherited);
                let second = ThreadToken::new().unwrap();
                let of_first = Monitor::accept(first.invite().unwrap()).unwrap();
                let of_second = Monitor::accept(second.invite().unwrap()).unwrap();
                drop(first);
                assert!(monitor.alive() && of_second.alive() && !of_first.alive());
            });
            assert!(monitor.alive());
            drop(token.take());
            assert_eq!(monitor.state(), State::Released);
        });
    }
}

alone! {
    fn it_leaves_nothing_and_starts_no_thread_that_stays() {
        on_main(|| {
            let token = ThreadToken::new().unwrap();
            assert_eq!(test_support::threads().len(), 1);
            drop(token);
            let before = Census::now();
            let mut mapped = 0;
            for round in 0..200 {
                if round == 100 {
                    mapped = test_support::status_bytes("VmSize");
                }
                let tokens: Vec<_> = (0..10).map(|_| ThreadToken::new().unwrap()).collect();
                let monitor = Monitor::accept(tokens[5].invite().unwrap()).unwrap();
                drop(tokens);
                assert_eq!(monitor.state(), State::Released);
            }
            before.unchanged();
            // The memory of one token, left behind a thousand times, would be 12 MiB.
            let more = test_support::status_bytes("VmSize").saturating_sub(mapped);
            assert!(more < 1024 * 1024, "{more} bytes");
        });
    }
}

alone! {
    fn a_thousand_of_one_thread() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let mut tokens = Vec::new();
            let error = loop {
                match ThreadToken::new() {
                    Ok(token) => tokens.push(token),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Full(1024)), "{error}");
            for token in &tokens {
                token.invite().unwrap().send(&theirs).unwrap();
            }
            std::mem::forget(tokens);
        });
        let monitors: Vec<_> = (0..1024)
            .map(|_| Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap())
            .collect();
        assert!(monitors.iter().all(Monitor::alive));
        sys::kill(pid, libc::SIGKILL);
        for monitor in &monitors {
            assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
        }
        sys::reap(pid);
    }
}

alone! {
    fn under_a_filter_it_is_refused_and_nothing_is_left() {
        for call in [libc::SYS_set_robust_list, libc::SYS_get_robust_list] {
            for errno in [libc::EPERM, libc::ENOSYS] {
                on_main(|| {
                    sys::deny(&[call], errno);
                    let before = Census::now();
                    let error = ThreadToken::new().unwrap_err();
                    assert!(matches!(error, Error::Unsupported(_)), "{error}");
                    before.unchanged();
                });
            }
        }
    }
}
