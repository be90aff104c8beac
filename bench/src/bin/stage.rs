//! A child, a command as a stage behind it, and a reader that keeps nothing:
//! `bench-stage STAGE ARGUMENT… -- RATE NOTE CHILD ARGUMENT…`.
//!
//! `bare` is no stage. The reader takes RATE bytes a second evenly, 0 for as fast
//! as it can. NOTE is what `floors/ticker.c` writes down, `-` for nothing.
#![allow(clippy::disallowed_methods, reason = "an even reader sleeps")]

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use procwright_bench::subject_streams::{CHUNK, discard, notes, number, print, words};

fn start(argv: &[OsString], stdin: impl Into<Stdio>) -> Child {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(stdin).stdout(Stdio::piped());
    command.spawn().expect("spawn")
}

/// At most so many bytes a second, in pieces of a hundredth of that.
fn evenly(mut source: impl Read, rate: u64) -> u64 {
    let mut buffer = vec![0; (rate as usize / 100).clamp(4096, CHUNK)];
    let (started, mut bytes) = (Instant::now(), 0);
    loop {
        match source.read(&mut buffer).expect("read") {
            0 => return bytes,
            n => bytes += n as u64,
        }
        let due = Duration::from_secs_f64(bytes as f64 / rate as f64);
        thread::sleep(due.saturating_sub(started.elapsed()));
    }
}

fn main() {
    let words = words(0);
    let split = words.iter().position(|word| word == "--").expect("--");
    let (stage, words) = (&words[..split], &words[split + 1..]);
    let (rate, note, argv) = (number(words, 0), &words[1], &words[2..]);
    let started = Instant::now();
    let mut children = vec![start(argv, Stdio::null())];
    let mut out = children[0].stdout.take().expect("piped");
    if stage != ["bare"] {
        let mut behind = start(stage, out);
        out = behind.stdout.take().expect("piped");
        children.push(behind);
    }
    let bytes = match rate {
        0 => discard(out).bytes,
        _ => evenly(out, rate),
    };
    for child in &mut children {
        assert!(child.wait().expect("wait").success(), "a command failed");
    }
    let seconds = started.elapsed().as_secs_f64();
    let held = match note.to_str() {
        Some("-") => 0.0,
        _ => notes(note)[1],
    };
    print(&format!(
        r#"{{"seconds": {seconds:.6}, "bytes": {bytes}, "held_s": {held:.6}}}"#
    ));
}
