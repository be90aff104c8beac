//! The cost of a queue, counted.
#![allow(clippy::disallowed_methods)] // What does not happen takes time.

use std::os::fd::AsFd;
use test_support::alone;

use std::os::unix::net::UnixStream;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::sys;
use test_support::sys::steps::Traced;

/// Number of system calls that `work` makes, after `ready`.
fn calls<T>(ready: impl FnOnce() -> T, work: impl FnOnce(&mut T)) -> u64 {
    let mut traced = sys::steps::fork_traced(ready, |mut made| {
        work(&mut made);
        // The end of the queue does not count.
        std::mem::forget(made);
    });
    let mut stops = 0u64;
    while traced.run_to_call() {
        stops += 1;
    }
    // Each call stops at its begin and at its end; the last one, the exit, only at its
    // begin.
    stops / 2
}

alone! {
    fn no_system_call_a_message() {
        let ready = || {
            let mut receiver = Receiver::new().unwrap();
            let sender = receiver.sender().unwrap();
            (receiver, sender)
        };
        // This counts the first looks and the first block.
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
        test_support::figure(&format!("{once} system calls with the first message, {many} with {}", rounds * 4096));
        // Each end asks once in 4,096 messages whether the other is there, and may be at
        // any of them when this begins.
        assert!(many <= once + 2 * (rounds as u64 + 1), "{many}");
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
                let mut sender = procwright_queue::Sender::attach(invitation).unwrap();
                // This makes the first block.
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

/// A thread's system call, and the number of its switches.
fn sleep_of(thread: i32) -> (Option<i64>, String) {
    let read = |what| std::fs::read_to_string(format!("/proc/{thread}/{what}")).unwrap_or_default();
    let call = read("syscall")
        .split(' ')
        .next()
        .and_then(|number| number.parse().ok());
    let switches = read("status");
    let switches = switches
        .lines()
        .filter(|line| line.contains("ctxt_switches"));
    (call, switches.collect::<Vec<_>>().join(" "))
}

/// Checks that a thread that sleeps in such a call is not woken for a while.
fn is_left_alone(thread: i32, is_sleep: impl Fn(i64) -> bool) {
    let pass = |millis| std::thread::sleep(std::time::Duration::from_millis(millis));
    let mut before = sleep_of(thread);
    // The thread may be on its way to a long sleep.
    test_support::eventually(|| {
        pass(100);
        let last = std::mem::replace(&mut before, sleep_of(thread));
        last == before && before.0.is_some_and(&is_sleep)
    });
    pass(test_support::scaled(300, 5000));
    assert_eq!(sleep_of(thread), before);
}

alone! {
    /// A receiver that sleeps on its word is stopped, and so stays asleep, and is woken
    /// once.
    fn one_system_call_a_wake_up_on_a_word() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pid = sys::fork_pausing_after(|| {
            let mut receiver = Receiver::new().unwrap();
            receiver.invite().unwrap().send(&theirs).unwrap();
            let mut peace = receiver.sender().unwrap();
            loop {
                // The receiver is asleep for a short time only: until it is stopped.
                let _ = receiver.recv_timeout(std::time::Duration::from_millis(5));
                peace.send(b"x").unwrap();
                receiver.recv().unwrap();
            }
        });
        let invitation = Invitation::receive(&ours).unwrap();
        test_support::eventually(|| {
            if sys::sleeps_on_a_word(pid) {
                sys::kill(pid, libc::SIGSTOP);
                test_support::eventually(|| test_support::state(pid) == Some('T'));
                // Otherwise the receiver was awake, or about to be.
                if sys::sleeps_on_a_word(pid) {
                    return true;
                }
                sys::kill(pid, libc::SIGCONT);
            }
            false
        });
        let made = calls(
            move || {
                let mut sender = Sender::attach(invitation).unwrap();
                let _ = sender.reserve(8).unwrap();
                sender
            },
            |sender| (0..100).for_each(|_| sender.send(b"x").unwrap()),
        );
        sys::kill(pid, libc::SIGKILL);
        sys::reap(pid);
        assert_eq!(made, 1, "one for the sleep, however many are sent");
    }
}

alone! {
    /// However many messages make room, there is one wake-up.
    fn one_system_call_wakes_a_sender_that_waits_for_room() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut traced = Traced::start(
            || {
                let mut receiver = Options::new().fixed(4096).create().unwrap();
                receiver.invite().unwrap().send(&theirs).unwrap();
                // This takes the first look, and the first block.
                assert_eq!(receiver.recv().unwrap(), b"first");
                std::io::Read::read_exact(&mut &theirs, &mut [0]).unwrap();
                receiver
            },
            |_| {},
            |mut receiver| {
                // Some messages are left: a look that finds nothing may ask which senders
                // are there, too.
                (0..21).for_each(|_| drop(receiver.try_recv_view().unwrap()));
                std::mem::forget(receiver);
            },
        );
        let mut sender = Sender::attach(Invitation::receive(&ours).unwrap()).unwrap();
        sender.send(b"first").unwrap();
        std::thread::scope(|scope| {
            let (told, number) = std::sync::mpsc::channel();
            let sender = &mut sender;
            scope.spawn(move || {
                while sender.try_send(&[0; 100]).is_ok() {}
                told.send(sys::thread_id()).unwrap();
                // The receiver, which ends at once, may be gone when this thread has
                // woken up.
                let sent = sender.send(&[0; 100]);
                assert!(matches!(sent, Ok(()) | Err(Error::ReceiverDead)), "{sent:?}");
            });
            let thread = number.recv().unwrap();
            is_left_alone(thread, |call| call == libc::SYS_futex_waitv);
            std::io::Write::write_all(&mut &ours, b".").unwrap();
            traced.until_ready();
            traced.until_done();
            let mut stops = 0;
            while traced.run_to_call() {
                stops += 1;
            }
            assert!(traced.until_ended());
            // Each call stops at its begin and at its end; the last one, the exit, only at
            // its begin.
            assert_eq!(stops / 2, 1, "{stops}");
        });
    }
}

