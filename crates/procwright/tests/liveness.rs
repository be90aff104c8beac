//! Tokens and monitors, between processes.

mod common;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use common::sys;
use procwright::Process;
use procwright::liveness::{Error, Invitation, Mechanism, Monitor, Names, State, Token};

/// A fork that holds a token, does `then`, and what is seen of it from here.
fn peer(then: impl FnOnce(Token)) -> (i32, Monitor) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let token = Token::new().unwrap();
        token.invite().unwrap().send(&theirs).unwrap();
        then(token)
    });
    let monitor = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
    (pid, monitor)
}

/// Holds the token until the end.
fn keep(token: Token) {
    std::mem::forget(token);
}

alone! {
    fn a_killed_peer_has_died() {
        let (pid, monitor) = peer(keep);
        assert!(monitor.alive());
        assert_eq!(monitor.state(), State::Alive);
        assert_eq!(monitor.guarantee().names, Names::Image);
        assert_eq!(monitor.guarantee().mechanism, Mechanism::RobustWord);
        assert_eq!(monitor.process().unwrap().pid(), pid);
        assert_eq!(monitor.wait(Duration::from_millis(20)), None);
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
        assert!(!monitor.alive());
        assert_eq!(monitor.wait_gone(Duration::MAX), Some(true));
        sys::reap(pid);
        assert_eq!(monitor.state(), State::Died);
    }
}

alone! {
    fn a_token_that_is_dropped_was_released() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let (pid, monitor) = peer(|token| {
            Invitation::receive(&theirs).unwrap_err();
            drop(token);
        });
        assert!(monitor.alive());
        ours.write_all(b"go").unwrap();
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Released));
        sys::kill(pid, libc::SIGKILL);
        sys::reap(pid);
        assert_eq!(monitor.state(), State::Released);
    }
}

alone! {
    fn a_monitor_of_a_process_needs_nothing_of_it() {
        let pid = sys::fork_pausing();
        let process = Process::open(pid).unwrap();
        let monitor = Monitor::of_process(&process).unwrap();
        assert!(monitor.alive());
        assert_eq!(monitor.guarantee().names, Names::Process);
        // A fork has no thread that is told, and asks.
        assert_eq!(sys::in_fork(|| i32::from(!monitor.alive())), 0);
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
        sys::reap(pid);
        while monitor.alive() {
            std::thread::yield_now();
        }
        assert_eq!(monitor.state(), State::Died);
        assert_eq!(sys::in_fork(|| i32::from(monitor.alive())), 0);
    }
}

alone! {
    fn a_fork_has_no_part_in_a_token() {
        let mut token = Some(Token::new().unwrap());
        let invitation = token.as_ref().unwrap().invite().unwrap();
        let monitor = Monitor::accept(invitation).unwrap();
        let status = sys::in_fork(|| {
            let inherited = token.take().unwrap();
            assert!(matches!(inherited.invite(), Err(Error::Forked)));
            drop(inherited);
            // Its own is another.
            let own = Token::new().unwrap();
            let of_own = Monitor::accept(own.invite().unwrap()).unwrap();
            assert!(monitor.alive() && of_own.alive());
            drop(own);
            assert!(monitor.alive() && !of_own.alive());
            0
        });
        assert_eq!(status, 0);
        assert!(monitor.alive());
    }
}

alone! {
    fn every_one_of_ten_who_wait_is_woken() {
        let (pid, monitor) = peer(keep);
        std::thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| assert_eq!(monitor.wait(Duration::MAX), Some(State::Died)));
            }
            sys::kill(pid, libc::SIGKILL);
        });
        sys::reap(pid);
    }
}

alone! {
    fn a_thousand_tokens_of_one_process() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let mut tokens = Vec::new();
            let error = loop {
                match Token::new() {
                    Ok(token) => tokens.push(token),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Full(1024)), "{error}");
            // Places that are free again are not those of the old.
            tokens.drain(..512);
            tokens.extend((0..512).map(|_| Token::new().unwrap()));
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
    fn a_cell_is_never_given_to_another() {
        let token = Token::new().unwrap();
        let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
        drop(token);
        for _ in 0..100_000 {
            drop(Token::new().unwrap());
            assert_eq!(monitor.state(), State::Released);
        }
    }
}
