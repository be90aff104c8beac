//! Readers that are slower than the program, and what must not follow from that.

#![allow(clippy::disallowed_methods)] // Slowness is what is tested.

mod common;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use common::child;
use procwright::{BoxError, Memory, Piece, StdStream, Tap, Until};

/// Memory so slow that the writers always fill the pipe again before the next read.
struct Slow(Vec<u8>);

impl Memory for Slow {
    fn new() -> Slow {
        Slow(Vec::new())
    }
    fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        self.0.clear();
        let n = self.0.read_from(fd, max);
        std::thread::sleep(Duration::from_millis(3));
        n
    }
    fn as_bytes(&self) -> &[u8] {
        &self.0
    }
    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        Memory::push(&mut self.0, bytes)
    }
    fn finish(&mut self) {}
}

#[test]
fn a_flood_on_the_second_thread_does_not_hold_up_the_end() {
    let _dog = common::watchdog("a_flood_on_the_second_thread_does_not_hold_up_the_end");
    // The second thread once looked for its order to end only when its pipe was empty,
    // so the run ended when the flooders did. Flooders that still hold the pipe show
    // that the run did not wait for them.
    let done = child(&["fork-flooders", "3"])
        .until(Until::Exit)
        .run_into::<Slow>()
        .unwrap();
    assert!(done.report.success());
    assert!(!done.report.stderr_info.unwrap().held_by.is_empty());
}

struct SleepOnce(Option<Duration>);

impl Tap for SleepOnce {
    fn piece(&mut self, _: Piece<'_>) -> Result<(), BoxError> {
        if let Some(time) = self.0.take() {
            std::thread::sleep(time);
        }
        Ok(())
    }
}

fn sleep_once(seconds: u64) -> Box<SleepOnce> {
    Box::new(SleepOnce(Some(Duration::from_secs(seconds))))
}

#[test]
fn time_blocked_by_a_slow_callback_is_counted() {
    // The wake-up of a held stream was once taken for a sleep on an empty pipe, and all
    // but the last millisecond was forgotten.
    let done = child(&["flood", "--out", "40M"])
        .tap_stream(StdStream::Stdout, sleep_once(2))
        .run()
        .unwrap();
    let blocked = done.report.stdout_info.unwrap().blocked.unwrap();
    assert!(blocked > Duration::from_secs(1), "{blocked:?}");
}

#[test]
fn a_slow_callback_is_not_the_programs_silence() {
    // The old silence was once counted between the wake-up and the read.
    let done = child(&["flood", "--out", "40M"])
        .tap_stream(StdStream::Stdout, sleep_once(5))
        // Longer than a busy machine needs for the next piece.
        .idle_timeout(Duration::from_secs(4))
        .run()
        .unwrap();
    assert_eq!(done.stdout.len(), 40 << 20);
}
