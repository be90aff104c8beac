//! The child of a slow reader without one: `bench-alone PAUSE_MS TICKER NOTE COUNT SIZE …`.

use std::process::{Command, Stdio};

use procwright_bench::subject_streams::{notes, number, print, words};

fn main() {
    let words = words(0);
    let mut child = Command::new(&words[1]);
    child
        .args(&words[2..])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    assert!(child.status().expect("spawn").success(), "the child failed");
    let [life, held] = notes(&words[2]);
    let (lines, size) = (number(&words, 3), number(&words, 4));
    print(&format!(
        r#"{{"child_s": {life:.6}, "held_s": {held:.6}, "lines": {lines}, "bytes": {}}}"#,
        lines * size
    ));
}
