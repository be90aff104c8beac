//! Waits where a pidfd cannot be had: each step of the ladder of fallbacks, forced.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_process::Process;
use procwright_process::wait::WaitSet;
use procwright_process::wait::{Event, Mechanism, Outcome, Want, stats};
use procwright_process::{Exit, Signal, Unknown};
use test_support::family::Family;
use test_support::{Census, sys};

/// A child of this process that ends when its stdin does.
fn cat() -> Child {
    Command::new(test_children::path())
        .arg("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("a child")
}

fn sleeper() -> Child {
    Command::new(test_children::path())
        .arg("sleep-forever")
        .stdin(Stdio::null())
        .spawn()
        .expect("a child")
}

/// Takes descriptors until only the last few are left.
fn hog_descriptors() -> Vec<File> {
    let limit = 40;
    let mut hogs = Vec::new();
    loop {
        let hog = File::open("/dev/null").expect("a descriptor");
        let number = hog.as_raw_fd();
        hogs.push(hog);
        if number + 5 >= limit {
            return hogs;
        }
    }
}

fn kill_child(child: &mut Child) {
    child.kill().expect("our own child");
}

/// Waits for any and for all, a timeout, a removal, and the status of a child that this
/// process still has to reap.
fn check_children(expected: Mechanism) {
    let before = Census::now();
    check_any_and_all(expected);
    assert!(stats().served_by(expected) >= 4, "{:?}", stats());
    before.comes_back();
}

fn check_any_and_all(expected: Mechanism) {
    let mut children: Vec<Child> = (0..5).map(|_| sleeper()).collect();
    let mut set = WaitSet::new().unwrap();
    let mut keys = Vec::new();
    for child in &children {
        let process = Process::of_child(child).unwrap();
        assert!(process.is_alive());
        assert_eq!(process.exit(), None);
        keys.push(set.add(process, Event::Exited).unwrap());
    }
    assert_eq!(set.mechanism(keys[0]), Some(expected));
    let begun = Instant::now();
    let waited = set.wait(Want::Any, Duration::from_millis(30)).unwrap();
    assert_eq!((waited.ended.len(), waited.outcome), (0, Outcome::TimedOut));
    assert!(begun.elapsed() >= Duration::from_millis(30));

    kill_child(&mut children[3]);
    let waited = set.wait(Want::Any, None).unwrap();
    assert_eq!(waited.ended.len(), 1);
    assert_eq!(waited.ended[0].0, keys[3]);
    assert_eq!(
        waited.ended[0].1.exit(),
        Some(Exit::Signal {
            signal: Signal::KILL,
            core: false
        })
    );
    assert!(set.remove(keys[4]).is_some());
    for child in &mut children {
        kill_child(child);
    }
    let waited = set.wait(Want::All, None).unwrap();
    assert_eq!(
        (waited.ended.len(), waited.outcome),
        (3, Outcome::Satisfied)
    );
    assert!(set.is_empty());
    for child in &mut children {
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}

alone! {
    fn pidfds_as_a_rule() {
        check_children(Mechanism::Pidfd);
        assert_eq!(stats().looks, 0);
    }
}

alone! {
    fn children_where_pidfd_open_is_not_known() {
        sys::deny(&[libc::SYS_pidfd_open], libc::ENOSYS);
        check_children(Mechanism::ChildThread);
        assert_eq!(stats().looks, 0);
    }
}

alone! {
    fn children_where_pidfd_open_is_not_permitted() {
        sys::deny(&[libc::SYS_pidfd_open], libc::EPERM);
        check_children(Mechanism::ChildThread);
        assert_eq!(stats().looks, 0);
    }
}

alone! {
    fn children_where_pidfd_open_kills() {
        sys::kill_on(&[libc::SYS_pidfd_open]);
        check_children(Mechanism::ChildThread);
        assert_eq!(stats().looks, 0);
    }
}

alone! {
    fn a_signal_where_sending_by_pidfd_kills() {
        sys::kill_on(&[libc::SYS_pidfd_send_signal]);
        let mut child = sleeper();
        let process = Process::of_child(&child).unwrap();
        process.signal(Signal::TERM).unwrap();
        let exit = process.wait(None).unwrap().unwrap();
        assert_eq!(exit.signal(), Some(Signal::TERM));
        child.wait().unwrap();
    }
}

const KILLED: Option<Exit> = Some(Exit::Signal {
    signal: Signal::KILL,
    core: false,
});

/// A grandchild, reaped by its parent on command.
fn check_strangers(expected: Mechanism) {
    let mut family = Family::obeying();
    let process = family.stranger();
    let mut set = WaitSet::new().unwrap();
    let key = set.add(process.clone(), Event::Exited).unwrap();
    assert_eq!(set.mechanism(key), Some(expected));
    sys::kill(family.child, libc::SIGKILL);
    let waited = set.wait(Want::All, None).unwrap();
    assert_eq!(waited.ended.len(), 1);
    assert!(!process.is_alive());
    // A zombie whose parent is another process shows its status to its own user.
    assert_eq!(process.exit(), KILLED);
    set.add(process.clone(), Event::Reaped).unwrap();
    let waited = set.wait(Want::All, Duration::from_millis(30)).unwrap();
    assert_eq!(waited.outcome, Outcome::TimedOut);
    assert_eq!(Some(family.reap()), KILLED);
    let waited = set.wait(Want::All, None).unwrap();
    assert_eq!(waited.ended.len(), 1);
    assert!(Process::open(family.child).is_err());
    assert!(process.signal(Signal::KILL).is_err());
}

alone! {
    fn strangers_by_pidfd() {
        check_strangers(Mechanism::Pidfd);
        assert_eq!(stats().looks, 0);
    }
}

alone! {
    fn strangers_where_there_are_no_pidfds() {
        sys::deny(&[libc::SYS_pidfd_open], libc::ENOSYS);
        check_strangers(Mechanism::Polling);
        assert!(stats().looks > 0);
    }
}

alone! {
    fn a_kernel_without_pidfs() {
        // A pidfd of such a kernel tells neither of a reap nor of an inode.
        sys::deny(&[libc::SYS_fstatfs], libc::ENOSYS);
        check_strangers(Mechanism::Pidfd);
        assert!(stats().looks > 0, "the reap is seen by looking");
        let mut family = Family::obeying();
        let process = family.stranger();
        assert_eq!(process.id().inode(), None);
        let id = procwright_process::Id::new(family.child, Some(1)).unwrap();
        assert!(Process::open_id(id).is_err());
        sys::kill(family.child, libc::SIGKILL);
        family.reap();
        assert!(process.wait_for(Event::Reaped, None).unwrap().is_some());
        assert!(process.signal(Signal::KILL).is_err());
    }
}

alone! {
    fn a_kernel_without_exit_info() {
        sys::deny_ioctl(sys::PIDFD_GET_INFO, libc::ENOTTY);
        let mut family = Family::obeying();
        let process = family.stranger();
        family.order("exit 0");
        family.reap();
        // No caller looked while the status could be seen.
        let exit = process.wait_for(Event::Reaped, None).unwrap();
        assert_eq!(exit, Some(Exit::Unknown(Unknown::NotTold)));
    }
}

alone! {
    fn no_proc() {
        if !test_support::root_or_skip("no_proc") {
            return;
        }
        // Every path is gone, /proc included.
        let empty = tempfile::tempdir().unwrap();
        let mut child = sleeper();
        let mut piped = cat();
        sys::chroot(empty.path());
        let process = Process::of_child(&child).unwrap();
        let other = Process::of_child(&piped).unwrap();
        assert!(process.is_alive());
        assert!(process.name().is_err() && process.start_time().is_err());
        let mut set = WaitSet::new().unwrap();
        set.add(process.clone(), Event::Exited).unwrap();
        set.add(other, Event::Exited).unwrap();
        drop(piped.stdin.take());
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].1.exit(), Some(Exit::Code(0)));
        process.signal(Signal::TERM).unwrap();
        let waited = set.wait(Want::All, None).unwrap();
        assert_eq!(waited.ended[0].1.exit().and_then(Exit::signal), Some(Signal::TERM));
        child.wait().unwrap();
        piped.wait().unwrap();
        assert_eq!(stats().looks, 0);
    }
}

