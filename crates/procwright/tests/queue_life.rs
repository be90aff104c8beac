//! What a queue's senders learn of its receiver, whatever becomes of the thread that
//! made it.
#![allow(clippy::disallowed_methods)] // What does not happen takes time.

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use common::{Census, sys};
use procwright::queue::{Error, Invitation, Options, Receiver, Sender};

const PLOT: u64 = 64 * 1024;

/// What others can read of a receiver.
struct Page(File);

impl Page {
    fn of(invitation: &Invitation) -> Page {
        Page(invitation.files()[0].try_clone_to_owned().unwrap().into())
    }

    fn number(&self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.0.read_exact_at(&mut bytes, at).unwrap();
        u32::from_le_bytes(bytes)
    }

    fn epoch(&self) -> u32 {
        self.number(PLOT) / 2
    }

    /// The word in a plot, if it is held.
    fn held(&self, plot: u64) -> Option<u32> {
        let word = self.number((2 + plot) * PLOT + u64::from(self.number(PLOT + 12)));
        (word != 0 && word & libc::FUTEX_OWNER_DIED == 0).then_some(word)
    }

    /// The plot that the page names.
    fn plot(&self) -> u64 {
        self.number(PLOT + 8).into()
    }
}

/// A receiver in a fork that was made on a thread of its own, and does what it is
/// told.
struct There {
    pid: i32,
    orders: UnixStream,
}

/// The thread lets go of it and pauses; or it has ended when this returns.
fn receiving(work: impl Fn(Receiver, &mut (dyn FnMut() -> u8 + Send))) -> (There, Invitation) {
    let (orders, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let order = || {
            let mut order = [0];
            (&theirs).read_exact(&mut order).unwrap();
            order[0]
        };
        let (give, take) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            give.send(Options::new().fixed(4096).create().unwrap())
                .unwrap();
            let _ = ends.recv();
        });
        let mut receiver = take.recv().unwrap();
        receiver.invite().unwrap().send(&theirs).unwrap();
        if order() == b'e' {
            drop(end);
            thread.join().unwrap();
            (&theirs).write_all(b".").unwrap();
        }
        work(receiver, &mut || {
            (&theirs).write_all(b".").unwrap();
            order()
        });
    });
    let invitation = Invitation::receive(&orders).unwrap();
    (There { pid, orders }, invitation)
}

impl There {
    fn order(&mut self, what: u8) {
        self.orders.write_all(&[what]).unwrap();
    }

    /// Until it has done what it was told.
    fn done(&mut self) {
        self.orders.read_exact(&mut [0]).unwrap();
    }
}

impl Drop for There {
    fn drop(&mut self) {
        sys::kill(self.pid, libc::SIGKILL);
        sys::reap(self.pid);
    }
}

/// Receives what there is whenever it is told.
fn obedient(mut receiver: Receiver, order: &mut (dyn FnMut() -> u8 + Send)) {
    while order() == b'r' {
        while receiver.try_recv().is_ok() {}
    }
}

