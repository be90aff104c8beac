//! The logic on a kqueue, with a kernel that can be made to do what real ones do
//! rarely.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::kqueue::{Change, KernelEvent, Kqueue, KqueueCalls, LONGEST};
use super::{BATCH, Interest};
use crate::poll;
use crate::time::Deadline;

/// Processes, pipes, and a queue as FreeBSD's `kern_event.c` describes one:
/// one knote for each descriptor and each number.
#[derive(Debug, Default)]
struct Fake(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    running: BTreeSet<i32>,
    /// Registered; whether with the status.
    processes: BTreeMap<i32, bool>,
    /// Registered; whether by edge.
    fds: BTreeMap<RawFd, bool>,
    /// Readable; whether hung up.
    ready: BTreeMap<RawFd, bool>,
    queue: VecDeque<KernelEvent>,
    rung: bool,
    changes: Vec<Change>,
    refusals: Vec<(Change, Errno)>,
    interruptions: usize,
    timeouts: Vec<Option<Duration>>,
}

impl Inside {
    /// The system learns of an end. The process is no zombie yet.
    fn exit(&mut self, pid: i32, status: i32) {
        assert!(self.running.remove(&pid));
        if let Some(asked) = self.processes.remove(&pid) {
            let status = asked.then_some(status);
            self.queue.push_back(KernelEvent::Ended { pid, status });
        }
    }

    fn arrive(&mut self, fd: RawFd, hung_up: bool) {
        self.ready.insert(fd, hung_up);
        if self.fds.get(&fd) == Some(&true) {
            self.queue.push_back(KernelEvent::Fd { fd, hung_up });
        }
    }

    /// True if the queue's own descriptor is readable.
    fn is_ready(&self) -> bool {
        let mut levels = self.fds.iter().filter(|(_, edge)| !**edge);
        self.rung || !self.queue.is_empty() || levels.any(|(fd, _)| self.ready.contains_key(fd))
    }
}

impl KqueueCalls for Fake {
    fn change(&self, change: Change) -> io::Result<()> {
        let mut inside = self.0.lock().unwrap();
        let inside = &mut *inside;
        inside.changes.push(change);
        let refused = inside.refusals.iter().position(|(one, _)| *one == change);
        if let Some(at) = refused {
            return Err(inside.refusals.remove(at).1.into());
        }
        match change {
            Change::Add(fd) | Change::AddWrite(fd) => drop(inside.fds.insert(fd, false)),
            Change::AddEdge(fd) => {
                inside.fds.insert(fd, true);
                if let Some(&hung_up) = inside.ready.get(&fd) {
                    inside.queue.push_back(KernelEvent::Fd { fd, hung_up });
                }
            }
            Change::Remove(fd) | Change::RemoveWrite(fd) => {
                inside.fds.remove(&fd).ok_or(Errno::NOENT)?;
                let queue = &mut inside.queue;
                queue.retain(|told| !matches!(told, KernelEvent::Fd { fd: one, .. } if *one == fd));
            }
            Change::AddProcess { pid, status } => {
                if !inside.running.contains(&pid) {
                    return Err(Errno::SRCH.into());
                }
                // One that is told of and not looked at has its knote yet: this
                // would change it and not make another.
                let untold = |told: &KernelEvent| matches!(told, KernelEvent::Ended { pid: one, .. } if *one == pid);
                if !inside.queue.iter().any(untold) {
                    inside.processes.insert(pid, status);
                }
            }
            Change::RemoveProcess(pid) => {
                let queue = &mut inside.queue;
                queue.retain(
                    |told| !matches!(told, KernelEvent::Ended { pid: one, .. } if *one == pid),
                );
                inside.processes.remove(&pid);
            }
            Change::Ring => inside.rung = true,
        }
        Ok(())
    }

