//! Hosts that reap behind the library's back: SIGCHLD ignored, waitpid(-1), two waits
//! for one child.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use test_support::alone;

use procwright_os::time::Timeout;
use procwright_process::Process;
use procwright_process::wait::{Event, WaitSet, Want};
use procwright_process::{Exit, Signal, Unknown};
use test_support::family::remembers;
use test_support::{Census, scaled, sys};

/// A child of this process that waits for its order.
fn obedient_child() -> (std::process::Child, Process) {
    let child = Command::new(test_children::path())
        .arg("obey")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let process = Process::of_child(&child).unwrap();
    (child, process)
}

fn order_to_end(child: &mut std::process::Child, code: u8) {
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(format!("exit {code}\n").as_bytes())
        .unwrap();
}

/// Expects the true status, or "unknown" where the kernel does not remember it.
#[track_caller]
fn assert_exit_if_remembered(told: Option<Exit>, truth: Exit) {
    match told {
        Some(Exit::Unknown(Unknown::NotTold)) if !remembers() => {}
        told => assert_eq!(told, Some(truth)),
    }
}

alone! {
    fn sigchld_is_ignored() {
        sys::ignore(libc::SIGCHLD);
        let before = Census::now();
        for code in [0, 1, 77, 255] {
            for event in [Event::Exited, Event::Reaped] {
                let pid = sys::fork_pausing_then_exiting(code);
                let process = Process::open(pid).unwrap();
                let mut set = WaitSet::new().unwrap();
                set.add(process.clone(), event).unwrap();
                assert!(process.is_alive());
                sys::kill(pid, libc::SIGUSR1);
                assert_exit_if_remembered(process.wait_for(event, Timeout::NEVER).unwrap(), Exit::Code(code));
                assert_exit_if_remembered(set.wait(Want::All, None).unwrap().ended[0].1.exit(), Exit::Code(code));
                assert!(process.signal(Signal::TERM).is_err());
            }
        }
        let pid = sys::fork_pausing();
        let process = Process::open(pid).unwrap();
        process.signal(Signal::KILL).unwrap();
        let killed = Exit::Signal { signal: Signal::KILL, core: false };
        assert_exit_if_remembered(process.wait(Timeout::NEVER).unwrap(), killed);
        drop(process);
        before.comes_back();
    }
}

alone! {
    fn somebody_reaps_every_child() {
        static OVER: AtomicBool = AtomicBool::new(false);
        static STOLEN: AtomicU64 = AtomicU64::new(0);
        let thief = std::thread::spawn(|| {
            while !OVER.load(Ordering::Relaxed) {
                if sys::reap_any() {
                    STOLEN.fetch_add(1, Ordering::Relaxed);
                } else {
                    std::thread::yield_now();
                }
            }
        });
        for round in 0..scaled(300, 10_000) {
            let code = (round % 256) as i32;
            let pid = sys::fork_pausing_then_exiting(code);
            let process = Process::open(pid).unwrap();
            let mut set = WaitSet::new().unwrap();
            set.add(process.clone(), Event::Exited).unwrap();
            set.add(process.clone(), Event::Reaped).unwrap();
            sys::kill(pid, libc::SIGUSR1);
            // The wait is before, during or after the theft.
            assert_exit_if_remembered(process.wait(Timeout::NEVER).unwrap(), Exit::Code(code));
            let waited = set.wait(Want::All, None).unwrap();
            assert_eq!(waited.ended.len(), 2);
            assert_exit_if_remembered(process.exit(), Exit::Code(code));
        }
        OVER.store(true, Ordering::Relaxed);
        thief.join().unwrap();
        assert!(STOLEN.load(Ordering::Relaxed) > 0, "nothing was stolen: this test shows nothing");
    }
}

alone! {
    fn many_wait_for_one() {
        let before = Census::now();
        for round in 0..scaled(20, 500) {
            let code = (round % 256) as u8;
            let truth = Exit::Code(code.into());
            let (mut child, process) = obedient_child();
            // Clones, and another handle of one process.
            let other = Process::open(process.pid()).unwrap();
            let barrier = Barrier::new(7);
            std::thread::scope(|scope| {
                let waiters: Vec<_> = [&process, &process, &other, &other]
                    .into_iter()
                    .map(|process| scope.spawn(|| {
                        barrier.wait();
                        process.wait(Timeout::NEVER).unwrap()
                    }))
                    .collect();
                let reaps: Vec<_> = [&process, &other]
                    .into_iter()
                    .map(|process| scope.spawn(|| {
                        barrier.wait();
                        process.wait_for(Event::Reaped, Timeout::NEVER).unwrap()
                    }))
                    .collect();
                barrier.wait();
                order_to_end(&mut child, code);
                for waiter in waiters {
                    assert_eq!(waiter.join().unwrap(), Some(truth));
                }
                assert_eq!(child.wait().unwrap().code(), Some(code.into()));
                for waiter in reaps {
                    assert_eq!(waiter.join().unwrap(), Some(truth));
                }
            });
        }
        before.comes_back();
    }
}

alone! {
    fn a_wait_beside_the_owners_own() {
        // The owner blocks in wait(2), and has reaped before any other thread can look.
        for round in 0..scaled(50, 2000) {
            let code = (round % 256) as u8;
            let (mut child, process) = obedient_child();
            let waiter = {
                let process = process.clone();
                std::thread::spawn(move || process.wait(Timeout::NEVER).unwrap())
            };
            order_to_end(&mut child, code);
            assert_eq!(child.wait().unwrap().code(), Some(code.into()));
            assert_exit_if_remembered(waiter.join().unwrap(), Exit::Code(code.into()));
            assert_exit_if_remembered(process.exit(), Exit::Code(code.into()));
        }
    }
}

alone! {
    fn unknown_is_never_a_number() {
        // The kernel's memory cannot be read: PIDFD_GET_INFO is denied, and so is every
        // look into the process. All that is left is that the process has ended.
        sys::ignore(libc::SIGCHLD);
        let processes: Vec<_> = [0, 3, 255].map(|code| {
            let pid = sys::fork_pausing_then_exiting(code);
            (pid, Process::open(pid).unwrap())
        }).into();
        sys::deny(&[libc::SYS_ioctl], libc::ENOTTY);
        for (pid, process) in &processes {
            sys::kill(*pid, libc::SIGUSR1);
            let told = process.wait_for(Event::Reaped, Timeout::NEVER).unwrap().unwrap();
            assert_eq!(told, Exit::Unknown(Unknown::NotTold));
            assert_eq!((told.code(), told.signal(), told.success()), (None, None, false));
        }
    }
}
