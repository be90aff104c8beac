//! Tokens and monitors where threads, descriptors, or watches run out: nothing is left
//! behind, and no answer is wrong.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use test_support::alone;

use procwright_liveness::{Error, Invitation, Monitor, State, ThreadToken, Token};
use procwright_process::Process;
use test_support::sys;

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().count()
}

alone! {
    fn a_token_that_cannot_be_had_leaves_no_memory_behind() {
        sys::deny(&[libc::SYS_clone, libc::SYS_clone3], libc::EAGAIN);
        let fail = || assert!(matches!(Token::new(), Err(Error::Io(_))));
        fail();
        let before = mappings();
        (0..100).for_each(|_| fail());
        // The allocator may take some for itself.
        assert!(mappings() < before + 20, "{} after {before}", mappings());
    }
}

alone! {
    fn monitors_come_and_go_where_there_are_few_descriptors() {
        let peer = sys::fork_pausing();
        let token = Token::new().unwrap();
        // The lasting threads are started before the limit.
        let both = || {
            let process = Process::open(peer).unwrap();
            let of_process = Monitor::of_process(&process).unwrap();
            let of_token = Monitor::accept(token.invite().unwrap()).unwrap();
            of_token.readiness_fd().unwrap();
            assert!(of_process.alive() && of_token.alive());
        };
        both();
        sys::set_nofile(64);
        (0..test_support::scaled(2000, 100_000)).for_each(|_| both());
        // The watching thread is starved of processor time as well.
        sys::starve("procwright-watch");
        (0..test_support::scaled(2000, 100_000)).for_each(|_| both());
    }
}

alone! {
    fn where_nobody_can_be_watched_any_more_everybody_is_asked() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let holder = sys::fork_pausing_after(|| {
            sys::deny(&[libc::SYS_set_robust_list], libc::EPERM);
            let token = Token::new().unwrap();
            token.invite().unwrap().send(&theirs).unwrap();
            let _ = theirs.read(&mut [0]);
            drop(token);
        });
        let unmarked = Monitor::accept(Invitation::receive(&ours).unwrap()).unwrap();
        let another = sys::fork_pausing();
        let of_process = Monitor::of_process(&Process::open(another).unwrap()).unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| unmarked.wait(None));
            assert_eq!(unmarked.wait(Duration::from_millis(50)), None);
            sys::deny(&[libc::SYS_epoll_ctl, libc::SYS_epoll_wait], libc::ENOMEM);
            // The watcher looks at its list, and cannot wait any more.
            drop(Monitor::of_process(&Process::open(holder).unwrap()));
            sys::end(another);
            test_support::eventually(|| !of_process.alive());
            assert!(unmarked.alive());
            (&ours).write_all(b"r").unwrap();
            assert_eq!(waits.join().unwrap(), Some(State::Released));
        });
        sys::end(holder);
    }
}

alone! {
    fn a_filter_that_kills_who_asks_for_the_list_kills_nobody() {
        // glibc does not make the call, musl makes it for every such lock.
        let code = sys::in_fork(|| {
            sys::kill_on(&[libc::SYS_get_robust_list]);
            i32::from(!matches!(ThreadToken::new(), Err(Error::Unsupported(_))))
        });
        assert_eq!(code, 0);
    }
}

alone! {
    fn a_fork_that_has_the_same_number_is_another_process() {
        let test = "a_fork_that_has_the_same_number_is_another_process";
        if !test_support::root_or_skip(test) {
            return;
        }
        // The first process of a namespace has the number 1, and so has the first of a
        // nested one.
        let status = sys::in_fork(|| {
            if !sys::unshare_pids() {
                return 77;
            }
            let status = sys::in_fork(|| {
                assert_eq!(std::process::id(), 1);
                // Dropped explicitly in the fork: a moved value would be dropped here.
                let mut token = Some(Token::new().unwrap());
                let mut of_thread = Some(ThreadToken::new().unwrap());
                let monitor = Monitor::accept(token.as_ref().unwrap().invite().unwrap()).unwrap();
                let own = Process::open(1).unwrap();
                let mut of_process = Some(Monitor::of_process(&own).unwrap());
                monitor.readiness_fd().unwrap();
                assert!(sys::unshare_pids());
                let status = sys::in_fork(|| {
                    assert_eq!(std::process::id(), 1);
                    let token = token.take().unwrap();
                    let of_thread = of_thread.take().unwrap();
                    assert!(matches!(token.invite(), Err(Error::Forked)));
                    assert!(matches!(of_thread.invite(), Err(Error::Forked)));
                    assert!(monitor.alive() && monitor.readiness_fd().is_err());
                    drop(token);
                    drop(of_thread);
                    drop(of_process.take());
                    assert!(monitor.alive());
                    let token = Token::new().unwrap();
                    let monitor = Monitor::accept(token.invite().unwrap()).unwrap();
                    monitor.readiness_fd().unwrap();
                    drop(token);
                    assert_eq!(monitor.wait(None), Some(State::Released));
                    0
                });
                assert_eq!(status, 0);
                assert!(monitor.alive());
                0
            });
            // The whole status: an exit code has only eight bits of it.
            i32::from(status != 0)
        });
        match libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 77 {
            true => test_support::skip(test, "no pid namespace may be made here"),
            false => assert_eq!(status, 0),
        }
    }
}