    fn wait(
        &self,
        max: usize,
        timeout: Option<Duration>,
        tell: &mut dyn FnMut(KernelEvent),
    ) -> io::Result<()> {
        let mut told = Vec::new();
        {
            let mut inside = self.0.lock().unwrap();
            let inside = &mut *inside;
            inside.timeouts.push(timeout);
            if inside.interruptions > 0 {
                inside.interruptions -= 1;
                return Err(Errno::INTR.into());
            }
            if std::mem::take(&mut inside.rung) {
                told.push(KernelEvent::Ring);
            }
            let n = inside.queue.len().min(max - told.len());
            told.extend(inside.queue.drain(..n));
            let levels = inside.fds.iter().filter(|(_, edge)| !**edge);
            let ready = levels.filter_map(|(fd, _)| Some((*fd, *inside.ready.get(fd)?)));
            told.extend(
                ready
                    .map(|(fd, hung_up)| KernelEvent::Fd { fd, hung_up })
                    .take(max - told.len()),
            );
        }
        if told.is_empty() {
            let timeout = timeout.expect("this would sleep for ever");
            poll::poll(&mut [], Deadline::at(Instant::now() + timeout))?;
        }
        told.into_iter().for_each(tell);
        Ok(())
    }
}

fn set(running: impl IntoIterator<Item = i32>) -> Kqueue<Fake> {
    let fake = Fake::default();
    fake.0.lock().unwrap().running.extend(running);
    Kqueue::on(fake)
}

fn with<T>(set: &Kqueue<Fake>, f: impl FnOnce(&mut Inside) -> T) -> T {
    f(&mut set.kernel().0.lock().unwrap())
}

fn add(set: &Kqueue<Fake>, pid: i32, key: u64) {
    set.add_process(pid, 1, key, &|| false).unwrap();
}

/// Keys of a wait without end, which must not sleep.
fn wait(set: &Kqueue<Fake>) -> Vec<u64> {
    let mut keys = Vec::new();
    set.wait(&mut keys, Deadline::NEVER).unwrap();
    keys
}

/// Keys of a wait whose deadline has come.
fn look(set: &Kqueue<Fake>) -> Vec<u64> {
    let mut keys = Vec::new();
    set.wait(&mut keys, Deadline::at(Instant::now())).unwrap();
    keys
}

fn is_ready(set: &Kqueue<Fake>) -> bool {
    with(set, |inside| inside.is_ready())
}

#[test]
fn an_end_is_told_once_and_with_its_status() {
    let set = set([7]);
    add(&set, 7, 1);
    assert!(!is_ready(&set));
    // The process is no zombie yet, and nobody asks whether it is.
    with(&set, |inside| inside.exit(7, 0x300));
    assert!(is_ready(&set));
    assert_eq!(wait(&set), [1]);
    assert!(!is_ready(&set));
    assert!(look(&set).is_empty());
    assert_eq!(set.remove_process(7, 1), Some(0x300));
    assert_eq!(set.remove_process(7, 1), None);
}

#[test]
fn one_that_ended_before_is_told() {
    let set = set([]);
    // A zombie: it is there, but cannot be registered.
    add(&set, 7, 1);
    assert!(is_ready(&set), "the descriptor does not tell of it");
    assert_eq!(wait(&set), [1]);
    assert!(!is_ready(&set));
    assert!(look(&set).is_empty());
    assert_eq!(set.remove_process(7, 1), None, "a status out of nowhere");
}

#[test]
fn one_that_is_registered_too_late_is_told() {
    // Accepted, and the note was sent before.
    let set = set([7]);
    set.add_process(7, 1, 1, &|| true).unwrap();
    assert_eq!(wait(&set), [1]);
    assert!(with(&set, |inside| inside.processes.is_empty()));
}

#[test]
fn an_end_between_registration_and_look_is_told_once() {
    let set = set([7]);
    let looks = Cell::new(0);
    let look_at = || {
        looks.set(looks.get() + 1);
        with(&set, |inside| inside.exit(7, 0));
        true
    };
    set.add_process(7, 1, 1, &look_at).unwrap();
    assert_eq!(looks.get(), 1);
    assert_eq!(wait(&set), [1]);
    assert!(look(&set).is_empty());
    assert!(!is_ready(&set));
}