fn until_full(sender: &mut Sender) -> u32 {
    let mut sent = 0;
    loop {
        match sender.try_send(&[0; 100]) {
            Ok(()) => sent += 1,
            Err(Error::Full) => return sent,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Until a thread of this process sleeps in one of these calls.
fn until_in(thread: i32, calls: &[i64]) {
    common::eventually(|| {
        let call = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
        let call = call.unwrap_or_default();
        calls
            .iter()
            .any(|number| call.starts_with(&format!("{number} ")))
    });
}

/// Sends while the receiver has no room, `meanwhile`.
fn waiting(sender: &mut Sender, calls: &[i64], meanwhile: impl FnOnce()) -> Result<(), Error> {
    until_full(sender);
    std::thread::scope(|scope| {
        let (told, number) = std::sync::mpsc::channel();
        let waits = scope.spawn(move || {
            told.send(sys::thread_id()).unwrap();
            sender.send(&[0; 100])
        });
        until_in(number.recv().unwrap(), calls);
        meanwhile();
        waits.join().unwrap()
    })
}

const ON_TWO: &[i64] = &[libc::SYS_futex_waitv];
const ON_ANY: &[i64] = &[libc::SYS_futex_waitv, libc::SYS_futex];

alone! {
    fn a_receiver_that_has_lost_its_thread_is_not_dead() {
        let (mut there, invitation) = receiving(obedient);
        let page = Page::of(&invitation);
        let mut sender = Sender::attach(invitation).unwrap();
        sender.send(b"while it is there").unwrap();
        assert!(page.held(0).is_some());
        there.order(b'e');
        there.done();
        there.done();
        assert_eq!(page.held(0), None);
        assert!(until_full(&mut sender) > 10);
        assert!(sender.try_clone().is_ok());
        // It is the same who receives, on another thread, with another word.
        let sent = waiting(&mut sender, ON_ANY, || {
            assert_eq!(page.epoch(), 1);
            there.order(b'r');
        });
        assert!(sent.is_ok(), "{sent:?}");
        there.done();
        assert_eq!((page.epoch(), page.plot()), (2, 1));
        assert!(page.held(1).is_some());
        assert_eq!(page.held(0), None);
        sender.send(b"and goes on").unwrap();
        // And who waits is woken by the new one.
        let sent = waiting(&mut sender, ON_TWO, || {
            sys::kill(there.pid, libc::SIGKILL);
        });
        assert!(matches!(sent, Err(Error::ReceiverDead)), "{sent:?}");
    }
}

alone! {
    /// Its word has told of the thread already, and tells of nothing more.
    fn a_receiver_that_dies_after_its_thread_is_dead() {
        for waits in [false, true] {
            let (mut there, invitation) = receiving(obedient);
            // Attached before, or after.
            let mut invitation = Some(invitation);
            let mut sender = (!waits).then(|| Sender::attach(invitation.take().unwrap()).unwrap());
            there.order(b'e');
            there.done();
            there.done();
            let mut sender = sender
                .take()
                .unwrap_or_else(|| Sender::attach(invitation.take().unwrap()).unwrap());
            until_full(&mut sender);
            let error = match waits {
                true => waiting(&mut sender, ON_ANY, || {
                    sys::kill(there.pid, libc::SIGKILL);
                })
                .unwrap_err(),
                false => {
                    sys::kill(there.pid, libc::SIGKILL);
                    loop {
                        match sender.try_send(b"x") {
                            Ok(()) | Err(Error::Full) => {}
                            Err(error) => break error,
                        }
                    }
                }
            };
            assert!(matches!(error, Error::ReceiverDead), "{error}");
            // Once and for all.
            for _ in 0..3 {
                assert!(matches!(sender.send(b"x"), Err(Error::ReceiverDead)));
            }
        }
    }
}

alone! {
    fn a_receiver_goes_to_another_thread_and_is_dropped_there() {
        for has_ended in [false, true] {
            let (mut there, invitation) = receiving(|mut receiver, order| {
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while order() == b'r' {
                            while receiver.try_recv().is_ok() {}
                        }
                        drop(receiver);
                    });
                });
            });
            let page = Page::of(&invitation);
            let mut sender = Sender::attach(invitation).unwrap();
            there.order(if has_ended { b'e' } else { b'-' });
            if has_ended {
                there.done();
            }
            there.done();
            sender.send(b"x").unwrap();
            there.order(b'r');
            there.done();
            // The thread that holds the word need not be the one that receives.
            assert_eq!(page.epoch(), if has_ended { 2 } else { 1 });
            let sent = waiting(&mut sender, ON_TWO, || there.order(b'd'));
            assert!(matches!(sent, Err(Error::Closed)), "{sent:?}");
            assert!(matches!(sender.send(b"x"), Err(Error::Closed)));
            assert!((0..16).all(|plot| page.held(plot).is_none()));
        }
    }
}

fn mappings() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ours = maps
        .lines()
        .filter(|line| line.contains("procwright-queue"));
    (ours.count(), maps.lines().count())
}

alone! {
    fn words_are_used_one_after_the_other_and_leave_nothing() {
        let made = || std::thread::spawn(|| Receiver::new().unwrap()).join().unwrap();
        let mut receiver = made();
        let invitation = receiver.invite().unwrap();
        let page = Page::of(&invitation);
        let mut sender = Sender::attach(invitation).unwrap();
        let mut before = None;
        for epoch in 1..=40 {
            assert_eq!(page.epoch(), epoch);
            assert_eq!(page.plot(), u64::from(epoch - 1) % 16);
            // Its holder has ended, and nobody has another.
            assert!((0..16).all(|plot| page.held(plot).is_none()));
            sender.send(&epoch.to_le_bytes()).unwrap();
            receiver = std::thread::spawn(move || {
                assert_eq!(receiver.recv().unwrap(), epoch.to_le_bytes());
                assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
                receiver
            })
            .join()
            .unwrap();
            if epoch == 20 {
                before = Some((Census::now(), mappings()));
            }
        }
        let (census, (ours, all)) = before.unwrap();
        census.unchanged();
        let now = mappings();
        // That of a thread that ended just now may be there yet.
        assert!(now.0 <= ours + 1 && now.1 < all + 8, "{now:?} {ours} {all}");
        drop((sender, receiver, page));
        // Those that were dropped elsewhere, of a thread that goes on.
        let mut after_some = 0;
        for round in 0..50 {
            let receiver = Receiver::new().unwrap();
            std::thread::spawn(|| drop(receiver)).join().unwrap();
            if round == 10 {
                after_some = mappings().1;
            }
        }
        drop(Receiver::new().unwrap());
        let now = mappings();
        assert!(now.0 <= 1 && now.1 < after_some + 8, "{now:?} {after_some}");
    }
}

