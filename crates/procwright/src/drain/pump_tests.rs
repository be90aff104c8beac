use std::io::{self, Write};
use std::os::fd::OwnedFd;

use super::*;
use crate::drain::Store;
use crate::spool::Overflow;
use crate::spool::elastic::{self, ElasticConsumer};
use test_support::forked as testing;

/// A stream and its reader.
fn flow(fd: impl Into<OwnedFd>, wake: Arc<Wake>) -> (PumpedDrain, ElasticConsumer) {
    flow_with(fd, wake, Box::new(|_| {}))
}

fn flow_with(
    fd: impl Into<OwnedFd>,
    wake: Arc<Wake>,
    hook: Box<dyn Fn(&elastic::Event) + Send + Sync>,
) -> (PumpedDrain, ElasticConsumer) {
    let policy = Overflow::DropNewest { memory: 64 << 10 };
    let (producer, consumer, _) = elastic::elastic(policy, wake, hook).unwrap();
    let store = Store::Elastic(Some(producer));
    let flow = Drain::new(fd.into(), None, store, Instant::now());
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
    let watchdog = Deadline::at(Instant::now() + Duration::from_secs(240));
    let mut buffer = vec![0; 1 << 20];
    let ended = loop {
        match consumer.read(&mut buffer) {
            Ok(elastic::ReadOutcome::Empty) => assert!(consumer.wait(watchdog), "nobody reads it"),
            Ok(elastic::ReadOutcome::End) => break None,
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

#[test]
fn after_a_panic_there_is_another_pump() {
    // A process of its own: other tests of this one use the pump that it kills.
    let name = "drain::pump::tests::after_a_panic_there_is_another_pump";
    test_support::alone(name, || {
        let watchdog = Deadline::at(Instant::now() + Duration::from_secs(240));
        let (reader, mut writer) = io::pipe().unwrap();
        let pump = Pump::get().unwrap();
        let hook = Box::new(|_: &elastic::Event| panic!("for the test"));
        let (bad, mut consumer) = flow_with(reader, pump.wake(), hook);
        let _bad = pump.take(bad);
        // More than is kept, so that the hook is told of bytes that are dropped.
        let _ = writer.write_all(&vec![0; 1 << 20]);
        let mut buffer = vec![0; 1 << 20];
        while let Ok(item) = consumer.read(&mut buffer) {
            assert_ne!(item, elastic::ReadOutcome::End);
            assert!(consumer.wait(watchdog), "its reader was not told");
        }
        while !pump.0.orders().ended {
            assert!(
                !watchdog.reached(Instant::now()),
                "it has not said that it died"
            );
            std::thread::yield_now();
        }
        let (reader, mut writer) = io::pipe().unwrap();
        let pump = Pump::get().unwrap();
        let (good, mut consumer) = flow(reader, pump.wake());
        let _good = pump.take(good);
        writer.write_all(b"x").unwrap();
        assert!(consumer.wait(watchdog), "nobody reads it");
        assert_eq!(
            consumer.read(&mut buffer).unwrap(),
            elastic::ReadOutcome::Bytes(1)
        );
    });
}

#[test]
fn a_stream_at_its_end_keeps_no_pump() {
    let (reader, writer) = io::pipe().unwrap();
    let pump = Pump::get().unwrap();
    let (flow, mut consumer) = flow(reader, pump.wake());
    let taken = pump.take(flow);
    let (wake, shared) = (Arc::downgrade(&pump.wake()), Arc::downgrade(&pump.0));
    drop((writer, pump));
    let watchdog = Deadline::at(Instant::now() + Duration::from_secs(240));
    while shared.upgrade().is_some() || wake.upgrade().is_some() {
        // Other tests of this process may use it meanwhile.
        assert!(!watchdog.reached(Instant::now()), "something keeps it");
        std::thread::yield_now();
    }
    assert_eq!(
        consumer.read(&mut [0; 8]).unwrap(),
        elastic::ReadOutcome::End
    );
    taken.leave();
}