#[test]
fn one_process_may_be_in_it_twice() {
    let set = set([7, 8]);
    add(&set, 7, 1);
    add(&set, 8, 2);
    add(&set, 7, 3);
    with(&set, |inside| inside.exit(7, 9));
    assert_eq!(wait(&set), [1, 3]);
    assert!(look(&set).is_empty());
    assert_eq!(set.remove_process(7, 3), Some(9));
    assert_eq!(set.remove_process(7, 1), Some(9));
    // Gone, so this is a new registration.
    add(&set, 7, 4);
    assert_eq!(wait(&set), [4]);
}

#[test]
fn one_of_two_can_be_taken_out() {
    let set = set([7]);
    add(&set, 7, 1);
    add(&set, 7, 2);
    assert_eq!(set.remove_process(7, 1), None);
    with(&set, |inside| inside.exit(7, 0));
    assert_eq!(wait(&set), [2]);
}

#[test]
fn the_last_takes_the_knote_and_what_it_told_with_it() {
    let set = set([7, 8]);
    add(&set, 7, 1);
    add(&set, 8, 2);
    set.remove_process(7, 1);
    assert!(with(&set, |inside| !inside.processes.contains_key(&7)));
    with(&set, |inside| inside.exit(8, 0));
    set.remove_process(8, 2);
    assert!(!is_ready(&set));
    // One that was over from the start and was not told yet.
    add(&set, 9, 3);
    set.remove_process(9, 3);
    assert!(look(&set).is_empty());
}

#[test]
fn a_number_that_went_to_another_means_that_the_first_has_ended() {
    let set = set([7]);
    set.add_process(7, 1, 1, &|| false).unwrap();
    with(&set, |inside| {
        inside.exit(7, 0x100);
        inside.running.insert(7);
    });
    // The end of the first lies untold in the queue and is none of the second's.
    set.add_process(7, 2, 2, &|| false).unwrap();
    assert!(is_ready(&set));
    assert_eq!(wait(&set), [1]);
    assert!(look(&set).is_empty());
    with(&set, |inside| inside.exit(7, 0x200));
    assert_eq!(wait(&set), [2]);
    assert_eq!(set.remove_process(7, 1), None);
    assert_eq!(set.remove_process(7, 2), Some(0x200));
}

#[test]
fn an_earlier_owner_of_the_number_does_not_disturb_the_present_one() {
    let set = set([7]);
    set.add_process(7, 2, 2, &|| false).unwrap();
    set.add_process(7, 1, 1, &|| true).unwrap();
    assert_eq!(wait(&set), [1]);
    assert!(look(&set).is_empty());
    with(&set, |inside| inside.exit(7, 0));
    assert_eq!(wait(&set), [2]);
}

#[test]
fn who_may_not_see_the_status_is_told_of_the_end() {
    let set = set([7]);
    let asked = |status| Change::AddProcess { pid: 7, status };
    with(&set, |inside| {
        inside.refusals.push((asked(true), Errno::ACCESS))
    });
    add(&set, 7, 1);
    let changes = with(&set, |inside| inside.changes.clone());
    assert_eq!(changes, [asked(true), asked(false)]);
    with(&set, |inside| inside.exit(7, 9));
    assert_eq!(wait(&set), [1]);
    assert_eq!(set.remove_process(7, 1), None);
}

#[test]
fn a_registration_that_fails_leaves_nothing() {
    let set = set([7]);
    let both = [true, false].map(|status| Change::AddProcess { pid: 7, status });
    with(&set, |inside| {
        inside.refusals.extend(both.map(|one| (one, Errno::ACCESS)));
    });
    let error = set.add_process(7, 1, 1, &|| false).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    with(&set, |inside| inside.refusals.push((both[0], Errno::NOMEM)));
    let error = set.add_process(7, 1, 1, &|| false).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOMEM));
    assert!(look(&set).is_empty());
    // Another try may succeed.
    add(&set, 7, 1);
    with(&set, |inside| inside.exit(7, 0));
    assert_eq!(wait(&set), [1]);
}

