//! Queues that are found by name.
#![allow(clippy::disallowed_methods)] // What does not happen takes time.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use test_support::alone;

use procwright_queue::{self, Error, Options, Receiver, Sender};
use test_support::sys;

/// A directory for the names of this process's test, and the file of a name there.
struct Names(tempfile::TempDir);

impl Names {
    fn new() -> Names {
        let directory = tempfile::tempdir().unwrap();
        sys::set_variable("PROCWRIGHT_QUEUE_DIR", &directory.path().join("queues"));
        Names(directory)
    }

    fn directory(&self) -> PathBuf {
        self.0.path().join("queues")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// Number of files.
    fn count(&self) -> usize {
        std::fs::read_dir(self.directory()).unwrap().count()
    }
}

/// Forks a receiver, which does some work and then pauses.
fn receiving(name: &str, work: impl FnOnce(&mut Receiver)) -> i32 {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let pid = sys::fork_pausing_after(|| {
        let mut receiver = Receiver::open(name).unwrap();
        theirs.write_all(b".").unwrap();
        work(&mut receiver);
        std::mem::forget(receiver);
    });
    ours.read_exact(&mut [0]).unwrap();
    pid
}

alone! {
    /// The lock of a lane says that its sender is there: the sender has it before the lane
    /// is its own, and until it is not. A receiver that takes over would otherwise give the
    /// lane to another.
    fn no_step_of_coming_and_leaving_looks_like_a_death() {
        let _names = Names::new();
        let _receiver = Receiver::open("work").unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let come_and_leave = |(): &mut ()| {
            Sender::open("work").unwrap().send(b"x").unwrap();
        };
        let mut guest = sys::steps::fork_ready(|| (), come_and_leave);
        while guest.run_to_call() {
            let lanes = procwright_queue::stat("work").unwrap().taken;
            seen.extend(lanes.iter().map(|lane| lane.state.name()));
        }
        assert_eq!(Vec::from_iter(seen), ["left", "taken"]);
    }
}

alone! {
    fn one_thread_may_have_both_ends() {
        let names = Names::new();
        let mut receiver = Receiver::open("work").unwrap();
        let mut sender = Sender::open("work").unwrap();
        let mut other = Sender::open("work").unwrap();
        sender.send(b"a").unwrap();
        other.send(b"b").unwrap();
        let mut got = [receiver.recv().unwrap(), receiver.recv().unwrap()];
        got.sort();
        assert_eq!(got, [b"a", b"b"]);
        // Others may come at any time.
        drop((sender, other));
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
        let waited = receiver.recv_timeout(Duration::from_millis(30));
        assert!(matches!(waited, Err(Error::TimedOut)), "{waited:?}");
        let mut late = Sender::open("work").unwrap();
        late.send(b"c").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"c");
        assert_eq!(names.count(), 1);
        drop(receiver);
        assert_eq!(names.count(), 0);
        assert!(matches!(late.send(b"d"), Err(Error::Closed)));
        assert!(matches!(Sender::open("work"), Err(Error::NoQueue { name, .. }) if name == "work"));
    }
}

alone! {
    fn a_name_is_that_of_one_receiver() {
        let names = Names::new();
        assert!(matches!(Sender::open("a"), Err(Error::NoQueue { .. })));
        let first = Receiver::open("a").unwrap();
        let ours = std::process::id().cast_signed();
        match Receiver::open("a") {
            Err(Error::NameTaken { name, pid }) => assert_eq!((&*name, pid), ("a", Some(ours))),
            other => panic!("{other:?}"),
        }
        let _other = Receiver::open("b").unwrap();
        for name in ["", ".a", "a/b", "..", &"a".repeat(65)] {
            assert!(matches!(Receiver::open(name), Err(Error::BadName(_))), "{name:?}");
            assert!(matches!(Sender::open(name), Err(Error::BadName(_))), "{name:?}");
        }
        drop(first);
        drop(Options::new().lanes(2).open("a").unwrap());
        assert_eq!(names.count(), 1);
    }
}

alone! {
    fn a_stopped_receiver_keeps_no_sender_from_attaching() {
        let _names = Names::new();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let pid = receiving("a", |receiver| {
            while let Ok(bytes) = receiver.recv() {
                theirs.write_all(&bytes).unwrap();
            }
        });
        sys::kill(pid, libc::SIGSTOP);
        test_support::eventually(|| test_support::state(pid) == Some('T'));
        let mut senders: Vec<_> = (0..10).map(|_| Sender::open("a").unwrap()).collect();
        for _ in 0..100 {
            for sender in &mut senders {
                sender.send(b"x").unwrap();
            }
        }
        // A stopped receiver cannot be told from one that receives.
        assert!(matches!(Receiver::open("a"), Err(Error::NameTaken { pid: Some(its), .. }) if its == pid));
        sys::kill(pid, libc::SIGCONT);
        let mut got = [0; 1000];
        ours.read_exact(&mut got).unwrap();
        sys::kill_and_reap(pid);
    }
}

