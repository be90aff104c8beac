//! The contents of a `WaitSet`'s answers, and their time.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use test_support::alone;

use procwright_os::time::Timeout;
use procwright_process::Cancel;
use procwright_process::Exit;
use procwright_process::Process;
use procwright_process::wait::{Awaits, Event, Key, Outcome, WaitSet, Waitable, Want};
use test_support::family::Family;
use test_support::{Census, sys};

/// A pausing child of this process.
fn pausing() -> Process {
    Process::open(sys::fork_pausing()).unwrap()
}

/// Kills one of these and waits for its end. It is not reaped.
fn kill_and_wait(process: &Process) {
    sys::kill(process.pid(), libc::SIGKILL);
    assert!(process.wait(Timeout::NEVER).unwrap().is_some());
}

/// Kills and reaps one of these.
fn kill_and_reap(process: &Process) {
    sys::kill_and_reap(process.pid());
}

/// `count` pausing children, a set of them, and its keys.
fn pausing_in_a_set(count: usize) -> (Vec<Process>, WaitSet<Process>, Vec<Key>) {
    let processes: Vec<Process> = (0..count).map(|_| pausing()).collect();
    let mut set = WaitSet::new().unwrap();
    let keys = processes
        .iter()
        .map(|process| set.add(process.clone(), Event::Exited).unwrap())
        .collect();
    (processes, set, keys)
}

/// The keys that a wait without patience hands out, and its outcome.
fn poll_set<T: Waitable>(set: &mut WaitSet<T>, want: Want) -> (Vec<Key>, Outcome) {
    let waited = set.wait(want, Duration::ZERO).unwrap();
    let mut keys: Vec<Key> = waited.ended.into_iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    (keys, waited.outcome)
}

alone! {
    fn nothing_to_wait_for() {
        let mut set = WaitSet::<Process>::new().unwrap();
        assert!(set.is_empty() && set.iter().next().is_none());
        for want in [Want::Any, Want::All, Want::First(0), Want::First(1), Want::First(usize::MAX)] {
            let waited = set.wait(want, None).unwrap();
            assert_eq!((waited.ended.len(), waited.outcome), (0, Outcome::Satisfied));
        }
        assert_eq!(set.next(None).unwrap(), None);
    }
}

alone! {
    fn any() {
        let (processes, mut set, keys) = pausing_in_a_set(4);
        assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        kill_and_wait(&processes[2]);
        let waited = set.wait(Want::Any, None).unwrap();
        assert_eq!(waited.ended, [(keys[2], processes[2].clone())]);
        assert_eq!(set.len(), 3);
        assert!(set.get(keys[2]).is_none() && set.mechanism(keys[2]).is_none());
        // A second process that has ended comes with it.
        kill_and_wait(&processes[0]);
        kill_and_wait(&processes[3]);
        assert_eq!(poll_set(&mut set, Want::Any), (vec![keys[0], keys[3]], Outcome::Satisfied));
        assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        assert_eq!(set.iter().map(|(key, _)| key).collect::<Vec<_>>(), [keys[1]]);
        processes.iter().for_each(kill_and_reap);
    }
}

alone! {
    fn all() {
        let (processes, mut set, keys) = pausing_in_a_set(3);
        kill_and_wait(&processes[1]);
        // Too few have ended, and they are handed out after the timeout all the same.
        let begun = Instant::now();
        let waited = set.wait(Want::All, Duration::from_millis(20)).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20));
        assert_eq!((waited.ended.len(), waited.outcome), (1, Outcome::TimedOut));
        kill_and_wait(&processes[0]);
        let last = processes[2].clone();
        let killer = std::thread::spawn(move || last.signal(procwright_process::Signal::KILL));
        let waited = set.wait(Want::All, None).unwrap();
        killer.join().unwrap().unwrap();
        assert_eq!(waited.outcome, Outcome::Satisfied);
        assert_eq!(waited.ended.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [keys[0], keys[2]]);
        assert!(set.is_empty());
        processes.iter().for_each(kill_and_reap);
    }
}

alone! {
    fn the_first_few() {
        let (processes, mut set, keys) = pausing_in_a_set(5);
        assert_eq!(poll_set(&mut set, Want::First(0)), (vec![], Outcome::Satisfied));
        kill_and_wait(&processes[4]);
        assert_eq!(poll_set(&mut set, Want::First(2)), (vec![keys[4]], Outcome::TimedOut));
        processes[..4].iter().for_each(kill_and_wait);
        // Each call hands out at most as many as were asked for; the others come first
        // in the next.
        let mut seen = Vec::new();
        for left in [3, 2] {
            let (more, outcome) = poll_set(&mut set, Want::First(1));
            assert_eq!((more.len(), outcome, set.len()), (1, Outcome::Satisfied, left));
            seen.extend(more);
        }
        assert_eq!(poll_set(&mut set, Want::First(0)), (vec![], Outcome::Satisfied));
        // More are asked for than there are.
        let (more, outcome) = poll_set(&mut set, Want::First(99));
        assert_eq!((more.len(), outcome), (2, Outcome::Satisfied));
        seen.extend(more);
        seen.sort_unstable();
        assert_eq!(seen, keys[..4]);
        processes.iter().for_each(kill_and_reap);
    }
}

