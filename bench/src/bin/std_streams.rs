//! Peer: std's own `Child::stdout`: `bench-std-streams chunks|lines CHILD …`.

use std::process::{ChildStdout, Command, Stdio};

use procwright_bench::subject_streams::{self as streams, Seen};

fn main() {
    let read: fn(ChildStdout) -> Seen = match std::env::args().nth(1).as_deref() {
        Some("chunks") => streams::discard,
        Some("lines") => streams::lines,
        _ => panic!("chunks or lines"),
    };
    streams::measure(1, |argv| {
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .stdout(Stdio::piped())
            .spawn()
            .expect("spawn");
        let seen = read(child.stdout.take().expect("piped"));
        assert!(child.wait().expect("wait").success(), "the child failed");
        seen
    });
}