alone! {
    fn neither_proc_nor_pidfds() {
        if !test_support::root_or_skip("neither_proc_nor_pidfds") {
            return;
        }
        let empty = tempfile::tempdir().unwrap();
        let mut child = sleeper();
        let family = Family::obeying();
        sys::chroot(empty.path());
        sys::deny(&[libc::SYS_pidfd_open], libc::ENOSYS);
        // The number of a process that is not a child could go to another process
        // unnoticed.
        let error = Process::open(family.child).unwrap_err();
        assert!(error.to_string().contains("pidfd_open"), "{error}");
        // The number of a child cannot.
        let process = Process::of_child(&child).unwrap();
        assert!(process.is_alive());
        assert_eq!(process.wait(Duration::from_millis(20)).unwrap(), None);
        process.signal(Signal::TERM).unwrap();
        let exit = process.wait(None).unwrap().unwrap();
        assert_eq!(exit.signal(), Some(Signal::TERM));
        child.wait().unwrap();
        assert!(!process.is_alive());
        assert_eq!(stats().looks, 0);
    }
}

alone! {
    fn more_children_than_descriptors() {
        sys::limit_files(256);
        let before = Census::now();
        wait_for_more_than_fit(test_support::scaled(600, 2000) as usize);
        // The threads end when there is nothing left to watch.
        before.comes_back();
    }
}

