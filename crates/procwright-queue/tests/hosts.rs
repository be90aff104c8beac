//! Queues in hosts whose signal handlers do not run by themselves.

use std::time::{Duration, Instant};

use procwright_queue::{Error, Options};

#[test]
fn a_wait_for_room_goes_on_until_it_may_not() {
    let mut receiver = Options::new().fixed(4096).create().unwrap();
    let mut sender = receiver.sender().unwrap();
    let most = 4096 - 72;
    assert!(
        sender
            .wait_for_room(most, Duration::MAX, || unreachable!())
            .unwrap()
    );
    sender.send(&vec![7; most]).unwrap();
    let mut asked = 0;
    let waited = sender.wait_for_room(1, Duration::MAX, || {
        asked += 1;
        asked < 2
    });
    // The sleep in between ends without a signal, too.
    assert!(!waited.unwrap() && asked == 2);
    let begun = Instant::now();
    let waited = sender.wait_for_room(1, Duration::from_millis(20), || true);
    assert!(matches!(waited, Err(Error::TimedOut)));
    assert!(begun.elapsed() >= Duration::from_millis(20));

    let there = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let there = sender.wait_for_room(most, Duration::MAX, || true);
            sender.try_send(&vec![8; most]).unwrap();
            there.unwrap()
        });
        assert_eq!(receiver.recv().unwrap(), vec![7; most]);
        assert_eq!(receiver.recv().unwrap(), vec![8; most]);
        waiting.join().unwrap()
    });
    assert!(there);
    drop(receiver);
    let waited = sender.wait_for_room(1, Duration::MAX, || true);
    assert!(matches!(waited, Err(Error::Closed)));
}

#[test]
fn a_view_comes_within_the_time_or_not() {
    let mut receiver = Options::new().create().unwrap();
    let mut sender = receiver.sender().unwrap();
    assert!(matches!(
        receiver.recv_view_timeout(Duration::from_millis(5)),
        Err(Error::TimedOut)
    ));
    sender.send(b"there").unwrap();
    assert_eq!(
        &*receiver.recv_view_timeout(Duration::ZERO).unwrap(),
        b"there"
    );
}