alone! {
    fn who_is_left_over_can_be_taken_out() {
        let (processes, mut set, keys) = pausing_in_a_set(3);
        kill_and_wait(&processes[0]);
        kill_and_wait(&processes[1]);
        // Two ends were noticed, one was handed out.
        let (first, _) = poll_set(&mut set, Want::First(1));
        let other = keys[..2].iter().copied().find(|key| *key != first[0]).unwrap();
        assert!(set.get(other).is_some());
        assert!(set.remove(other).is_some());
        assert!(set.remove(other).is_none() && set.remove(first[0]).is_none());
        assert_eq!(set.len(), 1);
        // One living process is all that is left to wait for.
        for want in [Want::Any, Want::First(1), Want::All] {
            assert_eq!(poll_set(&mut set, want), (vec![], Outcome::TimedOut), "{want:?}");
        }
        kill_and_wait(&processes[2]);
        assert_eq!(poll_set(&mut set, Want::Any), (vec![keys[2]], Outcome::Satisfied));
        processes.iter().for_each(kill_and_reap);
    }
}

alone! {
    fn both_events_of_one_process() {
        let mut family = Family::obeying();
        let stranger = family.stranger();
        let mut set = WaitSet::new().unwrap();
        let exited = set.add(stranger.clone(), Event::Exited).unwrap();
        let reaped = set.add(stranger.clone(), Event::Reaped).unwrap();
        let again = set.add(stranger.clone(), Event::Reaped).unwrap();
        let handle = set.add(family.stranger(), Event::Exited).unwrap();
        assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        family.order("exit 1");
        stranger.wait(Timeout::NEVER).unwrap();
        assert_eq!(poll_set(&mut set, Want::Any), (vec![exited, handle], Outcome::Satisfied));
        assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        // One of two equal members goes; the other stays.
        assert!(set.remove(reaped).is_some());
        let before = Instant::now();
        assert!(set.wait(Want::Any, Duration::from_millis(20)).unwrap().ended.is_empty());
        assert!(before.elapsed() >= Duration::from_millis(20));
        family.reap();
        let waited = set.wait(Want::All, None).unwrap();
        assert_eq!(waited.ended.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [again]);
    }
}

alone! {
    fn one_that_was_taken_out() {
        let (processes, mut set, keys) = pausing_in_a_set(2);
        assert_eq!(set.remove(keys[0]).unwrap(), processes[0]);
        kill_and_wait(&processes[0]);
        assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        assert!(!sys::readable(set.as_fd()));
        // A member that is added again has a new key.
        let key = set.add(processes[0].clone(), Event::Exited).unwrap();
        assert!(!keys.contains(&key));
        assert_eq!(poll_set(&mut set, Want::Any), (vec![key], Outcome::Satisfied));
        // Removed after its end, and before the set has noticed the end.
        kill_and_wait(&processes[1]);
        assert!(set.remove(keys[1]).is_some());
        assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::Satisfied));
        processes.iter().for_each(kill_and_reap);
        // A key of another set.
        let (others, mut other, _) = pausing_in_a_set(3);
        assert!(set.remove(keys[1]).is_none());
        assert!(other.remove(keys[1]).is_some());
        others.iter().for_each(kill_and_reap);
    }
}

alone! {
    fn one_that_had_ended_before() {
        let mut family = Family::obeying();
        let stranger = family.stranger();
        family.order("exit 6");
        stranger.wait(Timeout::NEVER).unwrap();
        let mut set = WaitSet::new().unwrap();
        let key = set.add(stranger.clone(), Event::Exited).unwrap();
        assert_eq!(poll_set(&mut set, Want::All), (vec![key], Outcome::Satisfied));
        family.reap();
        // The ended process cannot be opened by number and inode any more; the handle
        // still works.
        assert!(Process::open_id(stranger.id()).is_err());
        assert!(Process::open(stranger.pid()).is_err());
        for event in [Event::Exited, Event::Reaped] {
            let key = set.add(stranger.clone(), event).unwrap();
            assert!(sys::readable(set.as_fd()));
            assert_eq!(poll_set(&mut set, Want::All), (vec![key], Outcome::Satisfied));
        }
        let early = Process::from_pidfd(stranger.pidfd().unwrap().try_clone_to_owned().unwrap());
        assert!(early.is_err(), "it has no number any more");
        assert_eq!(stranger.exit().and_then(Exit::code), Some(6));
    }
}

