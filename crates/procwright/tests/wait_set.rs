//! What a `WaitSet` hands out, and when.

mod common;

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::family::Family;
use common::{Census, sys};
use procwright::process::Exit;
use procwright::time::Timeout;
use procwright::wait::{Awaits, Event, Key, Outcome, WaitSet, Waitable, Want};
use procwright::{Cancel, Process};

/// A pausing child of ours.
fn pausing() -> Process {
    Process::open(sys::fork_pausing()).unwrap()
}

/// Ends one of these and waits for that. It is not reaped.
fn end(process: &Process) {
    sys::kill(process.pid(), libc::SIGKILL);
    assert!(process.wait(Timeout::NEVER).unwrap().is_some());
}

/// Ends and reaps one of these.
fn clear(process: &Process) {
    sys::kill(process.pid(), libc::SIGKILL);
    sys::reap(process.pid());
}

/// So many children of ours, a set of them, and its keys.
fn several(count: usize) -> (Vec<Process>, WaitSet<Process>, Vec<Key>) {
    let processes: Vec<Process> = (0..count).map(|_| pausing()).collect();
    let mut set = WaitSet::new().unwrap();
    let keys = processes
        .iter()
        .map(|process| set.add(process.clone(), Event::Exited).unwrap())
        .collect();
    (processes, set, keys)
}

/// Who a look hands out now, and whether it was satisfied.
fn look<T: Waitable>(set: &mut WaitSet<T>, want: Want) -> (Vec<Key>, Outcome) {
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
        let (processes, mut set, keys) = several(4);
        assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        end(&processes[2]);
        let waited = set.wait(Want::Any, None).unwrap();
        assert_eq!(waited.ended, [(keys[2], processes[2].clone())]);
        assert_eq!(set.len(), 3);
        assert!(set.get(keys[2]).is_none() && set.mechanism(keys[2]).is_none());
        // Whoever else has ended comes with it.
        end(&processes[0]);
        end(&processes[3]);
        assert_eq!(look(&mut set, Want::Any), (vec![keys[0], keys[3]], Outcome::Satisfied));
        assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        assert_eq!(set.iter().map(|(key, _)| key).collect::<Vec<_>>(), [keys[1]]);
        processes.iter().for_each(clear);
    }
}

alone! {
    fn all() {
        let (processes, mut set, keys) = several(3);
        end(&processes[1]);
        // Too few, and they are handed out after the timeout all the same.
        let begun = Instant::now();
        let waited = set.wait(Want::All, Duration::from_millis(20)).unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(20));
        assert_eq!((waited.ended.len(), waited.outcome), (1, Outcome::TimedOut));
        end(&processes[0]);
        let last = processes[2].clone();
        let killer = std::thread::spawn(move || last.signal(procwright::process::Signal::KILL));
        let waited = set.wait(Want::All, None).unwrap();
        killer.join().unwrap().unwrap();
        assert_eq!(waited.outcome, Outcome::Satisfied);
        assert_eq!(waited.ended.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [keys[0], keys[2]]);
        assert!(set.is_empty());
        processes.iter().for_each(clear);
    }
}

alone! {
    fn the_first_few() {
        let (processes, mut set, keys) = several(5);
        assert_eq!(look(&mut set, Want::First(0)), (vec![], Outcome::Satisfied));
        end(&processes[4]);
        assert_eq!(look(&mut set, Want::First(2)), (vec![keys[4]], Outcome::TimedOut));
        processes[..4].iter().for_each(end);
        // No more than were asked for; the others are first the next time.
        let mut seen = Vec::new();
        for left in [3, 2] {
            let (more, outcome) = look(&mut set, Want::First(1));
            assert_eq!((more.len(), outcome, set.len()), (1, Outcome::Satisfied, left));
            seen.extend(more);
        }
        assert_eq!(look(&mut set, Want::First(0)), (vec![], Outcome::Satisfied));
        // More than there are.
        let (more, outcome) = look(&mut set, Want::First(99));
        assert_eq!((more.len(), outcome), (2, Outcome::Satisfied));
        seen.extend(more);
        seen.sort_unstable();
        assert_eq!(seen, keys[..4]);
        processes.iter().for_each(clear);
    }
}

