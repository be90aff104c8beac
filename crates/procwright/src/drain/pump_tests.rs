use std::io::{self, Write};
use std::os::fd::OwnedFd;

use super::*;
use crate::drain::Store;
use crate::spool::Overflow;
use crate::spool::elastic::{self, Consumer};
use crate::sys::testing;

/// A stream and its reader.
fn flow(fd: impl Into<OwnedFd>, wake: Arc<Wake>) -> (Flow, Consumer) {
    let policy = Overflow::DropNewest { memory: 64 << 10 };
    let (producer, consumer, _) = elastic::elastic(policy, wake, Box::new(|_| {})).unwrap();
    let store = Store::Elastic(Some(producer));
    let flow = Drain::new(fd.into(), None, store, Vec::new(), Instant::now());
    (flow, consumer)
}

#[test]
fn what_cannot_be_watched_comes_to_an_end() {
    // No epoll takes a file of a disk; it is too long for one turn.
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&vec![0; 4 << 20]).unwrap();
    io::Seek::rewind(&mut file).unwrap();
    let pump = Pump::get().unwrap();
    let (flow, mut consumer) = flow(file, pump.wake());
    let _taken = pump.take(flow);
    let watchdog = Deadline::at(Instant::now() + Duration::from_secs(30));
    let mut buffer = vec![0; 1 << 20];
    let ended = loop {
        match consumer.read(&mut buffer) {
            Ok(elastic::Item::Empty) => assert!(consumer.wait(watchdog), "nobody reads it"),
            Ok(elastic::Item::End) => break None,
            Ok(_) => {}
            Err(error) => break Some(error),
        }
    };
    assert!(ended.is_some(), "nothing tells that it was not read");
}

#[test]
fn what_nobody_wants_can_still_be_taken_out_of_the_set() {
    // Closed while it is watched, it would stay in the set for as long as some
    // fork has a copy, and be ready all the time.
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(b"x").unwrap();
    let (mut flow, consumer) = flow(reader, Arc::new(Wake::new().unwrap()));
    drop(consumer);
    assert!(matches!(step(&mut flow), After::Ended));
    assert!(flow.fd().is_some());
}

#[test]
fn a_fork_has_a_pump_of_its_own() {
    let held = pump();
    let child = testing::fork();
    if child == 0 {
        // The lock is held by nobody here, and for ever.
        testing::exit(i32::from(Pump::get().is_err()));
    }
    assert_eq!(testing::wait_code(child), 0);
    drop(held);
}