alone! {
    fn a_cancel() {
        let before = Census::now();
        {
            let (processes, mut set, keys) = pausing_in_a_set(2);
            let cancel = Cancel::new().unwrap();
            set.cancel_on(cancel.clone()).unwrap();
            assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::TimedOut));
            let elsewhere = cancel.clone();
            let canceller = std::thread::spawn(move || elsewhere.cancel());
            let waited = set.wait(Want::All, None).unwrap();
            canceller.join().unwrap();
            assert_eq!((waited.ended.len(), waited.outcome), (0, Outcome::Cancelled));
            // The set stays cancelled, for every kind of wait.
            for want in [Want::Any, Want::All, Want::First(2)] {
                assert_eq!(set.wait(want, None).unwrap().outcome, Outcome::Cancelled);
                assert_eq!(poll_set(&mut set, want).1, Outcome::Cancelled);
            }
            assert_eq!(poll_set(&mut set, Want::First(0)).1, Outcome::Satisfied);
            // Ended processes are handed out along with the cancel; if they suffice,
            // the wait has succeeded.
            kill_and_wait(&processes[1]);
            let waited = set.wait(Want::All, None).unwrap();
            assert_eq!((waited.ended.len(), waited.outcome), (1, Outcome::Cancelled));
            kill_and_wait(&processes[0]);
            assert_eq!(poll_set(&mut set, Want::Any), (vec![keys[0]], Outcome::Satisfied));
            processes.iter().for_each(kill_and_reap);
            // A cancel replaced by another: the old one has no effect any more.
            let (processes, mut set, _) = pausing_in_a_set(1);
            set.cancel_on(cancel.clone()).unwrap();
            let fresh = Cancel::new().unwrap();
            set.cancel_on(fresh.clone()).unwrap();
            assert_eq!(poll_set(&mut set, Want::Any).1, Outcome::TimedOut);
            fresh.cancel();
            assert_eq!(set.wait(Want::Any, None).unwrap().outcome, Outcome::Cancelled);
            // One cancel may be set twice.
            set.cancel_on(fresh).unwrap();
            assert_eq!(set.wait(Want::Any, None).unwrap().outcome, Outcome::Cancelled);
            processes.iter().for_each(kill_and_reap);
        }
        before.comes_back();
    }
}

struct Line(std::io::PipeReader);

impl Waitable for Line {
    fn awaits(&self) -> Awaits<'_> {
        Awaits::readable(self.0.as_fd())
    }
}

alone! {
    fn members_of_many_kinds() {
        let before = Census::now();
        {
            let process = pausing();
            let borrowed = pausing();
            let shared = Arc::new(pausing());
            // Made after the forks, which would hold it open.
            let (line, writer) = std::io::pipe().unwrap();
            let cancel = Cancel::new().unwrap();
            let mut set: WaitSet<Box<dyn Waitable>> = WaitSet::new().unwrap();
            let keys = [
                set.add(Box::new(Line(line)), Event::Exited).unwrap(),
                set.add(Box::new(cancel.clone()), Event::Exited).unwrap(),
                set.add(Box::new(process.clone()), Event::Exited).unwrap(),
                set.add(Box::new(shared.clone()), Event::Exited).unwrap(),
            ];
            assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::TimedOut));
            // One object is a member and cancels the wait: both are reported.
            let mut also: WaitSet<Cancel> = WaitSet::new().unwrap();
            also.cancel_on(cancel.clone()).unwrap();
            also.add(cancel.clone(), Event::Exited).unwrap();
            drop(writer);
            assert_eq!(poll_set(&mut set, Want::Any), (vec![keys[0]], Outcome::Satisfied));
            cancel.cancel();
            assert_eq!(poll_set(&mut set, Want::Any), (vec![keys[1]], Outcome::Satisfied));
            assert_eq!(poll_set(&mut also, Want::All).1, Outcome::Satisfied);
            kill_and_wait(&process);
            kill_and_wait(&shared);
            assert_eq!(poll_set(&mut set, Want::All), (vec![keys[2], keys[3]], Outcome::Satisfied));
            // Borrowed members.
            let mut set = WaitSet::new().unwrap();
            set.add(&borrowed, Event::Exited).unwrap();
            kill_and_wait(&borrowed);
            assert_eq!(set.next(None).unwrap().unwrap().1.exit(), borrowed.exit());
            for process in [&process, &borrowed, &*shared] { kill_and_reap(process); }
            // A member that cannot be polled is refused, and the set is unchanged.
            let file = std::fs::File::open("/proc/self/exe").unwrap();
            let mut set = WaitSet::new().unwrap();
            assert!(set.add(File(file), Event::Exited).is_err());
            assert!(set.is_empty());
        }
        before.comes_back();
    }
}