alone! {
    fn who_is_left_over_can_be_taken_out() {
        let (processes, mut set, keys) = several(3);
        end(&processes[0]);
        end(&processes[1]);
        // Both were noticed, one was handed out.
        let (first, _) = look(&mut set, Want::First(1));
        let other = keys[..2].iter().copied().find(|key| *key != first[0]).unwrap();
        assert!(set.get(other).is_some());
        assert!(set.remove(other).is_some());
        assert!(set.remove(other).is_none() && set.remove(first[0]).is_none());
        assert_eq!(set.len(), 1);
        // The one that lives is all that there is to wait for.
        for want in [Want::Any, Want::First(1), Want::All] {
            assert_eq!(look(&mut set, want), (vec![], Outcome::TimedOut), "{want:?}");
        }
        end(&processes[2]);
        assert_eq!(look(&mut set, Want::Any), (vec![keys[2]], Outcome::Satisfied));
        processes.iter().for_each(clear);
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
        assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        family.order("exit 1");
        stranger.wait(Timeout::NEVER).unwrap();
        assert_eq!(look(&mut set, Want::Any), (vec![exited, handle], Outcome::Satisfied));
        assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        // One of the twins goes; the other stays.
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
        let (processes, mut set, keys) = several(2);
        assert_eq!(set.remove(keys[0]).unwrap(), processes[0]);
        end(&processes[0]);
        assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        assert!(!sys::readable(set.as_fd()));
        // Put in again, it has a new name.
        let key = set.add(processes[0].clone(), Event::Exited).unwrap();
        assert!(!keys.contains(&key));
        assert_eq!(look(&mut set, Want::Any), (vec![key], Outcome::Satisfied));
        // After its end, and before anyone has noticed.
        end(&processes[1]);
        assert!(set.remove(keys[1]).is_some());
        assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::Satisfied));
        processes.iter().for_each(clear);
        // The key of another set.
        let (others, mut other, _) = several(3);
        assert!(set.remove(keys[1]).is_none());
        assert!(other.remove(keys[1]).is_some());
        others.iter().for_each(clear);
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
        assert_eq!(look(&mut set, Want::All), (vec![key], Outcome::Satisfied));
        family.reap();
        // By its number and inode it is not to be had any more; what we hold is.
        assert!(Process::open_id(stranger.id()).is_err());
        assert!(Process::open(stranger.pid()).is_err());
        for event in [Event::Exited, Event::Reaped] {
            let key = set.add(stranger.clone(), event).unwrap();
            assert!(sys::readable(set.as_fd()));
            assert_eq!(look(&mut set, Want::All), (vec![key], Outcome::Satisfied));
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
            let (processes, mut set, keys) = several(2);
            let cancel = Cancel::new().unwrap();
            set.cancel_on(cancel.clone()).unwrap();
            assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::TimedOut));
            let elsewhere = cancel.clone();
            let canceller = std::thread::spawn(move || elsewhere.cancel());
            let waited = set.wait(Want::All, None).unwrap();
            canceller.join().unwrap();
            assert_eq!((waited.ended.len(), waited.outcome), (0, Outcome::Cancelled));
            // It stays cancelled, for every kind of wait.
            for want in [Want::Any, Want::All, Want::First(2)] {
                assert_eq!(set.wait(want, None).unwrap().outcome, Outcome::Cancelled);
                assert_eq!(look(&mut set, want).1, Outcome::Cancelled);
            }
            assert_eq!(look(&mut set, Want::First(0)).1, Outcome::Satisfied);
            // Who has ended is handed out with it, and if that is enough it was
            // in time.
            end(&processes[1]);
            let waited = set.wait(Want::All, None).unwrap();
            assert_eq!((waited.ended.len(), waited.outcome), (1, Outcome::Cancelled));
            end(&processes[0]);
            assert_eq!(look(&mut set, Want::Any), (vec![keys[0]], Outcome::Satisfied));
            processes.iter().for_each(clear);
            // Another in its place; the old one is not heard any more.
            let (processes, mut set, _) = several(1);
            set.cancel_on(cancel.clone()).unwrap();
            let fresh = Cancel::new().unwrap();
            set.cancel_on(fresh.clone()).unwrap();
            assert_eq!(look(&mut set, Want::Any).1, Outcome::TimedOut);
            fresh.cancel();
            assert_eq!(set.wait(Want::Any, None).unwrap().outcome, Outcome::Cancelled);
            // The same twice.
            set.cancel_on(fresh).unwrap();
            assert_eq!(set.wait(Want::Any, None).unwrap().outcome, Outcome::Cancelled);
            processes.iter().for_each(clear);
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
            // After the forks, which would hold it open.
            let (line, writer) = std::io::pipe().unwrap();
            let cancel = Cancel::new().unwrap();
            let mut set: WaitSet<Box<dyn Waitable>> = WaitSet::new().unwrap();
            let keys = [
                set.add(Box::new(Line(line)), Event::Exited).unwrap(),
                set.add(Box::new(cancel.clone()), Event::Exited).unwrap(),
                set.add(Box::new(process.clone()), Event::Exited).unwrap(),
                set.add(Box::new(shared.clone()), Event::Exited).unwrap(),
            ];
            assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::TimedOut));
            // A member once more as what cancels: both are heard.
            let mut also: WaitSet<Cancel> = WaitSet::new().unwrap();
            also.cancel_on(cancel.clone()).unwrap();
            also.add(cancel.clone(), Event::Exited).unwrap();
            drop(writer);
            assert_eq!(look(&mut set, Want::Any), (vec![keys[0]], Outcome::Satisfied));
            cancel.cancel();
            assert_eq!(look(&mut set, Want::Any), (vec![keys[1]], Outcome::Satisfied));
            assert_eq!(look(&mut also, Want::All).1, Outcome::Satisfied);
            end(&process);
            end(&shared);
            assert_eq!(look(&mut set, Want::All), (vec![keys[2], keys[3]], Outcome::Satisfied));
            // Borrowed.
            let mut set = WaitSet::new().unwrap();
            set.add(&borrowed, Event::Exited).unwrap();
            end(&borrowed);
            assert_eq!(set.next(None).unwrap().unwrap().1.exit(), borrowed.exit());
            for process in [&process, &borrowed, &*shared] { clear(process); }
            // What cannot be polled is refused, and the set is as it was.
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
        assert_eq!(look(&mut set, Want::Any), (vec![], Outcome::TimedOut));
        cancel.cancel();
        assert_eq!(look(&mut set, Want::Any), (vec![key], Outcome::Satisfied));
        // The member is gone; what cancels is still there.
        let process = pausing();
        let mut set = WaitSet::new().unwrap();
        let member: Box<dyn Waitable> = Box::new(Cancel::new().unwrap());
        let key = set.add(member, Event::Exited).unwrap();
        set.add(Box::new(process.clone()), Event::Exited).unwrap();
        set.cancel_on(cancel).unwrap();
        assert!(set.remove(key).is_some());
        assert_eq!(set.wait(Want::Any, None).unwrap().outcome, Outcome::Cancelled);
        clear(&process);
    }
}

