//! What a queue costs, counted.
#![allow(clippy::disallowed_methods)] // What does not happen takes time.

mod common;

use std::os::fd::AsFd;

use common::sys;
use procwright::queue::{Error, Receiver};

/// How many system calls `work` makes, after `ready`.
fn calls<T>(ready: impl FnOnce() -> T, work: impl FnOnce(&mut T)) -> u64 {
    let mut traced = sys::steps::fork_traced(ready, |mut made| {
        work(&mut made);
        // Nothing of the end.
        std::mem::forget(made);
    });
    let mut stops = 0u64;
    while traced.run_to_call() {
        stops += 1;
    }
    // Each begins and ends; the last, the exit, only begins.
    stops / 2
}

alone! {
    fn no_system_call_a_message() {
        let ready = || {
            let mut receiver = Receiver::new().unwrap();
            let sender = receiver.sender().unwrap();
            (receiver, sender)
        };
        // Where the first looks and the first block are counted in.
        let once = calls(ready, |(receiver, sender)| {
            sender.send(b"x").unwrap();
            receiver.try_recv().unwrap();
        });
        let rounds = 64;
        let many = calls(ready, |(receiver, sender)| {
            let mut view = 0;
            for _ in 0..rounds * 4096 {
                sender.send(b"x").unwrap();
                view += receiver.try_recv_view().unwrap().len();
            }
            assert_eq!(view, rounds * 4096);
        });
        common::figure(&format!("{once} system calls with the first message, {many} with {}", rounds * 4096));
        // Each end looks once in 4,096 whether the other is there.
        assert!(many <= once + 2 * rounds as u64, "{many}");
    }
}

alone! {
    fn one_system_call_a_wake_up() {
        let mut receiver = Receiver::new().unwrap();
        let invitation = receiver.invite().unwrap();
        let fd = receiver.readiness_fd().unwrap().try_clone_to_owned().unwrap();
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        let made = calls(
            move || {
                let mut sender = procwright::queue::Sender::attach(invitation).unwrap();
                // The first block is there.
                let _ = sender.reserve(8).unwrap();
                sender
            },
            |sender| (0..100).for_each(|_| sender.send(b"x").unwrap()),
        );
        assert_eq!(made, 1, "one for the sleep, however many are sent");
        assert!(sys::readable(fd.as_fd()));
        for _ in 0..100 {
            assert_eq!(receiver.recv().unwrap(), b"x");
        }
        assert!(matches!(receiver.recv(), Err(Error::Closed)));
    }
}

alone! {
    fn nobody_is_woken_while_nobody_sends() {
        let mut receiver = Receiver::new().unwrap();
        let mut sender = receiver.sender().unwrap();
        std::thread::scope(|scope| {
            let (told, number) = std::sync::mpsc::channel();
            scope.spawn(move || {
                told.send(sys::thread_id()).unwrap();
                assert_eq!(receiver.recv().unwrap(), b"at last");
            });
            let thread = number.recv().unwrap();
            // In its long sleep, on the descriptor.
            common::eventually(|| {
                let call = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
                let call = call.unwrap_or_default();
                let number = call.split(' ').next().and_then(|number| number.parse().ok());
                number.is_some_and(sys::is_waiting_call)
            });
            let switches = || {
                let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status"));
                let status = status.unwrap();
                let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
                lines.collect::<Vec<_>>().join(" ")
            };
            let before = switches();
            std::thread::sleep(std::time::Duration::from_millis(common::scaled(300, 5000)));
            assert_eq!(switches(), before);
            sender.send(b"at last").unwrap();
        });
    }
}
