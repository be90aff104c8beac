//! Ours from Rust: `bench-rust-close bare|spill others|waiters|epipe …`, whose
//! arguments and results are said in `src/streams/close.rs`.
#![allow(
    clippy::disallowed_methods,
    reason = "who measures has to let the others fall asleep"
)]

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use procwright::stream::{Closed, Reader};
use procwright::{Command, Overflow, Sink};
use procwright_bench::subject_streams::{print, words};
use procwright_bench::subject_wait::{now_ns, raise_nofile};

/// Between two samples, for the reader to fall asleep.
const REST: Duration = Duration::from_millis(2);

/// Enough for a reader, and little enough for ten thousand.
const STACK: usize = 64 << 10;

/// A pipe in one descriptor that is both of its ends: two for each stream, and
/// one that wakes, would be more than a process may have.
fn pipe() -> OwnedFd {
    let (read, _write) = std::io::pipe().expect("pipe");
    let path = format!("/proc/self/fd/{}", read.as_raw_fd());
    let both = OpenOptions::new().read(true).write(true).open(path);
    both.expect("the pipe").into()
}

fn open(overflow: Option<Overflow>) -> Reader {
    let opened = match overflow {
        None => Reader::from_fd(pipe()),
        Some(overflow) => Reader::from_fd_with(pipe(), overflow),
    };
    opened.expect("a stream")
}

/// A thread that is about to block in a read, which is to fail by a close.
fn blocked(mut reader: Reader, begun: &Arc<AtomicUsize>) -> JoinHandle<()> {
    let begun = Arc::clone(begun);
    let read = move || {
        begun.fetch_add(1, Ordering::SeqCst);
        let error = reader.read(&mut [0]).expect_err("nothing comes");
        assert!(Closed::is(&error), "{error}");
    };
    let builder = thread::Builder::new().stack_size(STACK);
    builder.spawn(read).expect("a thread")
}

/// Until all have begun and then are asleep.
fn settle(begun: &AtomicUsize, count: usize) {
    while begun.load(Ordering::SeqCst) < count {
        thread::sleep(REST);
    }
    thread::sleep(Duration::from_millis(20 + count as u64 / 20));
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn others(overflow: Option<Overflow>, count: usize, samples: usize) -> ! {
    let begun = Arc::default();
    let one = || {
        let reader = open(overflow);
        let thread = blocked(reader.clone(), &begun);
        (reader, thread)
    };
    let mut all: Vec<_> = (0..count).map(|_| one()).collect();
    settle(&begun, count);
    let mut closes = Vec::new();
    for sample in 0..samples {
        let place = sample % 10 * (count / 10);
        let started = Instant::now();
        let first = all[place].0.close();
        closes.push(us(started.elapsed()));
        assert!(first, "it was closed before");
        let (old, thread) = std::mem::replace(&mut all[place], one());
        drop(old);
        thread.join().expect("the reader");
        thread::sleep(REST);
    }
    print(&format!(r#"{{"close_us": {closes:?}, "count": {count}}}"#));
    // The others are blocked for good.
    std::process::exit(0)
}

fn waiters(overflow: Option<Overflow>, count: usize, samples: usize) {
    let (mut closes, mut lasts) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let begun = Arc::default();
        let reader = open(overflow);
        let threads: Vec<_> = (0..count)
            .map(|_| blocked(reader.clone(), &begun))
            .collect();
        settle(&begun, count);
        let started = Instant::now();
        reader.close();
        closes.push(us(started.elapsed()));
        for thread in threads {
            thread.join().expect("the reader");
        }
        lasts.push(us(started.elapsed()));
    }
    print(&format!(
        r#"{{"close_us": {closes:?}, "last_us": {lasts:?}, "count": {count}}}"#
    ));
}

fn epipe(overflow: Option<Overflow>, samples: usize, argv: &[OsString]) {
    let mut late = Vec::new();
    for _ in 0..samples {
        let command = Command::new(&argv[0])
            .args(&argv[1..])
            .stderr(Sink::Inherit);
        let mut child = command.spawn_with(overflow).expect("spawn");
        let mut stdout = child.stdout.take().expect("captured");
        stdout.read_exact(&mut [0; 2]).expect("its first line");
        let begun = Arc::default();
        let reader = blocked(stdout.clone(), &begun);
        settle(&begun, 1);
        let closed = now_ns();
        stdout.close();
        reader.join().expect("the reader");
        let exit = child.wait(None).expect("wait").expect("no timeout");
        assert!(exit.success(), "the child failed: {exit:?}");
        let note = std::fs::read(&argv[1]).expect("the note");
        let learned = u64::from_le_bytes(note.try_into().expect("eight bytes"));
        late.push(learned.saturating_sub(closed) as f64 / 1e3);
    }
    print(&format!(r#"{{"epipe_us": {late:?}, "count": {samples}}}"#));
}

fn main() {
    raise_nofile();
    let words = words(0);
    let text = |at: usize| words[at].to_str().expect("a word");
    let number = |at: usize| text(at).parse().expect("a number");
    let overflow = match text(0) {
        "bare" => None,
        "spill" => Some(Overflow::default()),
        _ => panic!("bare or spill"),
    };
    match text(1) {
        "others" => others(overflow, number(2), number(3)),
        "waiters" => waiters(overflow, number(2), number(3)),
        "epipe" => epipe(overflow, number(2), &words[3..]),
        other => panic!("no case {other}"),
    }
}