#[cfg(target_arch = "x86_64")]
mod instructions {
    use super::sys;

    /// Returns whether an instruction reads and writes memory at once, so that no other
    /// processor comes between. On the own stack it is a fence, and is written so because
    /// that is faster than `mfence`.
    pub(super) fn is_read_modify_write(bytes: &[u8; 16]) -> bool {
        let mut rest = &bytes[..];
        let mut is_locked = false;
        // Prefixes: of the size, of a segment, of a lock, and REX.
        while let [
            prefix @ (0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3),
            more @ ..,
        ] = rest
        {
            is_locked |= *prefix == 0xf0;
            rest = more;
        }
        let is_on_stack =
            |modes: u8, base: u8| modes & 0xc0 != 0xc0 && modes & 7 == 4 && base & 7 == 4;
        match rest {
            // or [rsp + …], 0
            [0x80 | 0x83, modes, base, ..] if is_locked && modes & 0x38 == 0x08 => {
                !is_on_stack(*modes, *base)
            }
            // xchg needs no prefix.
            [0x86 | 0x87, modes, ..] => is_locked || modes & 0xc0 != 0xc0,
            _ => is_locked,
        }
    }

    #[test]
    fn they_are_known() {
        let is = |bytes: &[u8]| {
            let mut all = [0x90; 16];
            all[..bytes.len()].copy_from_slice(bytes);
            is_read_modify_write(&all)
        };
        // lock xadd, lock cmpxchg, xchg, and xchg of registers.
        assert!(is(&[0xf0, 0x0f, 0xc1, 0x07]));
        assert!(is(&[0xf0, 0x48, 0x0f, 0xb1, 0x0f]));
        assert!(is(&[0x48, 0x87, 0x07]));
        assert!(!is(&[0x48, 0x87, 0xc3]));
        // lock or [rdi], 0 and the same on the stack, near and far.
        assert!(is(&[0xf0, 0x83, 0x0f, 0x00]));
        assert!(!is(&[0xf0, 0x83, 0x0c, 0x24, 0x00]));
        assert!(!is(&[0xf0, 0x83, 0x4c, 0x24, 0xc0, 0x00]));
        // mov, mfence.
        assert!(!is(&[0x48, 0x89, 0x07]));
        assert!(!is(&[0x0f, 0xae, 0xf0]));
        let word = std::sync::atomic::AtomicU32::new(0);
        let mut traced = sys::steps::fork_ready(
            || (),
            |()| assert_eq!(word.fetch_add(1, std::sync::atomic::Ordering::Relaxed), 0),
        );
        assert!(traced.instructions().iter().any(is_read_modify_write));
    }
}