#[test]
fn a_mass_exit_comes_in_batches() {
    let n = BATCH as i32 * 2 + 50;
    let set = set(1..=n);
    (1..=n).for_each(|pid| add(&set, pid, pid as u64));
    with(&set, |inside| (1..=n).for_each(|pid| inside.exit(pid, 0)));
    let mut all = Vec::new();
    for expected in [BATCH, BATCH, 50] {
        assert!(is_ready(&set));
        let keys = wait(&set);
        assert_eq!(keys.len(), expected);
        all.extend(keys);
    }
    assert!(!is_ready(&set));
    assert!(all.into_iter().eq(1..=n as u64));
}

#[test]
fn those_over_from_the_start_come_in_batches_too() {
    let n = BATCH as i32 + 10;
    let set = set([]);
    (1..=n).for_each(|pid| add(&set, pid, pid as u64));
    // The wait of a thread that slept meanwhile and was woken up by it.
    with(&set, |inside| inside.rung = false);
    assert_eq!(wait(&set).len(), BATCH);
    assert!(is_ready(&set));
    assert_eq!(wait(&set).len(), 10);
    assert!(!is_ready(&set));
}

#[test]
fn who_is_over_and_who_ends_come_together() {
    let set = set([7]);
    add(&set, 7, 1);
    add(&set, 8, 2);
    with(&set, |inside| inside.exit(7, 0));
    let mut keys = wait(&set);
    keys.sort_unstable();
    assert_eq!(keys, [1, 2]);
}

#[test]
fn a_signal_handler_ends_no_wait() {
    let set = set([7]);
    add(&set, 7, 1);
    with(&set, |inside| {
        inside.interruptions = 3;
        inside.exit(7, 0);
    });
    assert_eq!(wait(&set), [1]);
    assert_eq!(with(&set, |inside| inside.timeouts.len()), 4);
    // A wait whose deadline has come still brings what is ready.
    let (reader, _writer) = io::pipe().unwrap();
    set.add(reader.as_fd(), 2, Interest::Read).unwrap();
    with(&set, |inside| {
        inside.interruptions = 1;
        inside.arrive(reader.as_raw_fd(), false);
    });
    assert_eq!(look(&set), [2]);
}

#[test]
fn a_deadline_that_has_come_looks_once() {
    let set = set([7]);
    add(&set, 7, 1);
    assert!(look(&set).is_empty());
    let timeouts = with(&set, |inside| std::mem::take(&mut inside.timeouts));
    assert_eq!(timeouts, [Some(Duration::ZERO)]);
    with(&set, |inside| inside.exit(7, 0));
    assert_eq!(look(&set), [1]);
}

#[test]
fn it_sleeps_until_the_deadline_and_no_less() {
    let set = set([7]);
    add(&set, 7, 1);
    let before = Instant::now();
    let until = Deadline::at(before + Duration::from_millis(20));
    let mut keys = Vec::new();
    // Rung for nothing, which is no reason to return.
    with(&set, |inside| inside.rung = true);
    set.wait(&mut keys, until).unwrap();
    assert!(keys.is_empty());
    assert!(before.elapsed() >= Duration::from_millis(20));
    // An event that comes with the deadline is found by the check after it.
    let last = with(&set, |inside| inside.timeouts.last().copied());
    assert_eq!(last, Some(Some(Duration::ZERO)));
}

#[test]
fn no_sleep_is_longer_than_systems_take() {
    let set = set([7]);
    add(&set, 7, 1);
    with(&set, |inside| inside.exit(7, 0));
    let far = Deadline::at(Instant::now() + Duration::from_secs(1_000_000_000));
    set.wait(&mut Vec::new(), far).unwrap();
    let timeouts = with(&set, |inside| inside.timeouts.clone());
    assert_eq!(timeouts, [Some(LONGEST)]);
}

