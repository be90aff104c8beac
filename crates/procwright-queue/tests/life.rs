//! What a queue's senders learn of its receiver, whatever becomes of the thread that made
//! it.
#![allow(clippy::disallowed_methods)] // What does not happen takes time.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_queue::{Error, Invitation, Options, Receiver, Sender};
use test_support::{Census, sys};

const SECTION: u64 = 64 * 1024;

/// The receiver's page, as other processes can read it.
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
        self.number(SECTION) / 2
    }

    /// The word in a section, if it is held.
    fn held(&self, section: u64) -> Option<u32> {
        let word = self.number((2 + section) * SECTION + u64::from(self.number(SECTION + 12)));
        (word != 0 && word & libc::FUTEX_OWNER_DIED == 0).then_some(word)
    }

    /// The section that the page names.
    fn section(&self) -> u64 {
        self.number(SECTION + 8).into()
    }
}

/// A receiver in a fork that was made on a thread of its own, and obeys orders.
struct There {
    pid: i32,
    orders: UnixStream,
}

/// Forks a receiver. The thread that made it gives it away and pauses; or it has ended when
/// this returns.
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

    /// Waits until the order is carried out.
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

/// Receives what is there at each order.
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

/// Waits until a thread of this process sleeps in one of these calls.
fn until_in(thread: i32, calls: &[i64]) {
    test_support::eventually(|| {
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
        // This process receives again, on another thread, with another word.
        let sent = waiting(&mut sender, ON_ANY, || {
            assert_eq!(page.epoch(), 1);
            there.order(b'r');
        });
        assert!(sent.is_ok(), "{sent:?}");
        there.done();
        assert_eq!((page.epoch(), page.section()), (2, 1));
        assert!(page.held(1).is_some());
        assert_eq!(page.held(0), None);
        sender.send(b"and goes on").unwrap();
        // The new word wakes a sender that waits.
        let sent = waiting(&mut sender, ON_TWO, || {
            sys::kill(there.pid, libc::SIGKILL);
        });
        assert!(matches!(sent, Err(Error::ReceiverDead)), "{sent:?}");
    }
}

alone! {
    /// The word has told of the thread already, and tells of nothing more.
    fn a_receiver_that_dies_after_its_thread_is_dead() {
        for waits in [false, true] {
            let (mut there, invitation) = receiving(obedient);
            // The sender is attached before, or after.
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
            // The answer stays.
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
            assert!((0..16).all(|section| page.held(section).is_none()));
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
            assert_eq!(page.section(), u64::from(epoch - 1) % 16);
            // The holder of the word has ended, and no word is held.
            assert!((0..16).all(|section| page.held(section).is_none()));
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
        // The mapping of a thread that ended just now may still be there.
        assert!(now.0 <= ours + 1 && now.1 < all + 8, "{now:?} {ours} {all}");
        drop((sender, receiver, page));
        // Receivers are dropped elsewhere, and the thread that made them goes on.
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
    /// Not every message makes a system call.
    fn answers_of_the_system_are_kept_for_a_while() {
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
        test_support::figure(&format!("{without} system calls with {MANY} messages without a word, {usual} with one"));
        // The system is asked some times soon, and then once in 64 messages or 10 ms, for
        // link and process.
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
                    // The word of that thread is never marked.
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
            assert!(test_support::lives(pid));
            sys::kill(pid, libc::SIGKILL);
            sys::reap(pid);
        }
    }
}

alone! {
    /// The fork is made through the C library, which tells this library of it, or by a
    /// system call.
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

/// Everything that a queue does, on either side.
fn everything() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let mut sender = Sender::attach(Invitation::receive(&theirs).unwrap()).unwrap();
        let mut other = sender.try_clone().unwrap();
        // The sender waits for room in vain.
        for _ in 0..1000 {
            sender.send(&[0; 100]).unwrap();
            other.send(&[0; 100]).unwrap();
        }
        until_full(&mut sender);
        let waited = sender.send_timeout(&[0; 100], Duration::from_millis(5));
        assert!(matches!(waited, Ok(()) | Err(Error::TimedOut)));
        (&theirs).write_all(b".").unwrap();
        while sender.send(&[0; 100]).is_ok() {}
        assert_eq!(test_support::threads().len(), 1);
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
    /// A process that starts a thread is killed.
    fn no_thread_is_ever_started() {
        let as_usual = || {};
        let unmarked = || sys::deny(&[libc::SYS_set_robust_list], libc::EPERM);
        let unasked = || sys::deny(&[libc::SYS_get_robust_list], libc::EPERM);
        for before in [&as_usual as &dyn Fn(), &unmarked, &unasked] {
            let code = sys::fork_running(|| {
                before();
                sys::kill_on_threads();
                everything();
                assert_eq!(test_support::threads().len(), 1);
                0
            });
            assert_eq!(code, 0);
        }
        // The filter does what it says.
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
        let put = |at: u64, value: u32| page.0.write_all_at(&value.to_le_bytes(), SECTION + at).unwrap();
        let (section, place, value, open) = (8, 12, 16, 32);
        let word = (2 + page.section()) * SECTION + u64::from(page.number(SECTION + place));
        let held = page.number(word);
        for (at, nonsense) in [(section, 99), (section, 1), (place, 65_534), (place, 65_536), (value, 7), (open, 7)] {
            let before = page.number(SECTION + at);
            put(at, nonsense);
            let refused = receiver.sender().unwrap_err();
            assert!(matches!(refused, Error::Invalid(_)), "{at}: {refused}");
            // A sender that has found the word goes by that, as long as it is held.
            old.send(b"x").unwrap();
            page.0.write_all_at(&[0; 4], word).unwrap();
            let refused = old.send(b"x").unwrap_err();
            assert!(matches!(refused, Error::Invalid(_)), "{at}: {refused}");
            page.0.write_all_at(&held.to_le_bytes(), word).unwrap();
            put(at, before);
            old.send(b"x").unwrap();
        }
        // Half a page: the receiver may have been killed while it wrote. The link tells.
        put(0, 3);
        receiver.sender().unwrap().send(b"x").unwrap();
        page.0.write_all_at(&[0; 4], word).unwrap();
        old.send(b"x").unwrap();
        // Another word, where there was never memory.
        for (at, number) in [(section, 6), (place, 0), (0, 14)] {
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
    /// Neither the page nor the word is believed for ever, but only the system.
    fn a_page_that_lies_does_not_keep_a_receiver_alive() {
        let (there, invitation) = receiving(obedient);
        let page = Page::of(&invitation);
        let word = 2 * SECTION + u64::from(page.number(SECTION + 12));
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
        // The sender waits for room, too.
        let error = match sender.send(&[0; 1000]) {
            Ok(()) => waiting(&mut sender, ON_TWO, || {}).unwrap_err(),
            Err(error) => error,
        };
        assert!(matches!(error, Error::ReceiverDead), "{error}");
    }
}
