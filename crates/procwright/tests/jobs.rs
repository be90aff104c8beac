//! The parts of job control. The tests of the command are about the whole.

mod common;

use std::os::fd::AsFd;

use common::child;
use procwright::Error;
use procwright::process::job::{Inbox, is_stopped, take_stop};
use procwright::process::{Exit, Signal};
use rustix::event::{PollFd, PollFlags, poll};

#[test]
fn a_stop_is_told_of_once_and_the_end_is_left_alone() {
    let _dog = common::watchdog("a_stop_is_told_of_once_and_the_end_is_left_alone");
    let child = child(&["sleep-forever"]).spawn().unwrap();
    assert_eq!(take_stop(child.pid()), None);
    for _ in 0..2 {
        child.signal(Signal::STOP).unwrap();
        let told = loop {
            if let Some(signal) = take_stop(child.pid()) {
                break signal;
            }
        };
        assert_eq!(told, Signal::STOP);
        assert!(is_stopped(child.pid()));
        assert_eq!(take_stop(child.pid()), None);
        child.signal(Signal::CONT).unwrap();
        while is_stopped(child.pid()) {}
    }
    // A stop that is over is not reported.
    child.signal(Signal::STOP).unwrap();
    while !is_stopped(child.pid()) {}
    child.signal(Signal::CONT).unwrap();
    while is_stopped(child.pid()) {}
    assert_eq!(take_stop(child.pid()), None);
    child.signal(Signal::KILL).unwrap();
    while child.process().is_alive() {}
    assert_eq!(take_stop(child.pid()), None);
    let ended = child.wait(None).unwrap().unwrap();
    assert!(matches!(ended, Exit::Signal { signal, .. } if signal == Signal::KILL));
}

#[test]
fn signals_wait_to_be_taken() {
    let inbox = Inbox::new([Signal::USR1, Signal::USR2]).unwrap();
    let is_readable = || {
        let mut fds = [PollFd::from_borrowed_fd(inbox.as_fd(), PollFlags::IN)];
        poll(&mut fds, Some(&Default::default())).unwrap() == 1
    };
    assert!(!is_readable() && inbox.take().is_none());
    // SAFETY: the signal is blocked in this thread, to which it is sent.
    unsafe { libc::raise(libc::SIGUSR2) };
    assert!(is_readable());
    let arrival = inbox.take().unwrap();
    assert_eq!((arrival.signal, arrival.from_kernel), (Signal::USR2, false));
    assert!(!is_readable() && inbox.take().is_none());
    // A program that is started does not inherit the mask.
    let shown = child(&["show"]).run().unwrap().stdout;
    let shown: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown["sig_blocked"], serde_json::json!([]));
    drop(inbox);
    // SAFETY: both sets are live locals.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
        assert_eq!(libc::sigismember(&raw const mask, libc::SIGUSR1), 0);
    }
}

#[test]
fn the_foreground_is_for_a_group_of_its_own() {
    for command in [
        child(&["exit", "0"]).foreground(),
        child(&["exit", "0"]).foreground().new_session(),
    ] {
        let Err(Error::Invalid(error)) = command.run() else {
            panic!("that cannot be meant");
        };
        assert_eq!(error.what(), "foreground");
    }
    // Without a terminal, or in its background, the terminal is not handed over.
    let output = child(&["exit", "3"])
        .process_group(0)
        .foreground()
        .run()
        .unwrap();
    assert_eq!(output.report.status, Exit::Code(3));
}