alone! {
    fn nothing_is_left_of_a_set() {
        let before = Census::now();
        {
            let (processes, mut set, keys) = several(20);
            let cancel = Cancel::new().unwrap();
            set.cancel_on(cancel).unwrap();
            for process in &processes {
                // Twins, with descriptors of their own.
                set.add(process.clone(), Event::Reaped).unwrap();
            }
            end(&processes[3]);
            set.wait(Want::First(1), None).unwrap();
            set.remove(keys[5]);
            drop(set);
            for process in &processes {
                assert_eq!(process.is_alive(), *process != processes[3]);
            }
            processes.iter().for_each(clear);
        }
        before.comes_back();
    }
}

alone! {
    fn a_fork() {
        let (processes, mut set, keys) = several(3);
        let cancel = Cancel::new().unwrap();
        set.cancel_on(cancel.clone()).unwrap();
        end(&processes[0]);
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
            // Taking out and dropping touch the fork's copy alone.
            assert!(set.remove(keys[1]).is_some());
            drop(own.take());
            // A set of its own works there.
            let mut set = WaitSet::new().unwrap();
            set.add(&processes[0], Event::Exited).unwrap();
            set.add(&processes[1], Event::Exited).unwrap();
            assert_eq!(set.wait(Want::Any, None).unwrap().ended.len(), 1);
            0
        });
        assert_eq!(status, 0);
        let mut set = own.unwrap();
        assert_eq!(look(&mut set, Want::Any), (vec![keys[0]], Outcome::Satisfied));
        end(&processes[1]);
        end(&processes[2]);
        assert_eq!(look(&mut set, Want::All), (vec![keys[1], keys[2]], Outcome::Satisfied));
        processes.iter().for_each(clear);
    }
}

alone! {
    fn a_set_that_goes_to_another_thread() {
        let (processes, mut set, keys) = several(2);
        let waiter = std::thread::spawn(move || {
            let waited = set.wait(Want::All, None).unwrap();
            (set, waited)
        });
        processes.iter().for_each(end);
        let (set, waited) = waiter.join().unwrap();
        let mut ended: Vec<Key> = waited.ended.iter().map(|(key, _)| *key).collect();
        ended.sort_unstable();
        assert_eq!(ended, keys);
        assert!(set.is_empty());
        processes.iter().for_each(clear);
    }
}
