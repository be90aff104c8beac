//! Queues whose ends are stopped and killed.
#![allow(clippy::disallowed_methods)] // A receiver that does not read takes time.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::sys;

/// Forks a receiver, and makes a sender to it.
fn receiving(options: Options, work: impl FnOnce(Receiver)) -> (i32, Sender) {
    receiving_as(|| {}, options, work)
}

/// Forks a receiver after something else was done.
fn receiving_as(
    before: impl FnOnce(),
    options: Options,
    work: impl FnOnce(Receiver),
) -> (i32, Sender) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        before();
        let mut receiver = options.create().unwrap();
        receiver.invite().unwrap().send(&theirs).unwrap();
        work(receiver);
    });
    (
        pid,
        Sender::attach(Invitation::receive(&ours).unwrap()).unwrap(),
    )
}

/// Waits until the thread with this number, in whatever process, sleeps on two words.
fn until_asleep(thread: i32) {
    test_support::eventually(|| {
        let call = std::fs::read_to_string(format!("/proc/{thread}/syscall"));
        call.is_ok_and(|call| call.starts_with(&format!("{} ", libc::SYS_futex_waitv)))
    });
}

alone! {
    fn a_sender_that_sends_learns_of_the_receivers_death() {
        let (pid, mut sender) = receiving(Options::new(), std::mem::forget);
        sender.send(b"x").unwrap();
        sys::kill_and_reap(pid);
        assert!(matches!(sender.send(b"x"), Err(Error::ReceiverDead)));
        assert!(matches!(sender.try_send(b"x"), Err(Error::ReceiverDead)));
        assert!(matches!(sender.reserve(1).map(drop), Err(Error::ReceiverDead)));
        assert!(matches!(sender.try_clone(), Err(Error::ReceiverDead)));
        let error = std::io::Error::from(sender.send(b"x").unwrap_err());
        assert_eq!(error.raw_os_error(), Some(libc::EOWNERDEAD));
    }
}

alone! {
    fn a_sender_that_waits_learns_of_the_receivers_death() {
        let (pid, mut sender) = receiving(Options::new().fixed(4096), std::mem::forget);
        while sender.try_send(&[0; 100]).is_ok() {}
        // More than one sender waits: the kernel wakes one of them.
        let mut senders = [sender.try_clone().unwrap(), sender.try_clone().unwrap(), sender];
        std::thread::scope(|scope| {
            let (told, numbers) = std::sync::mpsc::channel();
            for mut sender in senders.iter_mut().map(Some) {
                let told = told.clone();
                scope.spawn(move || {
                    let sender = sender.take().unwrap();
                    while sender.try_send(&[0; 100]).is_ok() {}
                    told.send(sys::thread_id()).unwrap();
                    assert!(matches!(sender.send(&[0; 100]), Err(Error::ReceiverDead)));
                });
            }
            for thread in numbers.iter().take(3) {
                until_asleep(thread);
            }
            sys::kill(pid, libc::SIGKILL);
        });
        sys::reap(pid);
    }
}

/// Time from the kill of the receiver to the error in a sender.
fn notice(waits: bool) -> Duration {
    let (pid, mut sender) = receiving(Options::new().fixed(4096), |mut receiver| {
        while !waits && receiver.recv().is_ok() {}
        std::mem::forget(receiver);
    });
    while waits && sender.try_send(&[0; 100]).is_ok() {}
    let sent = AtomicU64::new(0);
    let time = std::thread::scope(|scope| {
        let (told, number) = std::sync::mpsc::channel();
        let sends = scope.spawn(|| {
            let told = told;
            told.send(sys::thread_id()).unwrap();
            let error = loop {
                match sender.send(&[0; 100]) {
                    Ok(()) => sent.fetch_add(1, Ordering::Relaxed),
                    Err(error) => break error,
                };
            };
            assert!(matches!(error, Error::ReceiverDead), "{error}");
            Instant::now()
        });
        let thread = number.recv().unwrap();
        match waits {
            true => until_asleep(thread),
            false => test_support::eventually(|| sent.load(Ordering::Relaxed) > 1000),
        }
        let killed = Instant::now();
        sys::kill(pid, libc::SIGKILL);
        sends.join().unwrap() - killed
    });
    sys::reap(pid);
    time
}

