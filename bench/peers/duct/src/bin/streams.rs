//! Peer: duct's `reader()`: `streams chunks|lines CHILD …`.
#[path = "../../../../src/subject_streams.rs"]
#[allow(dead_code)]
mod streams;

use duct::ReaderHandle;
use streams::Seen;

fn main() {
    let read: fn(&ReaderHandle) -> Seen = match std::env::args().nth(1).as_deref() {
        Some("chunks") => |handle| streams::discard(handle),
        Some("lines") => |handle| streams::lines(handle),
        _ => panic!("chunks or lines"),
    };
    // The end of its output is an error if the child has failed.
    streams::measure(1, |argv| read(&duct::cmd(&argv[0], &argv[1..]).reader().expect("start")));
}
