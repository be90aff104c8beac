//! Aborts of tests that hang, and waits that only a watchdog ends.

use std::sync::mpsc;
use std::time::Duration;

use crate::{say, scaled};

/// Aborts the process when the test has not ended in two minutes (ten under
/// `STRESS=1`). Its drop ends the watch.
pub struct Watchdog(#[allow(dead_code)] mpsc::Sender<()>);

/// Starts a [`Watchdog`] for this test.
pub fn watchdog(test: &'static str) -> Watchdog {
    let (alive, gone) = mpsc::channel::<()>();
    let patience = Duration::from_secs(scaled(120, 600));
    std::thread::Builder::new()
        .name("watchdog".into())
        .spawn(move || {
            if gone.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
                say(&format!("WATCHDOG: {test} hangs"));
                std::process::abort();
            }
        })
        .expect("a watchdog thread");
    Watchdog(alive)
}

/// Polls for something that no event announces. A watchdog ends the wait.
pub fn eventually(mut happened: impl FnMut() -> bool) {
    while !happened() {
        std::thread::yield_now();
    }
}