struct File(std::fs::File);

impl Waitable for File {
    fn awaits(&self) -> Awaits<'_> {
        Awaits::readable(self.0.as_fd())
    }
}

alone! {
    fn what_cancels_may_be_a_member_already() {
        let cancel = Cancel::new().unwrap();
        let mut set = WaitSet::new().unwrap();
        let key = set.add(cancel.clone(), Event::Exited).unwrap();
        set.cancel_on(cancel.clone()).unwrap();
        assert_eq!(poll_set(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        cancel.cancel();
        assert_eq!(poll_set(&mut set, Want::Any), (vec![key], Outcome::Satisfied));
        // The member is gone; the cancel is still there.
        let process = pausing();
        let mut set = WaitSet::new().unwrap();
        let member: Box<dyn Waitable> = Box::new(Cancel::new().unwrap());
        let key = set.add(member, Event::Exited).unwrap();
        set.add(Box::new(process.clone()), Event::Exited).unwrap();
        set.cancel_on(cancel).unwrap();
        assert!(set.remove(key).is_some());
        assert_eq!(set.wait(Want::Any, None).unwrap().outcome, Outcome::Cancelled);
        kill_and_reap(&process);
    }
}

alone! {
    fn nothing_is_left_of_a_set() {
        let before = Census::now();
        {
            let (processes, mut set, keys) = pausing_in_a_set(20);
            let cancel = Cancel::new().unwrap();
            set.cancel_on(cancel).unwrap();
            for process in &processes {
                // Two equal members, each with a descriptor of its own.
                set.add(process.clone(), Event::Reaped).unwrap();
            }
            kill_and_wait(&processes[3]);
            set.wait(Want::First(1), None).unwrap();
            set.remove(keys[5]);
            drop(set);
            for process in &processes {
                assert_eq!(process.is_alive(), *process != processes[3]);
            }
            processes.iter().for_each(kill_and_reap);
        }
        before.comes_back();
    }
}

alone! {
    fn a_fork() {
        let (processes, mut set, keys) = pausing_in_a_set(3);
        let cancel = Cancel::new().unwrap();
        set.cancel_on(cancel.clone()).unwrap();
        kill_and_wait(&processes[0]);
        let mut own = Some(set);
        let status = sys::in_fork(|| {
            let set = own.as_mut().unwrap();
            let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::Unsupported;
            assert!(refused(set.wait(Want::Any, None).unwrap_err()));
            assert!(refused(set.wait(Want::First(0), Duration::ZERO).unwrap_err()));
            assert!(refused(set.next(None).unwrap_err()));
            assert!(refused(set.add(processes[1].clone(), Event::Reaped).unwrap_err()));
            assert!(refused(set.cancel_on(Cancel::new().unwrap()).unwrap_err()));
            assert_eq!(set.len(), 3);
            // Removing and dropping affect the fork's copy alone.
            assert!(set.remove(keys[1]).is_some());
            drop(own.take());
            // A set that the fork itself makes works.
            let mut set = WaitSet::new().unwrap();
            set.add(&processes[0], Event::Exited).unwrap();
            set.add(&processes[1], Event::Exited).unwrap();
            assert_eq!(set.wait(Want::Any, None).unwrap().ended.len(), 1);
            0
        });
        assert_eq!(status, 0);
        let mut set = own.unwrap();
        assert_eq!(poll_set(&mut set, Want::Any), (vec![keys[0]], Outcome::Satisfied));
        kill_and_wait(&processes[1]);
        kill_and_wait(&processes[2]);
        assert_eq!(poll_set(&mut set, Want::All), (vec![keys[1], keys[2]], Outcome::Satisfied));
        processes.iter().for_each(kill_and_reap);
    }
}

alone! {
    fn a_set_that_goes_to_another_thread() {
        let (processes, mut set, keys) = pausing_in_a_set(2);
        let waiter = std::thread::spawn(move || {
            let waited = set.wait(Want::All, None).unwrap();
            (set, waited)
        });
        processes.iter().for_each(kill_and_wait);
        let (set, waited) = waiter.join().unwrap();
        let mut ended: Vec<Key> = waited.ended.iter().map(|(key, _)| *key).collect();
        ended.sort_unstable();
        assert_eq!(ended, keys);
        assert!(set.is_empty());
        processes.iter().for_each(kill_and_reap);
    }
}
