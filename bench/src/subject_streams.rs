//! What the subjects of the suite `streams` in Rust share. Used by peers outside
//! the workspace too, so it stands on `std` alone.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::time::Instant;

/// What a reader asks for at once.
pub const CHUNK: usize = 64 << 10;

/// What a reader has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Bytes of all kinds.
    pub bytes: u64,
    /// Lines, where they were looked for.
    pub lines: u64,
}

impl Seen {
    /// A line, with or without its separator.
    pub fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        self.bytes += line.len() as u64;
    }
}

/// The arguments behind the first `skip`.
pub fn words(skip: usize) -> Vec<OsString> {
    std::env::args_os().skip(1 + skip).collect()
}

/// A number among the words.
pub fn number(words: &[OsString], at: usize) -> u64 {
    let word = words.get(at).and_then(|word| word.to_str());
    word.and_then(|word| word.parse().ok())
        .expect("a number among the arguments")
}

/// What `floors/ticker.c` has written down, in seconds: its life, and what of it
/// was spent inside write.
pub fn notes(path: impl AsRef<Path>) -> [f64; 2] {
    let note = std::fs::read(path).expect("the note");
    let note: &[u8; 16] = note.first_chunk().expect("sixteen bytes");
    [0, 8].map(|at| {
        let bytes = note[at..at + 8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes) as f64 / 1e9
    })
}

/// Times `read(argv)`, which starts the child, reads it to its end and reaps it:
/// `CHILD ARGUMENT…`, behind `skip` words that the subject reads itself.
pub fn measure(skip: usize, read: impl FnOnce(&[OsString]) -> Seen) {
    let argv = words(skip);
    let started = Instant::now();
    let seen = read(&argv);
    let seconds = started.elapsed().as_secs_f64();
    print(&format!(
        r#"{{"seconds": {seconds:.6}, "bytes": {}, "lines": {}, "peak_rss_kb": {}}}"#,
        seen.bytes,
        seen.lines,
        peak_rss_kb()
    ));
}

/// Reads to the end and keeps nothing.
pub fn discard(mut source: impl Read) -> Seen {
    let mut buffer = vec![0; CHUNK];
    let mut seen = Seen::default();
    loop {
        match source.read(&mut buffer).expect("read") {
            0 => return seen,
            n => seen.bytes += n as u64,
        }
    }
}

/// The lines as std reads them, in one piece of memory for all.
pub fn lines(source: impl Read) -> Seen {
    let mut source = BufReader::with_capacity(CHUNK, source);
    let mut line = Vec::new();
    let mut seen = Seen::default();
    while source.read_until(b'\n', &mut line).expect("read") > 0 {
        seen.line(&line);
        line.clear();
    }
    seen
}

/// A line of JSON.
pub fn print(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("stdout");
}

fn peak_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