alone! {
    fn the_next_receiver_gets_the_messages_of_a_dead_one() {
        let names = Names::new();
        let pid = receiving("a", |_| {});
        let mut sender = Sender::open("a").unwrap();
        for number in 0..10u8 {
            sender.send(&[number]).unwrap();
        }
        sys::kill_and_reap(pid);
        assert!(matches!(sender.send(b"x"), Err(Error::ReceiverDead)));
        assert!(matches!(Sender::open("a"), Err(Error::ReceiverDead)));
        // The next receiver is another process: all that is known of a name is in its file.
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let next = receiving("a", |receiver| {
            for _ in 0..5 {
                theirs.write_all(&receiver.recv().unwrap()).unwrap();
            }
        });
        let mut got = [0; 5];
        ours.read_exact(&mut got).unwrap();
        assert_eq!(got, [0, 1, 2, 3, 4]);
        sender.send(&[10]).unwrap();
        let mut other = Sender::open("a").unwrap();
        other.send(&[11]).unwrap();
        sys::kill_and_reap(next);
        drop(sender);
        let mut receiver = Receiver::open("a").unwrap();
        let mut got: Vec<u8> = (0..7).map(|_| receiver.recv().unwrap()[0]).collect();
        got.sort_unstable();
        assert_eq!(got, [5, 6, 7, 8, 9, 10, 11]);
        other.send(b"y").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"y");
        drop(receiver);
        assert_eq!(names.count(), 0);
    }
}

alone! {
    fn a_queue_without_processes_is_gone() {
        let names = Names::new();
        for _ in 0..3 {
            let pid = receiving("a", |_| Sender::open("a").unwrap().send(b"lost").unwrap());
            sys::kill_and_reap(pid);
            assert!(matches!(Sender::open("a"), Err(Error::NoQueue { .. })));
            assert_eq!(names.count(), 1);
        }
        let mut receiver = Receiver::open("a").unwrap();
        assert!(matches!(receiver.try_recv(), Err(Error::Empty)));
    }
}

alone! {
    /// The receiver was killed after it closed and before it removed the file.
    fn a_closed_queue_gives_its_name_to_the_next() {
        let names = Names::new();
        let receiver = Receiver::open("a").unwrap();
        let _sender = Sender::open("a").unwrap();
        let file = std::fs::read(names.file("a")).unwrap();
        drop(receiver);
        std::fs::write(names.file("a"), file).unwrap();
        let mut receiver = Receiver::open("a").unwrap();
        let mut sender = Sender::open("a").unwrap();
        sender.send(b"new").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"new");
    }
}

alone! {
    fn a_file_that_means_nothing_is_replaced() {
        let names = Names::new();
        drop(Receiver::open("a").unwrap());
        let other = std::fs::File::create(names.0.path().join("other")).unwrap();
        let line = |pid: u32, fd: i32| format!("{pid:010} {:020} {fd:010}\n", 1);
        let head = format!("procwright-queue {:010} {:016x}\n", 1, 7);
        let held = std::os::fd::AsRawFd::as_raw_fd(&other);
        let another = Receiver::new().unwrap();
        let ours = std::process::id();
        let texts: Vec<Vec<u8>> = vec![
            Vec::new(),
            b"garbage".to_vec(),
            vec![0xff; 3000],
            vec![b'\n'; 100],
            head.clone().into_bytes(),
            head[..20].into(),
            // No process has that number, or the descriptor is something else: a file, a
            // pipe, another queue, or one of another user.
            (head.clone() + &line(u32::MAX, 3)).into_bytes(),
            (head.clone() + &line(ours, 9999)).into_bytes(),
            (head.clone() + &line(ours, held)).into_bytes(),
            (head.clone() + &(0..64).map(|fd| line(ours, fd)).collect::<String>()).into_bytes(),
            (head.clone() + &line(1, 0)).into_bytes(),
            (head.clone() + &line(ours, held)[..30]).into_bytes(),
        ];
        for text in texts {
            std::fs::write(names.file("a"), &text).unwrap();
            assert!(matches!(Sender::open("a"), Err(Error::NoQueue { .. })), "{text:?}");
            let mut receiver = Receiver::open("a").unwrap();
            let mut sender = Sender::open("a").unwrap();
            sender.send(b"x").unwrap();
            assert_eq!(receiver.recv().unwrap(), b"x");
        }
        drop(another);
        let newer = head.replacen("0000000001", "0000000002", 1);
        std::fs::write(names.file("a"), newer).unwrap();
        assert!(matches!(Sender::open("a"), Err(Error::WrongVersion(2))));
        assert!(matches!(Receiver::open("a"), Err(Error::WrongVersion(2))));
    }
}

