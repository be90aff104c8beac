//! Queues whose ends are stopped and killed.
#![allow(clippy::disallowed_methods)] // A receiver that does not read takes time.

mod common;

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::sys;
use procwright::queue::{Error, Invitation, Options, Receiver, Sender};

fn end(pid: i32) {
    sys::kill(pid, libc::SIGKILL);
    sys::reap(pid);
}

/// A receiver in a fork, and a sender to it.
fn receiving(options: Options, work: impl FnOnce(Receiver)) -> (i32, Sender) {
    receiving_as(|| {}, options, work)
}

/// The same, after something else.
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

/// Until the thread with this number, in whatever process, sleeps on two words.
fn until_asleep(thread: i32) {
    common::eventually(|| {
        let call = std::fs::read_to_string(format!("/proc/{thread}/syscall"));
        call.is_ok_and(|call| call.starts_with(&format!("{} ", libc::SYS_futex_waitv)))
    });
}

alone! {
    fn a_sender_that_sends_learns_of_the_receivers_death() {
        let (pid, mut sender) = receiving(Options::new(), std::mem::forget);
        sender.send(b"x").unwrap();
        end(pid);
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
        // More than one: the kernel wakes one of them.
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

/// From the kill of the receiver to the error in a sender.
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
            false => common::eventually(|| sent.load(Ordering::Relaxed) > 1000),
        }
        let killed = Instant::now();
        sys::kill(pid, libc::SIGKILL);
        sends.join().unwrap() - killed
    });
    sys::reap(pid);
    time
}

alone! {
    /// How soon is a figure; that it is told each time is the test.
    fn every_death_is_told() {
        let rounds = common::scaled(20, 1000) as usize;
        for (waits, how) in [(true, "waits for room"), (false, "sends")] {
            let mut times: Vec<_> = (0..rounds).map(|_| notice(waits)).collect();
            times.sort_unstable();
            common::figure(&format!(
                "{rounds} kills, a sender that {how}: told after {:?} (median), {:?} (p99), {:?} (longest)",
                times[rounds / 2],
                times[rounds * 99 / 100],
                times[rounds - 1],
            ));
        }
    }
}

/// A sender in a process of its own that waits for room, and ends well when it is
/// told of the receiver's death.
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
    /// The kernel wakes one of those who wait, and that one is killed before it can
    /// wake the others.
    fn who_was_told_of_the_death_and_is_killed_leaves_it_to_the_next() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let receiver = sys::fork_pausing_after(|| {
            let mut receiver = Options::new().fixed(4096).create().unwrap();
            for _ in 0..4 {
                receiver.invite().unwrap().send(&theirs).unwrap();
            }
            std::mem::forget(receiver);
        });
        let invitation = || Invitation::receive(&ours).unwrap();
        // They are woken in the order in which they came.
        let first = waiting(invitation(), sys::kill_on_shared_wake);
        let others = [(); 3].map(|()| waiting(invitation(), || {}));
        end(receiver);
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
        end(pid);
        assert!(matches!(sender.send(b"x"), Err(Error::Closed)));
    }
}

alone! {
    /// Where one can sleep on one word only.
    fn without_futex_waitv_it_is_looked_for() {
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
    /// Where the kernel marks no words: the receiver's tells of its release alone.
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
        // It sends, waits for room, and is told of the death while it waits.
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
        end(pid);
        assert!(matches!(sender.send(b"x"), Err(Error::Closed)));
    }
}

alone! {
    fn a_stopped_sender_blocks_nobody() {
        let mut receiver = Receiver::new().unwrap();
        let mut other = receiver.sender().unwrap();
        let invitation = receiver.invite().unwrap();
        let pid = sys::fork_pausing_after(move || {
            let mut sender = Sender::attach(invitation).unwrap();
            while sender.send(b"flood").is_ok() {}
        });
        for number in 0..common::scaled(200, 20_000) {
            sys::kill(pid, libc::SIGSTOP);
            common::eventually(|| common::state(pid) == Some('T'));
            other.send(&number.to_le_bytes()).unwrap();
            while receiver.recv().unwrap() != number.to_le_bytes() {}
            sys::kill(pid, libc::SIGCONT);
        }
        end(pid);
    }
}

/// The messages of a sender under the eyes of a tracer.
fn numbered(number: u64) -> Vec<u8> {
    // The first two are there before; then the block is nearly full, and the third
    // has to go to the next. A long one would be a step for each of its bytes.
    let length = [1900, 1900, 300, 3, 0, 200, 100][number as usize];
    let mut bytes = vec![number as u8; length + 1];
    bytes[length] = 0xff;
    bytes
}

const BEFORE: u64 = 2;
const SENT: u64 = 7;

