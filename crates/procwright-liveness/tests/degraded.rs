//! Kernels that do not mark the words of the dead, and kernels that do not name
//! processes.

use std::ffi::CString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_liveness::{
    Claim, Error, Guarantee, Invitation, Mechanism, Monitor, Names, State, Token,
};
use procwright_process::Process;
use procwright_process::wait::WaitSet;
use procwright_process::wait::{Event, Want};
use test_support::sys;

fn no_robust_lists() {
    sys::deny(&[libc::SYS_set_robust_list], libc::EPERM);
}

fn no_inodes() {
    sys::deny(&[libc::SYS_fstatfs], libc::ENOSYS);
}

/// A fork without robust lists that holds a token until it is told to call `then`.
fn fork_without_robust_lists(then: fn(Token)) -> (i32, UnixStream, Monitor) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        no_robust_lists();
        let token = Token::new().unwrap();
        assert_eq!(token.guarantee().mechanism, Mechanism::Watcher);
        token.invite().unwrap().send(&theirs).unwrap();
        let _ = theirs.read(&mut [0]);
        then(token);
    });
    let monitor = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
    (pid, ours, monitor)
}

/// Two things that a holder may do with its token, and the state that a monitor then
/// sees.
const ENDS: [(fn(Token), State); 2] = [(std::mem::forget, State::Died), (drop, State::Released)];

fn kill_and_reap(pid: i32) {
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
}

alone! {
    fn without_robust_lists_the_process_is_watched() {
        for _ in 0..test_support::scaled(50, 2000) {
            let (pid, _talk, monitor) = fork_without_robust_lists(std::mem::forget);
            let Guarantee { names, mechanism, .. } = monitor.guarantee();
            assert_eq!((names, mechanism), (Names::Process, Mechanism::Watcher));
            assert_eq!(monitor.process().unwrap().pid(), pid);
            assert!(monitor.alive());
            assert_eq!(monitor.state(), State::Alive);
            assert_eq!(monitor.wait(Duration::from_millis(1)), None);
            assert_eq!(sys::in_fork(|| i32::from(!monitor.alive())), 0);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
                        assert!(!monitor.alive());
                    });
                }
                sys::kill(pid, libc::SIGKILL);
            });
            assert_eq!(monitor.wait_gone(Duration::MAX), Some(true));
            assert_eq!(monitor.state(), State::Died);
            sys::reap(pid);
            assert_eq!(sys::in_fork(|| i32::from(monitor.alive())), 0);
        }
    }
}

alone! {
    fn who_was_told_of_the_end_does_not_find_it_alive_afterwards() {
        for round in 0..test_support::scaled(100, 2000) {
            let (pid, _talk, monitor) = fork_without_robust_lists(std::mem::forget);
            sys::kill(pid, libc::SIGKILL);
            match round % 2 {
                0 => assert_eq!(monitor.wait_gone(Duration::MAX), Some(true)),
                _ => test_support::eventually(|| monitor.confirm() == State::Died),
            }
            assert_eq!(monitor.state(), State::Died);
            sys::reap(pid);
        }
    }
}

alone! {
    fn without_robust_lists_the_word_tells_of_a_release() {
        for _ in 0..test_support::scaled(50, 2000) {
            let (pid, mut talk, monitor) = fork_without_robust_lists(drop);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        assert_eq!(monitor.wait(Duration::MAX), Some(State::Released));
                    });
                }
                talk.write_all(b"r").unwrap();
            });
            assert!(!monitor.alive());
            assert_eq!(monitor.state(), State::Released);
            kill_and_reap(pid);
            assert_eq!(monitor.state(), State::Released);
        }
    }
}

alone! {
    fn without_robust_lists_there_is_readiness_too() {
        for (then, expected) in ENDS {
            let (pid, mut talk, monitor) = fork_without_robust_lists(then);
            let mut set = WaitSet::new().unwrap();
            assert!(!sys::readable(monitor.readiness_fd().unwrap()));
            set.add(monitor, Event::Exited).unwrap();
            match expected {
                State::Died => drop(sys::kill(pid, libc::SIGKILL)),
                _ => talk.write_all(b"g").unwrap(),
            }
            let waited = set.wait(Want::Any, None).unwrap();
            let monitor = &waited.ended[0].1;
            assert!(!monitor.alive());
            assert_eq!(monitor.wait(Duration::MAX), Some(expected));
            assert!(sys::readable(monitor.readiness_fd().unwrap()));
            kill_and_reap(pid);
        }
    }
}

alone! {
    fn without_robust_lists_a_fork_can_wait_too() {
        for (then, expected) in ENDS {
            let (pid, mut talk, monitor) = fork_without_robust_lists(then);
            assert_eq!(monitor.wait(Duration::from_millis(1)), None);
            let (mut ours, mut theirs) = UnixStream::pair().unwrap();
            let waiter = sys::fork_running_aside(|| {
                theirs.write_all(b"w").unwrap();
                i32::from(monitor.wait(Duration::MAX) != Some(expected))
            });
            ours.read_exact(&mut [0]).unwrap();
            talk.write_all(b"g").unwrap();
            if expected == State::Died {
                sys::kill(pid, libc::SIGKILL);
            }
            assert_eq!(sys::reap(waiter), 0);
            kill_and_reap(pid);
        }
    }
}