alone! {
    /// The time is a figure; that each death is told is the test.
    fn every_death_is_told() {
        let rounds = test_support::scaled(20, 1000) as usize;
        for (waits, how) in [(true, "waits for room"), (false, "sends")] {
            let mut times: Vec<_> = (0..rounds).map(|_| notice(waits)).collect();
            times.sort_unstable();
            test_support::figure(&format!(
                "{rounds} kills, a sender that {how}: told after {:?} (median), {:?} (p99), {:?} (longest)",
                times[rounds / 2],
                times[rounds * 99 / 100],
                times[rounds - 1],
            ));
        }
    }
}

/// Forks a sender that waits for room, and ends well when it is told of the receiver's
/// death.
fn waiting(invitation: Invitation, before: impl FnOnce()) -> i32 {
    let pid = sys::fork_pausing_after(|| {
        let mut sender = Sender::attach(invitation).unwrap();
        while sender.try_send(&[0; 100]).is_ok() {}
        before();
        assert!(matches!(sender.send(&[0; 100]), Err(Error::ReceiverDead)));
        sys::exit_now();
    });
    until_asleep(pid);
    pid
}

alone! {
    /// The kernel wakes one of the waiting senders, and that one is killed before it can
    /// wake the others.
    fn a_sender_woken_by_the_death_and_killed_leaves_it_to_the_next() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let receiver = sys::fork_pausing_after(|| {
            let mut receiver = Options::new().fixed(4096).create().unwrap();
            for _ in 0..4 {
                receiver.invite().unwrap().send(&theirs).unwrap();
            }
            std::mem::forget(receiver);
        });
        let invitation = || Invitation::receive(&ours).unwrap();
        // Senders are woken in the order in which they came.
        let first = waiting(invitation(), sys::kill_on_shared_wake);
        let others = [(); 3].map(|()| waiting(invitation(), || {}));
        sys::kill_and_reap(receiver);
        let status = sys::reap(first);
        assert!(libc::WIFSIGNALED(status), "it was to be killed: {status:#x}");
        for other in others {
            assert_eq!(sys::reap(other), 0);
        }
    }
}

alone! {
    fn a_sender_learns_that_the_receiver_has_closed() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let (pid, mut sender) = receiving(Options::new().fixed(4096), |receiver| {
            std::io::Read::read(&mut &theirs, &mut [0]).unwrap();
            drop(receiver);
        });
        while sender.try_send(&[0; 100]).is_ok() {}
        std::thread::scope(|scope| {
            let (told, number) = std::sync::mpsc::channel();
            let sender = &mut sender;
            scope.spawn(move || {
                told.send(sys::thread_id()).unwrap();
                assert!(matches!(sender.send(&[0; 100]), Err(Error::Closed)));
            });
            until_asleep(number.recv().unwrap());
            std::io::Write::write_all(&mut ours, b".").unwrap();
        });
        assert!(matches!(sender.send(b"x"), Err(Error::Closed)));
        sys::kill_and_reap(pid);
        assert!(matches!(sender.send(b"x"), Err(Error::Closed)));
    }
}

alone! {
    /// A system without `futex_waitv` lets a thread sleep on one word only.
    fn without_futex_waitv_the_receiver_is_looked_for() {
        sys::deny(&[libc::SYS_futex_waitv], libc::ENOSYS);
        let (pid, mut sender) = receiving(Options::new().fixed(4096), |mut receiver| {
            std::thread::sleep(Duration::from_millis(50));
            receiver.recv().unwrap();
            receiver.recv().unwrap();
            std::mem::forget(receiver);
        });
        while sender.try_send(&[0; 1000]).is_ok() {}
        sender.send(&[0; 1000]).unwrap();
        std::thread::scope(|scope| {
            let sender = &mut sender;
            scope.spawn(move || {
                while sender.send(&[0; 1000]).is_ok() {}
                assert!(matches!(sender.send(b"x"), Err(Error::ReceiverDead)));
            });
            std::thread::sleep(Duration::from_millis(50));
            sys::kill(pid, libc::SIGKILL);
        });
        sys::reap(pid);
    }
}