alone! {
    /// Not a system call for each message.
    fn what_the_system_has_said_is_remembered_for_a_while() {
        const MANY: u64 = 100_000;
        let calls = |has_thread: bool| {
            let mut traced = sys::steps::fork_traced(
                || {
                    let make = || Options::new().create().unwrap();
                    let mut receiver = match has_thread {
                        true => make(),
                        false => std::thread::spawn(make).join().unwrap(),
                    };
                    let sender = receiver.sender().unwrap();
                    (receiver, sender)
                },
                |(receiver, mut sender)| {
                    (0..MANY).for_each(|_| sender.send(b"x").unwrap());
                    std::mem::forget((receiver, sender));
                },
            );
            let mut stops = 0u64;
            let begun = Instant::now();
            while traced.run_to_call() {
                stops += 1;
            }
            (stops / 2, begun.elapsed())
        };
        let (usual, _) = calls(true);
        let (without, time) = calls(false);
        common::figure(&format!("{without} system calls with {MANY} messages without a word, {usual} with one"));
        // Some soon, and then once in 64 messages or 10 ms, for link and process.
        let asked = 16 + MANY / 64 + time.as_millis() as u64 / 10;
        assert!(without <= usual + 2 * asked, "{without} {usual} {time:?}");
    }
}

alone! {
    fn an_exec_is_an_end() {
        for (on_main, waits) in [(true, false), (true, true), (false, false), (false, true)] {
            let (mut orders, theirs) = UnixStream::pair().unwrap();
            let pid = sys::fork_pausing_after(|| {
                let work = || {
                    let mut receiver = Options::new().fixed(4096).create().unwrap();
                    receiver.invite().unwrap().send(&theirs).unwrap();
                    (&theirs).read_exact(&mut [0]).unwrap();
                    sys::exec_pausing();
                };
                match on_main {
                    true => work(),
                    // Its word is never marked.
                    false => std::thread::scope(|scope| drop(scope.spawn(work).join())),
                }
            });
            let mut sender = Sender::attach(Invitation::receive(&orders).unwrap()).unwrap();
            let error = match waits {
                true => waiting(&mut sender, ON_TWO, || orders.write_all(b".").unwrap()).unwrap_err(),
                false => {
                    orders.write_all(b".").unwrap();
                    loop {
                        match sender.try_send(b"x") {
                            Ok(()) | Err(Error::Full) => {}
                            Err(error) => break error,
                        }
                    }
                }
            };
            assert!(matches!(error, Error::ReceiverDead), "{on_main} {waits}: {error}");
            assert!(common::lives(pid));
            sys::kill(pid, libc::SIGKILL);
            sys::reap(pid);
        }
    }
}

alone! {
    /// Whether the C library was asked, and told this library of it, or the system.
    fn a_fork_of_the_receivers_process_does_not_keep_it_alive() {
        for fork in [sys::fork_pausing, sys::fork_quietly_pausing] {
            let (orders, theirs) = UnixStream::pair().unwrap();
            let receiver = sys::fork_pausing_after(|| {
                let mut receiver = Options::new().fixed(4096).create().unwrap();
                receiver.invite().unwrap().send(&theirs).unwrap();
                let fork = fork();
                (&theirs).write_all(&fork.to_le_bytes()).unwrap();
                std::mem::forget(receiver);
            });
            let mut sender = Sender::attach(Invitation::receive(&orders).unwrap()).unwrap();
            let mut number = [0; 4];
            (&orders).read_exact(&mut number).unwrap();
            let fork = i32::from_le_bytes(number);
            let pidfd = sys::pidfd(fork);
            let error = waiting(&mut sender, ON_TWO, || {
                sys::kill(receiver, libc::SIGKILL);
                sys::reap(receiver);
            });
            assert!(matches!(error, Err(Error::ReceiverDead)), "{error:?}");
            assert!(matches!(sender.try_send(b"x"), Err(Error::ReceiverDead)));
            drop(pidfd);
            sys::kill(fork, libc::SIGKILL);
        }
    }
}

