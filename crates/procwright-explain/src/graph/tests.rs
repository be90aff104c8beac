//! Who is released by what, of two processes.

use super::signals::bit;
use super::*;
use crate::knot::{self, Doubts, stuck};
use crate::wait::{Mutex, Place, Wait};
use crate::world::{Fd, Object, Owner, Process, Sharers, Thread};

/// Two processes that read from each other.
fn pair(switches: u64) -> World {
    let mut world = World::default();
    for (pid, from, to) in [(10, 1, 2), (11, 2, 1)] {
        let fd = |number, pipe, write: bool| Fd {
            number,
            of: Object::Pipe(pipe),
            read: !write,
            write,
        };
        let thread = Thread {
            tid: pid,
            state: 'S',
            switches: (switches, 0),
            ran: None,
            wait: Wait::Read(0),
            call: String::from("0 0x0"),
        };
        let process = Process {
            is_outline: false,
            pid,
            ppid: 1,
            pgrp: pid,
            name: String::from("one"),
            start: 1_000,
            uid: Some(0),
            tracer: 0,
            nested: false,
            terminal: 0,
            foreground: -1,
            gone: false,
            frozen: None,
            stop_signal: 0,
            caught: 0,
            timers: Some(false),
            elsewhere: false,
            threads: vec![thread],
            thread_count: 1,
            fds: Some(vec![fd(0, from, false), fd(1, to, true)]),
            written: None,
        };
        world.processes.insert(pid, process);
    }
    world
}

/// How many are stuck for certain.
fn proven(first: &World, second: &World, births: &Births) -> usize {
    stuck(&Graph::of(first, second, births), Doubts::Release).len()
}

#[test]
fn who_has_run_between_the_looks_is_free() {
    let none = Births::new();
    assert_eq!(proven(&pair(5), &pair(5), &none), 2);
    let mut moved = pair(5);
    moved.processes.get_mut(&11).unwrap().threads[0].switches.0 = 6;
    assert_eq!(proven(&pair(5), &moved, &none), 0);
    // Another process of the same number.
    let mut other = pair(5);
    other.processes.get_mut(&10).unwrap().start = 2_000;
    assert_eq!(proven(&pair(5), &other, &none), 0);
    let mut thread = pair(5);
    let threads = &mut thread.processes.get_mut(&10).unwrap().threads;
    threads.push(Thread {
        tid: 12,
        wait: Wait::Time,
        ..threads[0].clone()
    });
    assert_eq!(proven(&pair(5), &thread, &none), 0);
}

#[test]
fn an_edge_of_both_looks_is_there_once() {
    let graph = Graph::of(&pair(5), &pair(5), &Births::new());
    assert_eq!(graph.nodes[&10].edges.len(), 1);
}

#[test]
fn a_write_end_seen_at_one_look_counts() {
    let mut held = pair(5);
    let mut third = held.processes[&10].clone();
    (third.pid, third.threads[0].wait) = (12, Wait::Time);
    held.processes.insert(12, third);
    assert_eq!(proven(&pair(5), &held, &Births::new()), 0);
    assert_eq!(proven(&held, &pair(5), &Births::new()), 0);
}

#[test]
fn who_may_not_be_looked_at_may_hold_an_end_unless_it_is_older() {
    let mut world = pair(5);
    let mut hidden = world.processes[&10].clone();
    (hidden.pid, hidden.start, hidden.fds) = (9, 500, None);
    hidden.threads[0].wait = Wait::Time;
    world.processes.insert(9, hidden);
    world.unseen.processes.push(9);
    assert_eq!(proven(&world, &world, &Births::new()), 0);
    // Made by one of the pair, who is older.
    let born = |ticks| Births::from([(Object::Pipe(1), ticks), (Object::Pipe(2), ticks)]);
    assert_eq!(proven(&world, &world, &born(1_004)), 2);
    // Made before both of them, so by somebody else.
    assert_eq!(proven(&world, &world, &born(1_003)), 0);
    // The hidden one is younger than the pipes, and may have inherited.
    world.processes.get_mut(&9).unwrap().start = 1_001;
    assert_eq!(proven(&world, &world, &born(1_004)), 0);
    world.processes.get_mut(&9).unwrap().start = 500;
    world.unseen.hidepid = true;
    assert_eq!(proven(&world, &world, &born(1_004)), 0);
}