#[cfg(target_arch = "x86_64")]
fn ends() -> (Receiver, Sender) {
    sys::have_one_processor();
    let mut receiver = Receiver::new().unwrap();
    let mut sender = receiver.sender().unwrap();
    for _ in 0..200 {
        sender.send(&[7; 16]).unwrap();
        assert_eq!(receiver.try_recv_view().unwrap().len(), 16);
    }
    (receiver, sender)
}

/// Number of instructions that each of `count` messages takes, and how many of them read,
/// modify and write.
#[cfg(target_arch = "x86_64")]
fn count(what: &str, before: usize, work: fn(&mut (Receiver, Sender))) {
    let count = 32;
    let of = |times: usize| {
        let mut traced = sys::steps::fork_ready(
            || {
                let mut ends = ends();
                (0..before).for_each(|_| ends.1.send(&[7; 16]).unwrap());
                ends
            },
            |ends| (0..times).for_each(|_| work(ends)),
        );
        let all = traced.instructions();
        let modifying = all
            .iter()
            .filter(|bytes| instructions::is_read_modify_write(bytes));
        (all.len(), modifying.count())
    };
    let (none, some) = (of(0), of(count));
    test_support::figure(&format!(
        "{what}: {} instructions of 16 bytes, {} of them read, modify and write",
        (some.0 - none.0) / count,
        some.1 - none.1
    ));
    assert_eq!(some.1, none.1, "{what}");
}

#[cfg(target_arch = "x86_64")]
alone! {
    fn no_read_modify_write_a_message() {
        count("a send", 0, |(_, sender)| sender.send(&[7; 16]).unwrap());
        count("a reservation", 0, |(_, sender)| {
            let mut room = sender.reserve(16).unwrap();
            room[0] = 7;
            room.commit();
        });
        count("a receive in place", 40, |(receiver, _)| {
            assert_eq!(receiver.try_recv_view().unwrap().len(), 16);
        });
        count("a send and a receive in place", 0, |(receiver, sender)| {
            sender.send(&[7; 16]).unwrap();
            assert_eq!(receiver.try_recv_view().unwrap().len(), 16);
        });
    }
}

alone! {
    fn no_wake_up_while_nothing_is_sent() {
        let mut receiver = Receiver::new().unwrap();
        let mut sender = receiver.sender().unwrap();
        std::thread::scope(|scope| {
            let (told, number) = std::sync::mpsc::channel();
            scope.spawn(move || {
                told.send(sys::thread_id()).unwrap();
                assert_eq!(receiver.recv().unwrap(), b"at last");
            });
            // The receiver is in its long sleep, on the descriptor.
            is_left_alone(number.recv().unwrap(), sys::is_waiting_call);
            sender.send(b"at last").unwrap();
        });
    }
}

alone! {
    /// The sender waits for room, and the receiver makes none.
    fn no_wake_up_while_nothing_is_received() {
        let mut receiver = Options::new().fixed(4096).create().unwrap();
        let mut sender = receiver.sender().unwrap();
        while sender.try_send(&[0; 100]).is_ok() {}
        std::thread::scope(|scope| {
            let (told, number) = std::sync::mpsc::channel();
            scope.spawn(move || {
                told.send(sys::thread_id()).unwrap();
                sender.send(&[0; 100]).unwrap();
            });
            is_left_alone(number.recv().unwrap(), |call| call == libc::SYS_futex_waitv);
            while receiver.recv().is_ok() {}
        });
    }
}