alone! {
    fn other_files_and_directories_are_refused() {
        let names = Names::new();
        drop(Receiver::open("a").unwrap());
        let kind = |error: Error| match error {
            Error::Io(error) => error.kind(),
            other => panic!("{other}"),
        };
        let both = |name: &str| {
            let receiver = kind(Receiver::open(name).unwrap_err());
            assert_eq!(kind(Sender::open(name).unwrap_err()), receiver);
            receiver
        };
        std::os::unix::fs::symlink("/dev/null", names.file("link")).unwrap();
        std::fs::create_dir(names.file("directory")).unwrap();
        for name in ["link", "directory"] {
            assert_eq!(both(name), std::io::ErrorKind::InvalidInput, "{name}");
        }
        let open = |mode| std::fs::set_permissions(names.directory(), PermissionsExt::from_mode(mode));
        for mode in [0o710, 0o701, 0o777, 0o720] {
            open(mode).unwrap();
            assert_eq!(both("a"), std::io::ErrorKind::PermissionDenied);
        }
        open(0o700).unwrap();
        let moved = names.0.path().join("moved");
        std::fs::rename(names.directory(), &moved).unwrap();
        std::os::unix::fs::symlink(&moved, names.directory()).unwrap();
        assert_eq!(both("a"), std::io::ErrorKind::NotADirectory);
        std::fs::remove_file(names.directory()).unwrap();
        if test_support::root_or_skip("that of another user") {
            std::fs::create_dir(names.directory()).unwrap();
            open(0o700).unwrap();
            std::os::unix::fs::chown(names.directory(), Some(12345), None).unwrap();
            assert_eq!(both("a"), std::io::ErrorKind::PermissionDenied);
        }
    }
}

alone! {
    fn of_several_one_gets_the_name() {
        let names = Names::new();
        for round in 0..test_support::scaled(10, 300) {
            // The name is free; or its file leads nowhere; or its queue is to be taken
            // over.
            let before = (round % 3 != 0).then(|| receiving("a", |_| {}));
            let sender = (round % 3 == 2).then(|| Sender::open("a").unwrap());
            before.into_iter().for_each(sys::kill_and_reap);
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let contenders: Vec<i32> = (0..4)
                .map(|_| {
                    sys::fork_pausing_after(|| {
                        let opened = Receiver::open("a");
                        let said: &[u8] = match &opened {
                            Ok(_) => b"y",
                            Err(Error::NameTaken { .. }) => b"n",
                            Err(error) => panic!("{error}"),
                        };
                        (&theirs).write_all(said).unwrap();
                        std::mem::forget(opened);
                    })
                })
                .collect();
            let mut said = [0; 4];
            ours.read_exact(&mut said).unwrap();
            said.sort_unstable();
            assert_eq!(&said, b"nnny", "{round}");
            drop(sender);
            contenders.into_iter().for_each(sys::kill_and_reap);
            assert_eq!(names.count(), 1);
        }
    }
}

alone! {
    /// A process that makes or takes over a queue is killed before and after each call that
    /// it makes: the next one is not held up.
    fn opening_a_name_may_be_killed_anywhere() {
        let names = Names::new();
        drop(Receiver::open("warm").unwrap());
        for is_new in [true, false] {
            let mut steps = 0;
            loop {
                let before = (!is_new).then(|| receiving("a", |_| {}));
                let sender = before.map(|_| Sender::open("a").unwrap());
                before.into_iter().for_each(sys::kill_and_reap);
                let mut traced = sys::steps::fork_traced(
                    || (),
                    |()| std::mem::forget(Receiver::open("a").unwrap()),
                );
                let done = (0..steps).take_while(|_| traced.run_to_call()).count();
                drop(traced);
                let mut receiver = Receiver::open("a").unwrap();
                // The sender that was there before, if any.
                let mut sender = sender.unwrap_or_else(|| Sender::open("a").unwrap());
                sender.send(b"x").unwrap();
                assert_eq!(receiver.recv().unwrap(), b"x");
                drop(receiver);
                assert_eq!(names.count(), 0, "after {done}");
                if done < steps {
                    test_support::figure(&format!("{done} calls"));
                    break;
                }
                steps += test_support::scaled(13, 1) as usize;
            }
        }
    }
}