/// A loop reads the pipe that its handler of SIGINT writes to.
#[test]
fn a_handler_may_feed_a_pipe_to_oneself() {
    for (caught, expected) in [(0, 1), (bit(11), 1), (bit(2), 0), (bit(15), 0)] {
        let mut world = pair(5);
        world.processes.remove(&11);
        let one = world.processes.get_mut(&10).unwrap();
        one.caught = caught;
        for fd in one.fds.iter_mut().flatten() {
            fd.of = Object::Pipe(1);
        }
        assert_eq!(
            proven(&world, &world, &Births::new()),
            expected,
            "{caught:x}"
        );
    }
}

/// vmsplice is a write by its name, and reads from a read end.
#[test]
fn the_end_that_a_descriptor_is_says_which_way_it_goes() {
    let mut world = pair(5);
    world.processes.get_mut(&11).unwrap().threads[0].wait = Wait::Write(0);
    let mut third = world.processes[&10].clone();
    (third.pid, third.threads[0].wait) = (12, Wait::Time);
    world.processes.insert(12, third);
    assert_eq!(proven(&world, &world, &Births::new()), 0);
}

#[test]
fn what_releases_by_itself() {
    for wait in [
        Wait::Runs,
        Wait::Time,
        Wait::Signal,
        Wait::Accept(9),
        Wait::Connect(9),
        Wait::Stopped,
        Wait::Other(999),
        Wait::Restarted,
        Wait::HiddenSet { finite: false },
        Wait::Hidden(String::from("pipe_read")),
        Wait::Uninterruptible(String::new()),
        Wait::Futex {
            private: false,
            mutex: None,
        },
        Wait::Set {
            read: vec![0],
            write: Vec::new(),
            finite: true,
        },
    ] {
        let mut world = pair(5);
        world.processes.get_mut(&11).unwrap().threads[0].wait = wait.clone();
        assert_eq!(proven(&world, &world, &Births::new()), 0, "{wait:?}");
    }
    for (caught, expected) in [
        (bit(14), 0),
        (bit(10), 0),
        (bit(34), 0),
        (bit(33), 2),
        (bit(15), 2),
    ] {
        let mut world = pair(5);
        world.processes.get_mut(&11).unwrap().caught = caught;
        assert_eq!(
            proven(&world, &world, &Births::new()),
            expected,
            "{caught:x}"
        );
    }
    let mut world = pair(5);
    for timers in [Some(true), None] {
        world.processes.get_mut(&11).unwrap().timers = timers;
        assert_eq!(proven(&world, &world, &Births::new()), 0, "{timers:?}");
    }
    let mut world = pair(5);
    world.processes.get_mut(&11).unwrap().fds = None;
    assert_eq!(proven(&world, &world, &Births::new()), 0);
}

/// Two processes of two threads each. The second threads wait for something of their own process,
/// the first ones for mutexes of the threads `owners`, who are `found` to be these.
fn mutexes(owners: [i32; 2], found: [Owner; 2]) -> World {
    let mut world = pair(5);
    for (pid, owner, found) in [(10, owners[0], found[0]), (11, owners[1], found[1])] {
        let process = world.processes.get_mut(&pid).unwrap();
        process.threads[0].wait = Wait::Futex {
            private: false,
            mutex: Some(Mutex {
                owner,
                place: Place {
                    device: 1,
                    inode: 7,
                    offset: 64,
                },
                anyone_unlocks: false,
            }),
        };
        let other = Thread {
            tid: pid + 10,
            wait: Wait::Futex {
                private: true,
                mutex: None,
            },
            ..process.threads[0].clone()
        };
        process.threads.push(other);
        process.thread_count = 2;
        world.mutexes.insert(pid, found);
    }
    world
}

fn of(pid: i32) -> Owner {
    Owner::Process { pid, certain: true }
}