fn exec(token: Token) {
    std::mem::forget(token);
    let program = test_children::path();
    let words = [program.as_os_str().as_bytes(), b"sleep-forever"];
    sys::exec(&words.map(|word| CString::new(word).unwrap()));
}

alone! {
    fn without_robust_lists_an_exec_ends_nothing() {
        let (pid, mut talk, monitor) = fork_without_robust_lists(exec);
        talk.write_all(b"e").unwrap();
        // The exec closes the holder's end of the socket.
        assert_eq!(talk.read(&mut [0]).unwrap(), 0);
        assert_eq!(monitor.state(), State::Alive);
        kill_and_reap(pid);
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
    }
}

alone! {
    fn who_was_gone_before_has_died_all_the_same() {
        for (then, expected) in ENDS {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let pid = sys::fork_pausing_after(|| {
                no_robust_lists();
                let token = Token::new().unwrap();
                let invitation = token.invite().unwrap();
                then(token);
                invitation.send(&theirs).unwrap();
                let _ = theirs.read(&mut [0]);
            });
            let invitation = Invitation::receive(&ours).unwrap();
            kill_and_reap(pid);
            let monitor = Monitor::accept(invitation).unwrap();
            assert_eq!(monitor.state(), expected);
            assert_eq!(monitor.wait(Duration::MAX), Some(expected));
            assert!(!monitor.alive());
        }
    }
}

alone! {
    fn a_right_is_refused_where_nobody_would_get_it_after_us() {
        let (pid, _talk, monitor) = fork_without_robust_lists(std::mem::forget);
        kill_and_reap(pid);
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
        let refused = sys::in_fork(|| {
            no_robust_lists();
            i32::from(!matches!(monitor.claim(Duration::ZERO), Err(Error::Unsupported(_))))
        });
        assert_eq!(refused, 0);
        assert!(matches!(monitor.claim(Duration::ZERO).unwrap(), Claim::Ours(_)));
    }
}

alone! {
    fn who_cannot_see_the_holder_is_refused() {
        let test = "who_cannot_see_the_holder_is_refused";
        if !test_support::root_or_skip(test) {
            return;
        }
        let (ours, theirs) = UnixStream::pair().unwrap();
        // The first process of a namespace, where its number is 1.
        let code = sys::in_fork(|| {
            if !sys::unshare_pids() {
                return 77;
            }
            let marked = sys::fork_pausing_after(|| {
                let token = Token::new().unwrap();
                token.invite().unwrap().send(&theirs).unwrap();
                std::mem::forget(token);
            });
            let first = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
            assert!(first.process().is_none() && first.alive());
            sys::kill(marked, libc::SIGKILL);
            assert_eq!(first.wait(Duration::MAX), Some(State::Died));
            sys::reap(marked);
            0
        });
        if libc::WIFEXITED(code) && libc::WEXITSTATUS(code) == 77 {
            test_support::skip(test, "needs a pid namespace");
            return;
        }
        assert_eq!(code, 0);
        let code = sys::in_fork(|| {
            assert!(sys::unshare_pids());
            let unmarked = sys::fork_pausing_after(|| {
                no_robust_lists();
                let token = Token::new().unwrap();
                token.invite().unwrap().send(&theirs).unwrap();
                std::mem::forget(token);
            });
            let refused = Monitor::accept(Invitation::receive(&ours).unwrap());
            assert!(matches!(refused, Err(Error::Unsupported(_))), "{refused:?}");
            sys::kill(unmarked, libc::SIGKILL);
            sys::reap(unmarked);
            0
        });
        assert_eq!(code, 0);
    }
}

alone! {
    fn before_processes_had_inodes_the_holder_is_known_by_its_start() {
        no_inodes();
        assert_eq!(Process::open(std::process::id().cast_signed()).unwrap().id().inode(), None);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let token = Token::new().unwrap();
            token.invite().unwrap().send(&theirs).unwrap();
            std::mem::forget(token);
        });
        let invitation = Invitation::receive(&ours).unwrap();
        let monitor = Monitor::accept(invitation.try_clone().unwrap()).unwrap();
        assert_eq!(monitor.process().unwrap().pid(), pid);
        sys::kill(pid, libc::SIGKILL);
        assert_eq!(monitor.wait_gone(Duration::MAX), Some(true));
        sys::reap(pid);
        let late = Monitor::accept(invitation).unwrap();
        assert!(late.process().is_none());
        assert_eq!(late.state(), State::Died);
        // A kernel with neither.
        let (pid, _talk, monitor) = fork_without_robust_lists(std::mem::forget);
        assert_eq!(monitor.process().unwrap().pid(), pid);
        assert!(monitor.alive());
        kill_and_reap(pid);
        assert_eq!(monitor.wait(Duration::MAX), Some(State::Died));
    }
}