/// Growth, many at once, and one in place.
fn send_all(sender: &mut Sender, messages: &[Vec<u8>], returned: &AtomicU64) {
    sender.send(&messages[2]).unwrap();
    returned.store(3, Ordering::SeqCst);
    let three = [&messages[3][..], &messages[4], &messages[5]];
    sender.send_many(three).unwrap();
    returned.store(6, Ordering::SeqCst);
    let bytes = &messages[6];
    let mut room = sender.reserve(bytes.len()).unwrap();
    room.copy_from_slice(bytes);
    room.commit();
    returned.store(7, Ordering::SeqCst);
}

/// Steps a sender through all that it does, and kills it after `steps`
/// instructions. Returns how many it did, which is fewer if it got to its end.
fn kill_after(receiver: &mut Receiver, other: &mut Sender, steps: u64, watched: bool) -> u64 {
    let returned = sys::steps::shared_number();
    returned.store(BEFORE, Ordering::SeqCst);
    let invitation = receiver.invite().unwrap();
    let mut traced = sys::steps::fork_traced(
        || {
            let messages: Vec<_> = (0..SENT).map(numbered).collect();
            let mut sender = Sender::attach(invitation).unwrap();
            for message in &messages[..BEFORE as usize] {
                sender.send(message).unwrap();
            }
            (sender, messages)
        },
        |(mut sender, messages)| {
            send_all(&mut sender, &messages, returned);
            drop(sender);
        },
    );
    assert!(!traced.has_ended, "it found no lane");
    let mut got = Vec::new();
    if watched {
        // Asleep, as event loops have it.
        let _ = receiver.readiness_fd().unwrap();
        loop {
            match receiver.try_recv() {
                Ok(bytes) => got.push(bytes),
                Err(Error::Empty) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    let done = (0..steps).take_while(|_| traced.step()).count() as u64;
    // It is stopped: another goes on, and is heard, although the receiver sleeps.
    other.send(b"other").unwrap();
    loop {
        let bytes = match watched {
            true => {
                let ready = receiver
                    .readiness_fd()
                    .unwrap()
                    .try_clone_to_owned()
                    .unwrap();
                loop {
                    match receiver.try_recv() {
                        Ok(bytes) => break bytes,
                        Err(Error::Empty) => while !sys::readable(ready.as_fd()) {},
                        Err(error) => panic!("{error}"),
                    }
                }
            }
            false => receiver.recv().unwrap(),
        };
        if bytes == b"other" {
            break;
        }
        got.push(bytes);
    }
    drop(traced);
    // What it had sent comes, and nobody rings for it.
    let returned = returned.load(Ordering::SeqCst);
    loop {
        match receiver.recv_timeout(Duration::ZERO) {
            Ok(bytes) => got.push(bytes),
            Err(Error::TimedOut) if (got.len() as u64) < returned => {}
            Err(Error::TimedOut) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let count = got.len() as u64;
    assert!(
        (returned..=(returned + 3).min(SENT)).contains(&count),
        "{steps}: {count} {returned}"
    );
    for (number, bytes) in got.iter().enumerate() {
        assert_eq!(*bytes, numbered(number as u64), "{steps}");
    }
    done
}

/// Until the lane of one who was killed is free: the receiver attends to who has
/// gone when it sleeps.
fn make_room(receiver: &mut Receiver) {
    let mut wait = |millis| {
        let waited = receiver.recv_timeout(Duration::from_millis(millis));
        assert!(matches!(waited, Err(Error::TimedOut)), "{waited:?}");
        receiver.sender().is_ok()
    };
    while !wait(11) {}
    let waited = receiver.recv_timeout(Duration::ZERO);
    assert!(matches!(waited, Err(Error::TimedOut)), "{waited:?}");
}

/// A sender that is killed between any two instructions.
fn killed_everywhere(watched: bool) {
    // Two lanes: if that of a dead one were not taken back, there would be none
    // left for the next.
    let options = Options::new().lanes(2).first(4096).limit(1 << 16);
    let mut receiver = options.create().unwrap();
    let mut other = receiver.sender().unwrap();
    let whole = kill_after(&mut receiver, &mut other, u64::MAX, watched);
    make_room(&mut receiver);
    // In a release build the full form leaves none out.
    let stride = whole.div_ceil(common::scaled(20, 4096));
    let mut steps = 0;
    // Until one gets to its end.
    while kill_after(&mut receiver, &mut other, steps, watched) == steps {
        steps += stride;
        make_room(&mut receiver);
    }
    common::figure(&format!("{whole} instructions, every {stride}"));
}

alone! {
    fn a_sender_may_be_killed_anywhere() {
        killed_everywhere(false);
    }
}

alone! {
    fn a_sender_may_be_killed_anywhere_while_the_receiver_sleeps() {
        killed_everywhere(true);
    }
}

alone! {
    /// The only one who would ever ring is killed, at any moment: a receiver that
    /// sleeps gets what was sent, and learns that nobody is left.
    fn a_receiver_that_sleeps_is_not_forgotten() {
        for _ in 0..common::scaled(100, 10_000) {
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