#[test]
fn descriptors_are_ready_for_as_long_as_they_are() {
    let (reader, _writer) = io::pipe().unwrap();
    let set = set([]);
    set.add(reader.as_fd(), 1, Interest::Read).unwrap();
    let error = set.add(reader.as_fd(), 2, Interest::Read).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert!(look(&set).is_empty());
    with(&set, |inside| inside.arrive(reader.as_raw_fd(), false));
    assert_eq!(wait(&set), [1]);
    assert_eq!(wait(&set), [1]);
    set.remove(reader.as_fd());
    assert!(look(&set).is_empty());
    assert!(!is_ready(&set));
    set.add(reader.as_fd(), 3, Interest::Read).unwrap();
    assert_eq!(wait(&set), [3]);
}

#[test]
fn a_hang_up_is_no_less_and_lasts() {
    let (reader, _writer) = io::pipe().unwrap();
    let set = set([]);
    set.add(reader.as_fd(), 1, Interest::HangUp).unwrap();
    with(&set, |inside| inside.arrive(reader.as_raw_fd(), false));
    assert!(look(&set).is_empty());
    assert!(!is_ready(&set), "unread bytes keep it awake");
    with(&set, |inside| inside.arrive(reader.as_raw_fd(), true));
    assert_eq!(wait(&set), [1]);
    assert!(is_ready(&set));
    assert_eq!(wait(&set), [1]);
    set.remove(reader.as_fd());
    assert!(!is_ready(&set));
}

#[test]
fn a_descriptor_that_cannot_be_watched_is_not_in_it() {
    let (reader, _writer) = io::pipe().unwrap();
    let fd = reader.as_raw_fd();
    let set = set([]);
    with(&set, |inside| {
        inside.refusals.push((Change::Add(fd), Errno::INVAL))
    });
    assert!(set.add(reader.as_fd(), 1, Interest::Read).is_err());
    set.add(reader.as_fd(), 1, Interest::Read).unwrap();
    // One that was closed before it was removed: the kernel knows it no more.
    with(&set, |inside| inside.fds.clear());
    set.remove(reader.as_fd());
    set.add(reader.as_fd(), 2, Interest::Read).unwrap();
}

#[test]
fn a_watch_that_is_lost_is_an_error_and_no_end() {
    let set = set([7, 8, 9]);
    [7, 8, 9]
        .iter()
        .for_each(|pid| add(&set, *pid, *pid as u64));
    let lost = |pid, errno: Errno| KernelEvent::Lost {
        pid,
        errno: errno.raw_os_error(),
    };
    with(&set, |inside| {
        inside.queue.push_back(lost(7, Errno::NOMEM));
        inside.queue.push_back(lost(8, Errno::SRCH));
    });
    assert_eq!(wait(&set), [8], "who is not there has ended");
    // The other is not forgotten, and the wait does not last for ever.
    let error = set.wait(&mut Vec::new(), Deadline::NEVER).unwrap_err();
    assert_eq!(Errno::from_io_error(&error), Some(Errno::NOMEM));
    with(&set, |inside| inside.exit(9, 0));
    assert_eq!(wait(&set), [9]);
}

#[test]
fn what_is_watched_for_writing_is_taken_out_as_such() {
    let (set, pipe) = (Kqueue::on(Fake::default()), io::pipe().unwrap().1);
    let fd = pipe.as_raw_fd();
    set.add(pipe.as_fd(), 3, Interest::Write).unwrap();
    set.kernel().0.lock().unwrap().arrive(fd, false);
    let mut keys = Vec::new();
    set.wait(&mut keys, Deadline::NEVER).unwrap();
    assert_eq!(keys, [3]);
    set.remove(pipe.as_fd());
    let changes = set.kernel().0.lock().unwrap().changes.clone();
    assert_eq!(changes, [Change::AddWrite(fd), Change::RemoveWrite(fd)]);
}