fn wait_for_more_than_fit(n: usize) {
    let threads = test_support::threads().len();
    let mut children: Vec<Child> = (0..n).map(|_| sleeper()).collect();
    let mut set = WaitSet::new().unwrap();
    let mut keys = Vec::new();
    for child in &children {
        keys.push(
            set.add(Process::of_child(child).unwrap(), Event::Exited)
                .unwrap(),
        );
    }
    let mechanisms: Vec<_> = keys.iter().filter_map(|key| set.mechanism(*key)).collect();
    let count = |one| mechanisms.iter().filter(|all| **all == one).count();
    assert_eq!(mechanisms.len(), n);
    assert_eq!(count(Mechanism::Pidfd) + count(Mechanism::OwnTable), n);
    assert!(count(Mechanism::OwnTable) >= n - 256);
    // Some threads have started, and some descriptors are left free.
    let threads = test_support::threads().len() - threads;
    assert!(threads <= n / 200 + 2, "{threads} threads");
    assert!(std::fs::File::open("/dev/null").is_ok());
    let waited = set.wait(Want::Any, Duration::from_millis(50)).unwrap();
    assert_eq!(waited.outcome, Outcome::TimedOut);
    // The last children are certainly watched from another table.
    kill_child(&mut children[n - 1]);
    let waited = set.wait(Want::Any, None).unwrap();
    assert_eq!(waited.ended.len(), 1);
    assert_eq!(waited.ended[0].0, keys[n - 1]);
    assert!(set.remove(keys[n - 2]).is_some());
    for child in &mut children {
        kill_child(child);
    }
    let waited = set.wait(Want::All, None).unwrap();
    assert_eq!(
        (waited.ended.len(), waited.outcome),
        (n - 2, Outcome::Satisfied)
    );
    for (_, process) in &waited.ended {
        assert_eq!(process.exit().and_then(Exit::signal), Some(Signal::KILL));
    }
    for child in &mut children {
        child.wait().unwrap();
    }
    let stats = stats();
    assert_eq!(stats.looks, 0, "{stats:?}");
    assert!(
        stats.served_by(Mechanism::OwnTable) >= (n - 256) as u64,
        "{stats:?}"
    );
}

alone! {
    fn strangers_and_reaps_without_a_descriptor() {
        sys::limit_files(40);
        let mut families = [Family::obeying(), Family::obeying()];
        let hogs = hog_descriptors();
        let processes: Vec<_> = families.iter().map(Family::stranger).collect();
        assert!(processes.iter().all(|one| one.pidfd().is_none()));
        let mut set = WaitSet::new().unwrap();
        let first = set.add(&processes[0], Event::Exited).unwrap();
        let second = set.add(&processes[1], Event::Reaped).unwrap();
        assert_eq!(set.mechanism(first), Some(Mechanism::OwnTable));
        assert_eq!(set.mechanism(second), Some(Mechanism::OwnTable));
        sys::kill(families[1].child, libc::SIGKILL);
        assert_eq!(set.wait(Want::Any, Duration::from_millis(30)).unwrap().outcome, Outcome::TimedOut);
        families[1].reap();
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, second);
        sys::kill(families[0].child, libc::SIGKILL);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, first);
        assert_eq!(stats().looks, 0);
        drop(hogs);
        assert!(set.as_fd().try_clone_to_owned().is_ok());
    }
}

alone! {
    fn not_a_single_descriptor_left() {
        sys::limit_files(40);
        let mut child = sleeper();
        let mut family = Family::obeying();
        let own = Process::of_child(&child).unwrap();
        let stranger = family.stranger();
        let mut hogs = hog_descriptors();
        let late = Process::of_child(&child).unwrap();
        assert!(late.pidfd().is_none());
        while let Ok(hog) = File::open("/dev/null") {
            hogs.push(hog);
        }
        assert!(WaitSet::<Process>::new().is_err());
        let begun = Instant::now();
        assert_eq!(late.wait(Duration::from_millis(30)).unwrap(), None);
        assert!(begun.elapsed() >= Duration::from_millis(30));
        assert_eq!(own.wait(Duration::ZERO).unwrap(), None);
        let waiter = std::thread::spawn({
            let late = late.clone();
            move || late.wait(None).unwrap()
        });
        child.kill().unwrap();
        assert_eq!(own.wait(None).unwrap(), KILLED);
        assert_eq!(waiter.join().unwrap(), KILLED);
        sys::kill(family.child, libc::SIGKILL);
        assert_eq!(stranger.wait(None).unwrap().and_then(Exit::code), None);
        assert_eq!(Some(family.reap()), KILLED);
        assert!(stranger.wait_for(Event::Reaped, None).unwrap().is_some());
        child.wait().unwrap();
        assert_eq!(stats().looks, 0);
    }
}

alone! {
    fn no_table_of_their_own() {
        // An old kernel or a sandbox, and no descriptor left.
        sys::deny(&[libc::SYS_close_range], libc::ENOSYS);
        sys::limit_files(40);
        let mut child = sleeper();
        let family = Family::obeying();
        let hogs = hog_descriptors();
        let own = Process::of_child(&child).unwrap();
        let stranger = family.stranger();
        let mut set = WaitSet::new().unwrap();
        let first = set.add(own, Event::Exited).unwrap();
        let second = set.add(stranger, Event::Exited).unwrap();
        assert_eq!(set.mechanism(first), Some(Mechanism::ChildThread));
        assert_eq!(set.mechanism(second), Some(Mechanism::Polling));
        sys::kill(family.child, libc::SIGKILL);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, second);
        kill_child(&mut child);
        assert_eq!(set.wait(Want::Any, None).unwrap().ended[0].0, first);
        child.wait().unwrap();
        drop(hogs);
    }
}
