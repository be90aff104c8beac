//! Aborts of tests that hang, and waits that only a watchdog ends.

use std::sync::mpsc;
use std::time::Duration;

use crate::{say, scaled};

/// The time after which a test hangs: five minutes, and ten under `STRESS=1`.
pub(crate) fn patience() -> Duration {
    Duration::from_secs(scaled(300, 600))
}

/// Aborts the process when the test has not ended after five minutes, ten under `STRESS=1`. Its drop ends the watch.
pub struct Watchdog(#[allow(dead_code)] mpsc::Sender<()>);

/// Starts a [`Watchdog`] for this test.
pub fn watchdog(test: &'static str) -> Watchdog {
    let (alive, gone) = mpsc::channel::<()>();
    std::thread::Builder::new()
        .name("watchdog".into())
        .spawn(move || {
            if gone.recv_timeout(patience()) == Err(mpsc::RecvTimeoutError::Timeout) {
                say(&format!("WATCHDOG: {test} hangs"));
                std::process::abort();
            }
        })
        .expect("a watchdog thread");
    Watchdog(alive)
}

/// What `attempt` has come to within some time, which is longer each time that this did not
/// suffice: a busy machine needs longer until a program has begun, or has said something.
pub fn in_time<T>(first: Duration, mut attempt: impl FnMut(Duration) -> Option<T>) -> T {
    let mut time = first;
    loop {
        if let Some(found) = attempt(time) {
            return found;
        }
        assert!(time < patience() / 4, "{time:?} did not suffice");
        time *= 5;
    }
}

/// Polls for something that no event announces. A watchdog ends the wait.
pub fn eventually(mut happened: impl FnMut() -> bool) {
    while !happened() {
        std::thread::yield_now();
    }
}
