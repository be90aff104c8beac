//! Tokens and monitors, between processes.

mod common;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use common::sys;
use procwright::liveness::{Claim, Error, Invitation, Mechanism, Monitor, Names, State, Token};
use procwright::{Command, Process};

/// A fork that holds a token and calls `then`, and a monitor of it.
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

/// Holds the token until the process ends.
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
        // A fork has no thread that is told of the end, so it asks the kernel.
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
            // A token that the fork makes is separate.
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
    fn a_fork_has_none_of_its_memory() {
        // This process has a right and tokens, and no thread that watches.
        let (pid, monitor) = peer(keep);
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
        sys::reap(pid);
        let Claim::Ours(_right) = monitor.claim(Duration::ZERO).unwrap() else { panic!() };
        drop(monitor);
        let _tokens: Vec<_> = (0..100).map(|_| Token::new().unwrap()).collect();
        let mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            maps.matches("/memfd:procwright-liveness").count()
        };
        assert_eq!(mapped(), 3);
        assert_eq!(sys::fork_running(|| mapped().try_into().unwrap()), 0);
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
            // Cells that are used again are not those of the old tokens.
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
        for _ in 0..10_000 {
            let _next = Token::new().unwrap();
            assert_eq!(monitor.state(), State::Released);
        }
    }
}

/// Environment variable of the program in the test below, which watches the process
/// that started it.
const WATCH: &str = "PROCWRIGHT_TEST_WATCH";

alone! {
    fn an_invitation_can_be_inherited() {
        let name = "an_invitation_can_be_inherited";
        if let Ok(ticket) = std::env::var(WATCH) {
            let files = [100, 101].map(sys::take_over);
            let monitor = Monitor::accept(Invitation::from_parts(files, &ticket).unwrap()).unwrap();
            assert!(monitor.alive());
            println!("alive");
            // The holder releases its token when it has read the line.
            println!("{:?}", monitor.wait(Duration::MAX).unwrap());
            return;
        }
        let mut token = Some(Token::new().unwrap());
        let invitation = token.as_ref().unwrap().invite().unwrap();
        let ticket = invitation.ticket();
        let [cells, rights] = <[_; 2]>::from(invitation.try_clone().unwrap());
        let copy = common::copy_of_test(name);
        let command = Command::new(copy.get_program()).args(copy.get_args());
        let env = copy.get_envs();
        let output = env
            .fold(command, |command, (key, value)| command.env(key, value.unwrap()))
            .env(WATCH, ticket)
            .pass_fd(cells, 100)
            .pass_fd(rights, 101)
            .on_stdout_line(move |line| {
                if line.trim_ascii_end().ends_with(b"alive") {
                    token.take();
                }
                Ok(())
            })
            .run()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("alive\nReleased\n"), "{said}");
        let monitor = Monitor::accept(invitation).unwrap();
        assert_eq!(monitor.state(), State::Released);
    }
}

alone! {
    fn what_is_no_invitation_is_refused_and_nothing_of_it_stays_open() {
        use std::os::fd::AsFd;
        let (ours, theirs) = UnixStream::pair().unwrap();
        let token = Token::new().unwrap();
        let invitation = token.invite().unwrap();
        let before = common::Census::now();
        let refused = || match Invitation::receive(&ours) {
            Err(Error::Invalid(why)) => why,
            other => panic!("{other:?}"),
        };
        let [cells, rights] = invitation.files();
        let good = {
            let mut message = b"pwl2".to_vec();
            message.extend([0; 12]);
            message
        };
        for files in [vec![], vec![cells], vec![cells, rights, cells], vec![cells; 100]] {
            sys::send_with_files(theirs.as_fd(), &good, &files);
            assert_eq!(refused(), "another message came");
        }
        sys::send_with_files(theirs.as_fd(), b"too short", &[cells, rights]);
        assert_eq!(refused(), "another message came");
        sys::send_with_files(theirs.as_fd(), &[0; 16], &[cells, rights]);
        assert_eq!(refused(), "another message came");
        before.unchanged();
        drop(theirs);
        assert_eq!(refused(), "the other side has closed the socket");
        for ticket in ["", "0", "00000000000000000000000g", "+00000000000000000000000"] {
            let files = <[_; 2]>::from(invitation.try_clone().unwrap());
            assert!(matches!(Invitation::from_parts(files, ticket), Err(Error::Invalid(_))));
        }
    }
}