alone! {
    /// Senders that come and go leave no more lines than a few for each that is there.
    fn the_file_does_not_grow_for_ever() {
        let names = Names::new();
        let mut receiver = Receiver::open("a").unwrap();
        for _ in 0..test_support::scaled(150, 10_000) {
            let code = sys::fork_running(|| {
                Sender::open("a").unwrap().send(b"x").unwrap();
                0
            });
            assert_eq!(code, 0);
            assert_eq!(receiver.recv().unwrap(), b"x");
        }
        // In one process the numbers of descriptors come again.
        for _ in 0..100 {
            Sender::open("a").unwrap().send(b"x").unwrap();
            assert_eq!(receiver.recv().unwrap(), b"x");
        }
        let length = std::fs::metadata(names.file("a")).unwrap().len();
        assert!(length < 36 + 64 * 44, "{length}");
        // A sender that is there is found all the same.
        let mut sender = Sender::open("a").unwrap();
        sender.send(b"y").unwrap();
        assert_eq!(receiver.recv().unwrap(), b"y");
    }
}

alone! {
    /// A fork drops its copy alone.
    fn a_fork_does_not_take_the_name_away() {
        let names = Names::new();
        let mut receiver = Some(Receiver::open("a").unwrap());
        let mut sender = Some(Sender::open("a").unwrap());
        let code = sys::fork_running(|| {
            assert!(matches!(sender.as_mut().unwrap().send(b"x"), Err(Error::Forked)));
            drop((receiver.take(), sender.take()));
            0
        });
        assert_eq!((code, names.count()), (0, 1));
        sender.as_mut().unwrap().send(b"x").unwrap();
        assert_eq!(receiver.as_mut().unwrap().recv().unwrap(), b"x");
    }
}

alone! {
    fn nothing_is_left_behind() {
        let names = Names::new();
        let round = || {
            let mut receiver = Receiver::open("a").unwrap();
            let mut senders: Vec<_> = (0..3).map(|_| Sender::open("a").unwrap()).collect();
            senders.iter_mut().for_each(|sender| sender.send(b"x").unwrap());
            (0..3).for_each(|_| drop(receiver.recv().unwrap()));
            assert!(Receiver::open("a").is_err() && Sender::open("b").is_err());
            drop(senders.pop());
            drop(receiver);
        };
        round();
        let before = test_support::Census::now();
        (0..20).for_each(|_| round());
        before.unchanged();
        assert_eq!(names.count(), 0);
    }
}

alone! {
    /// The process finds no queue by name there, and no process's number means anything;
    /// its link is as good as any.
    fn a_sender_invited_into_other_namespaces_sends() {
        let _names = Names::new();
        let mut receiver = Receiver::open("work").unwrap();
        let invitation = receiver.invite().unwrap();
        let status = sys::in_fork(|| {
            if !sys::unshare_pids_and_networks() {
                return 7;
            }
            // The first process in there.
            let inside = sys::in_fork(|| {
                let mut sender = Sender::attach(invitation).unwrap();
                for _ in 0..3 {
                    sender.send(b"x").unwrap();
                    // Until then all that is remembered of the receiver is outdated.
                    std::thread::sleep(Duration::from_millis(30));
                }
                0
            });
            i32::from(inside != 0)
        });
        // Some systems have no namespaces for this user.
        if libc::WEXITSTATUS(status) != 7 {
            assert_eq!(status, 0);
            for _ in 0..3 {
                assert_eq!(receiver.recv().unwrap(), b"x");
            }
        }
    }
}

alone! {
    /// The name of a socket is free once its owner is gone: a sender whose receiver has
    /// died is told that, whichever process listens there now.
    fn a_listener_under_a_dead_receivers_name_deceives_no_sender() {
        // Only root can be another user.
        if sys::effective_uid() != 0 {
            return;
        }
        let _names = Names::new();
        let pid = receiving("work", |_| ());
        let mut sender = Sender::open("work").unwrap();
        sender.send(b"x").unwrap();
        let names = std::fs::read_to_string("/proc/net/unix").unwrap();
        let mut places: Vec<_> = names
            .lines()
            .filter_map(|line| Some(line.split_once('@')?.1.trim().to_owned()))
            .filter(|name| name.starts_with("procwright-"))
            .collect();
        places.sort_unstable();
        places.dedup();
        sys::kill_and_reap(pid);
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let thief = sys::fork_pausing_after(|| {
            sys::become_user(65_534);
            use std::os::linux::net::SocketAddrExt;
            use std::os::unix::net::{SocketAddr, UnixListener};
            // The names of other queues' sockets are taken.
            let bound: Vec<_> = places
                .iter()
                .filter_map(|name| UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).ok())
                .collect();
            assert!(!bound.is_empty());
            std::mem::forget(bound);
            theirs.write_all(b".").unwrap();
        });
        ours.read_exact(&mut [0]).unwrap();
        let sent = sender.send(b"y");
        assert!(matches!(sent, Err(Error::ReceiverDead)), "{sent:?}");
        let opened = Sender::open("work").map(|_| ());
        assert!(matches!(opened, Err(Error::ReceiverDead)), "{opened:?}");
        sys::kill_and_reap(thief);
        drop(sender);
    }
}