#[test]
fn who_holds_a_mutex_releases_who_waits_for_it() {
    let none = Births::new();
    let circle = mutexes([21, 20], [of(11), of(10)]);
    let graph = Graph::of(&circle, &circle, &none);
    let all = stuck(&graph, Doubts::Release);
    assert_eq!(knot::cycles(&graph, &all), [BTreeSet::from([10, 11])]);
    // One of them has a thread that goes on.
    let mut open = circle.clone();
    open.processes.get_mut(&11).unwrap().threads[1].wait = Wait::Time;
    assert_eq!(proven(&open, &open, &none), 0);
}

#[test]
fn a_holder_that_is_not_certain_is_no_proof() {
    let none = Births::new();
    let maybe = |pid| Owner::Process {
        pid,
        certain: false,
    };
    let nested = mutexes([21, 20], [maybe(11), maybe(10)]);
    assert_eq!(proven(&nested, &nested, &none), 0);
    let graph = Graph::of(&nested, &nested, &none);
    assert_eq!(stuck(&graph, Doubts::Disregarded).len(), 2);
    let unknown = mutexes([21, 20], [of(11), Owner::Unknown]);
    assert_eq!(proven(&unknown, &unknown, &none), 0);
    // Given to another in between.
    let given = mutexes([20, 20], [of(10), of(10)]);
    let circle = mutexes([21, 20], [of(11), of(10)]);
    assert_eq!(proven(&given, &circle, &none), 0);
}

#[test]
fn a_mutex_of_its_own_is_a_circle_only_where_threads_wait_for_each_other() {
    let none = Births::new();
    let circles = |world: &World| {
        let graph = Graph::of(world, world, &none);
        knot::cycles(&graph, &stuck(&graph, Doubts::Release))
    };
    // Of the other thread, which waits for something else.
    let own = mutexes([20, 20], [of(10), of(10)]);
    assert!(circles(&own).is_empty());
    let twice = mutexes([10, 20], [of(10), of(10)]);
    assert_eq!(circles(&twice), [BTreeSet::from([10])]);
    let mut both = own.clone();
    let threads = &mut both.processes.get_mut(&10).unwrap().threads;
    threads[1].wait = threads[0].wait.clone();
    if let Wait::Futex {
        mutex: Some(mutex), ..
    } = &mut threads[1].wait
    {
        mutex.owner = 10;
    }
    both.mutexes.insert(20, of(10));
    assert_eq!(circles(&both), [BTreeSet::from([10])]);
    let dead = mutexes([99, 20], [Owner::Gone, of(10)]);
    assert_eq!(circles(&dead), [BTreeSet::from([10])]);
    let left = mutexes([99, 20], [Owner::Left, of(10)]);
    assert!(circles(&left).is_empty(), "it may come back");
    let graph = Graph::of(&left, &left, &none);
    assert!(stuck(&graph, Doubts::Disregarded).contains(&10));
}

#[test]
fn where_anybody_may_unlock_who_goes_on_is_a_doubt() {
    let none = Births::new();
    // Beside both a third one has the memory.
    let shared = |wait: Wait, all_seen: bool| {
        let mut world = mutexes([10, 20], [of(10), of(10)]);
        let mut third = world.processes[&11].clone();
        third.pid = 12;
        third.threads.truncate(1);
        third.threads[0].tid = 12;
        third.threads[0].wait = wait;
        world.processes.insert(12, third);
        let threads = &mut world.processes.get_mut(&10).unwrap().threads;
        let Wait::Futex {
            mutex: Some(mutex), ..
        } = &mut threads[0].wait
        else {
            unreachable!("it waits for a mutex")
        };
        mutex.anyone_unlocks = true;
        let sharers = Sharers {
            pids: BTreeSet::from([10, 12]),
            all_seen,
        };
        world.sharers.insert(mutex.place, sharers);
        let graph = Graph::of(&world, &world, &none);
        let is_in = |doubts| stuck(&graph, doubts).contains(&10);
        (is_in(Doubts::Release), is_in(Doubts::Disregarded))
    };
    let waits = Wait::Futex {
        private: true,
        mutex: None,
    };
    assert_eq!(shared(waits.clone(), true), (true, true));
    assert_eq!(shared(Wait::Time, true), (false, true));
    assert_eq!(shared(waits, false), (false, true), "somebody unseen");
}