alone! {
    /// A kernel that marks no words tells of the release of the receiver's word alone.
    fn where_words_are_not_marked_the_receivers_process_is_watched() {
        let unmarked = |work: fn(Receiver)| {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let options = Options::new().fixed(4096);
            let (pid, sender) = receiving_as(
                || sys::deny(&[libc::SYS_set_robust_list], libc::EPERM),
                options,
                |receiver| {
                    std::io::Read::read(&mut &theirs, &mut [0]).unwrap();
                    work(receiver);
                },
            );
            let go = move || std::io::Write::write_all(&mut ours, b".").unwrap();
            (pid, sender, go)
        };
        // The sender sends, waits for room, and is told of the death while it waits.
        let (pid, mut sender, mut go) = unmarked(|mut receiver| {
            (0..100).for_each(|_| drop(receiver.recv().unwrap()));
            std::mem::forget(receiver);
        });
        while sender.try_send(&[0; 100]).is_ok() {}
        go();
        let sent = (0..60).filter(|_| sender.send(&[0; 100]).is_ok()).count();
        assert_eq!(sent, 60);
        while sender.try_send(&[0; 100]).is_ok() {}
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let sent = loop {
                    if let Err(error) = sender.send(&[0; 100]) {
                        break error;
                    }
                };
                assert!(matches!(sent, Error::ReceiverDead), "{sent}");
            });
            std::thread::sleep(Duration::from_millis(50));
            sys::kill(pid, libc::SIGKILL);
        });
        sys::reap(pid);
        let (pid, mut sender, mut go) = unmarked(drop);
        sender.send(b"x").unwrap();
        go();
        while sender.send(b"x").is_ok() && sender.try_send(b"x").is_ok() {}
        assert!(matches!(sender.send(b"x"), Err(Error::Closed)));
        sys::kill_and_reap(pid);
        assert!(matches!(sender.send(b"x"), Err(Error::Closed)));
    }
}

alone! {
    fn a_stopped_sender_blocks_no_other() {
        let mut receiver = Receiver::new().unwrap();
        let mut other = receiver.sender().unwrap();
        let invitation = receiver.invite().unwrap();
        let pid = sys::fork_pausing_after(move || {
            let mut sender = Sender::attach(invitation).unwrap();
            while sender.send(b"flood").is_ok() {}
        });
        for number in 0..test_support::scaled(200, 20_000) {
            sys::kill(pid, libc::SIGSTOP);
            test_support::eventually(|| test_support::state(pid) == Some('T'));
            other.send(&number.to_le_bytes()).unwrap();
            while receiver.recv().unwrap() != number.to_le_bytes() {}
            sys::kill(pid, libc::SIGCONT);
        }
        sys::kill_and_reap(pid);
    }
}

alone! {
    /// The only sender that would ever wake the receiver is killed, at any moment: a
    /// receiver that sleeps gets what was sent, and learns that no sender is left.
    fn a_receiver_that_sleeps_is_not_forgotten() {
        for _ in 0..test_support::scaled(100, 10_000) {
            let mut receiver = Receiver::new().unwrap();
            let invitation = receiver.invite().unwrap();
            let pid = sys::fork_pausing_after(move || {
                let mut sender = Sender::attach(invitation).unwrap();
                for number in 0..u64::MAX {
                    sender.send(&number.to_le_bytes()).unwrap();
                    std::thread::yield_now();
                }
            });
            for number in 0..20u64 {
                assert_eq!(receiver.recv().unwrap(), number.to_le_bytes());
            }
            sys::kill(pid, libc::SIGKILL);
            let mut number = 20u64;
            let error = loop {
                match receiver.recv() {
                    Ok(bytes) => assert_eq!(bytes, number.to_le_bytes()),
                    Err(error) => break error,
                }
                number += 1;
            };
            assert!(matches!(error, Error::Closed));
            sys::reap(pid);
        }
    }
}
