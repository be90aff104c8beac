//! Ours from Rust: `bench-rust-slow spill|block|bare lines|many …`.
//!
//! - `lines PAUSE_MS TICKER NOTE COUNT SIZE STEP_US`: a reader that takes so long
//!   for each line.
//! - `many N IDLE_MS TICKER - COUNT SIZE STEP_US 2`: so many children that write to
//!   both streams and then are idle.
#![allow(
    clippy::disallowed_methods,
    reason = "a slow reader sleeps, and nobody is to be woken"
)]

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use procwright::stream::Reader;
use procwright::{Child, Command, Overflow, Sink, Stdin};
use procwright_bench::subject_streams::{notes, number, print, words};
use procwright_bench::subject_wait::raise_nofile;
use procwright_bench::tasks::{Tasks, flow};

fn reap(child: &Child) {
    let exit = child.wait(None).expect("wait");
    assert!(exit.is_some_and(|exit| exit.success()), "the child failed");
}

fn lines(overflow: Option<Overflow>, words: &[OsString]) {
    let (pause, argv) = (Duration::from_millis(number(words, 0)), &words[1..]);
    let command = Command::new(&argv[0])
        .args(&argv[1..])
        .stderr(Sink::Inherit);
    let mut child = command.spawn_with(overflow).expect("spawn");
    let reader = child.stdout.take().expect("captured");
    let mut source = BufReader::new(reader.clone());
    let (mut line, mut count, mut bytes, mut paused) = (Vec::new(), 0, 0, Duration::ZERO);
    while source.read_until(b'\n', &mut line).expect("read") > 0 {
        let in_order = line.starts_with(format!("{count:010}").as_bytes());
        assert!(in_order, "line {count} is another");
        count += 1;
        bytes += line.len();
        line.clear();
        let started = Instant::now();
        thread::sleep(pause);
        paused += started.elapsed();
    }
    reap(&child);
    let blocked = reader
        .blocked()
        .expect("known while it is open")
        .as_secs_f64();
    let [life, held] = notes(&argv[1]);
    print(&format!(
        r#"{{"child_s": {life:.6}, "held_s": {held:.6}, "blocked_s": {blocked:.6}, "paused_s": {:.6}, "lines": {count}, "bytes": {bytes}}}"#,
        paused.as_secs_f64()
    ));
}

/// Until all is here that will be written: nothing is to be told any more.
fn await_all(stream: Option<&Reader>, bytes: u64) {
    let figures = || stream.and_then(Reader::figures).expect("it is read ahead");
    while figures().bytes_in < bytes {
        thread::sleep(Duration::from_millis(10));
    }
}

fn many(overflow: Option<Overflow>, words: &[OsString]) {
    let (count, idle, argv) = (number(words, 0), number(words, 1), &words[2..]);
    let expected = number(argv, 2) * number(argv, 3);
    let (gate, opener) = std::io::pipe().expect("pipe");
    let gate = OwnedFd::from(gate);
    let before = Tasks::now();
    let started = Instant::now();
    let start = || {
        let gate = gate.try_clone().expect("the gate");
        let command = Command::new(&argv[0]).args(&argv[1..]);
        let command = command.stdin(Stdin::Fd(gate.into()));
        command.spawn_with(overflow).expect("spawn")
    };
    let mut children: Vec<_> = (0..count).map(|_| start()).collect();
    let spawned = started.elapsed();
    for child in &children {
        await_all(child.stdout.as_ref(), expected);
        await_all(child.stderr.as_ref(), expected);
    }
    let flowed = Tasks::now();
    let seconds = started.elapsed();
    thread::sleep(Duration::from_millis(idle));
    let rested = Tasks::now();
    drop(opener);
    let mut bytes = 0;
    for child in &mut children {
        for stream in [child.stdout.take(), child.stderr.take()] {
            let mut data = Vec::new();
            let mut stream = stream.expect("captured");
            stream.read_to_end(&mut data).expect("read");
            bytes += data.len() as u64;
        }
        reap(child);
    }
    let times = [spawned, seconds].map(|time| time.as_secs_f64());
    print(&flow(bytes, times, [before, flowed, rested]));
}

fn main() {
    raise_nofile();
    let words = words(0);
    let overflow = match words[0].to_str() {
        Some("spill") => Some(Overflow::default()),
        // As much as a pipe has.
        Some("block") => Some(Overflow::Block { memory: 64 << 10 }),
        Some("bare") => None,
        _ => panic!("spill, block or bare"),
    };
    match words[1].to_str() {
        Some("lines") => lines(overflow, &words[2..]),
        Some("many") => many(overflow, &words[2..]),
        _ => panic!("lines or many"),
    }
}