/// All that a queue does, on either side.
fn everything() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let mut sender = Sender::attach(Invitation::receive(&theirs).unwrap()).unwrap();
        let mut other = sender.try_clone().unwrap();
        // Waits for room, and in vain.
        for _ in 0..1000 {
            sender.send(&[0; 100]).unwrap();
            other.send(&[0; 100]).unwrap();
        }
        until_full(&mut sender);
        let waited = sender.send_timeout(&[0; 100], Duration::from_millis(5));
        assert!(matches!(waited, Ok(()) | Err(Error::TimedOut)));
        (&theirs).write_all(b".").unwrap();
        while sender.send(&[0; 100]).is_ok() {}
        assert_eq!(common::threads().len(), 1);
        (&theirs).write_all(b".").unwrap();
    });
    drop(theirs);
    let mut receiver = Options::new().fixed(4096).create().unwrap();
    receiver.invite().unwrap().send(&ours).unwrap();
    (0..2000).for_each(|_| drop(receiver.recv().unwrap()));
    (&ours).read_exact(&mut [0]).unwrap();
    receiver.readiness_fd().unwrap();
    while receiver.try_recv().is_ok() {}
    let waited = receiver.recv_timeout(Duration::from_millis(30));
    assert!(matches!(waited, Ok(_) | Err(Error::TimedOut)));
    drop(receiver);
    (&ours).read_exact(&mut [0]).unwrap();
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
}

alone! {
    /// Not even for a moment: who starts one is killed.
    fn no_thread_is_ever_started() {
        let as_usual = || {};
        let unmarked = || sys::deny(&[libc::SYS_set_robust_list], libc::EPERM);
        let unasked = || sys::deny(&[libc::SYS_get_robust_list], libc::EPERM);
        for before in [&as_usual as &dyn Fn(), &unmarked, &unasked] {
            let code = sys::fork_running(|| {
                before();
                sys::kill_on_threads();
                everything();
                assert_eq!(common::threads().len(), 1);
                0
            });
            assert_eq!(code, 0);
        }
        // And such a filter does what it says.
        let status = sys::in_fork(|| {
            sys::kill_on_threads();
            std::thread::spawn(|| {}).join().unwrap();
            0
        });
        assert!(libc::WIFSIGNALED(status), "{status:#x}");
    }
}

alone! {
    fn a_page_that_makes_no_sense_is_refused() {
        let mut receiver = Receiver::new().unwrap();
        let page = Page::of(&receiver.invite().unwrap());
        let mut old = receiver.sender().unwrap();
        let put = |at: u64, value: u32| page.0.write_all_at(&value.to_le_bytes(), PLOT + at).unwrap();
        let (plot, place, value, open) = (8, 12, 16, 32);
        let word = (2 + page.plot()) * PLOT + u64::from(page.number(PLOT + place));
        let held = page.number(word);
        for (at, nonsense) in [(plot, 99), (plot, 1), (place, 65_534), (place, 65_536), (value, 7), (open, 7)] {
            let before = page.number(PLOT + at);
            put(at, nonsense);
            let refused = receiver.sender().unwrap_err();
            assert!(matches!(refused, Error::Invalid(_)), "{at}: {refused}");
            // Who has found the word goes by that, as long as it says something.
            old.send(b"x").unwrap();
            page.0.write_all_at(&[0; 4], word).unwrap();
            let refused = old.send(b"x").unwrap_err();
            assert!(matches!(refused, Error::Invalid(_)), "{at}: {refused}");
            page.0.write_all_at(&held.to_le_bytes(), word).unwrap();
            put(at, before);
            old.send(b"x").unwrap();
        }
        // Half a page: who was about to write it may have been killed. The link tells.
        put(0, 3);
        receiver.sender().unwrap().send(b"x").unwrap();
        page.0.write_all_at(&[0; 4], word).unwrap();
        old.send(b"x").unwrap();
        // Another word, where nobody has ever put memory.
        for (at, number) in [(plot, 6), (place, 0), (0, 14)] {
            put(at, number);
        }
        receiver.sender().unwrap().send(b"x").unwrap();
        old.send(b"x").unwrap();
        while receiver.try_recv().is_ok() {}
        drop(receiver);
        assert!(matches!(old.send(b"x"), Err(Error::Closed)));
    }
}

alone! {
    /// Whatever the page says, and the word: for ever is only what the system says.
    fn a_page_that_lies_does_not_keep_a_receiver_alive() {
        let (there, invitation) = receiving(obedient);
        let page = Page::of(&invitation);
        let word = 2 * PLOT + u64::from(page.number(PLOT + 12));
        let mut sender = Sender::attach(invitation).unwrap();
        let held = page.number(word);
        drop(there);
        page.0.write_all_at(&held.to_le_bytes(), word).unwrap();
        let error = loop {
            match sender.try_send(b"x") {
                Ok(()) | Err(Error::Full) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::ReceiverDead), "{error}");
        // And while it waits for room.
        let error = match sender.send(&[0; 1000]) {
            Ok(()) => waiting(&mut sender, ON_TWO, || {}).unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error, Error::ReceiverDead), "{error}");
    }
}
