//! Ours from Rust: `bench-rust-streams chunks|lines spill|bare CHILD …`.

use std::ffi::OsString;

use procwright::stream::{Framing, Item, LineReader, Patience, Reader};
use procwright::{Child, Command, Overflow, Sink};
use procwright_bench::subject_streams::{self as streams, Seen};

fn start(argv: &[OsString], overflow: Option<Overflow>) -> (Child, Reader) {
    let command = Command::new(&argv[0])
        .args(&argv[1..])
        .stderr(Sink::Inherit);
    let mut child = command.spawn_with(overflow).expect("spawn");
    let stdout = child.stdout.take().expect("captured");
    (child, stdout)
}

/// Without a copy and without memory for each line.
fn lines(stdout: Reader) -> Seen {
    let reader = LineReader::new(stdout, Framing::default()).expect("a framing");
    let mut seen = Seen::default();
    loop {
        let more = reader.try_line(usize::MAX, |item| match item {
            Item::Line(line) => {
                seen.line(line);
                true
            }
            _ => false,
        });
        match more.expect("read") {
            Some(true) => {}
            Some(false) => return seen,
            None => reader
                .await_line(usize::MAX, Patience::NEVER_ENDING)
                .expect("read"),
        }
    }
}

fn main() {
    let [what, how] = [1, 2].map(|at| std::env::args().nth(at).unwrap_or_default());
    let overflow = match how.as_str() {
        "spill" => Some(Overflow::default()),
        "bare" => None,
        _ => panic!("spill or bare"),
    };
    let read: fn(Reader) -> Seen = match what.as_str() {
        "chunks" => streams::discard,
        "lines" => lines,
        _ => panic!("chunks or lines"),
    };
    streams::measure(2, |argv| {
        let (child, stdout) = start(argv, overflow);
        let seen = read(stdout);
        let exit = child.wait(None).expect("wait");
        assert!(exit.is_some_and(|exit| exit.success()), "the child failed");
        seen
    });
}
