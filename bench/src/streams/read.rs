//! One reader and a child that writes as fast as it can.

use std::time::Duration;

use super::{Notes, Subject, entries, ratios, rows, words};
use crate::report::Report;
use crate::round::{self, Effort, Rounds};
use crate::tools::Tools;

const FLOOR: &str = "floor-read";

/// Bytes that are read in pieces of up to 64 KiB, and thrown away.
const CHUNKS: [Subject; 13] = [
    (FLOOR, "read", &["chunks"]),
    (
        "procwright-rust-spill",
        "bench-rust-streams",
        &["chunks", "spill"],
    ),
    (
        "procwright-rust-bare",
        "bench-rust-streams",
        &["chunks", "bare"],
    ),
    ("rust-std", "bench-std-streams", &["chunks"]),
    ("tokio-read", "bench-tokio-streams", &["chunks"]),
    ("duct-reader", "bench-duct-streams", &["chunks"]),
    (
        "procwright-python-read1-spill",
        "streams_procwright.py",
        &["read1_spill"],
    ),
    (
        "procwright-python-read1-bare",
        "streams_procwright.py",
        &["read1_bare"],
    ),
    (
        "procwright-python-readinto-spill",
        "streams_procwright.py",
        &["readinto_spill"],
    ),
    (
        "procwright-python-readinto-bare",
        "streams_procwright.py",
        &["readinto_bare"],
    ),
    (
        "subprocess-read1",
        "streams_python.py",
        &["subprocess_read1"],
    ),
    (
        "subprocess-readinto",
        "streams_python.py",
        &["subprocess_readinto"],
    ),
    ("asyncio-read", "streams_python.py", &["asyncio_read"]),
];

/// Lines, each of which is looked at.
const LINES: [Subject; 15] = [
    (FLOOR, "read", &["lines"]),
    (
        "procwright-rust-spill",
        "bench-rust-streams",
        &["lines", "spill"],
    ),
    (
        "procwright-rust-bare",
        "bench-rust-streams",
        &["lines", "bare"],
    ),
    ("rust-std", "bench-std-streams", &["lines"]),
    ("tokio-read", "bench-tokio-streams", &["lines"]),
    ("duct-reader", "bench-duct-streams", &["lines"]),
    (
        "procwright-python-lines-spill",
        "streams_procwright.py",
        &["lines_spill"],
    ),
    (
        "procwright-python-lines-bare",
        "streams_procwright.py",
        &["lines_bare"],
    ),
    (
        "procwright-python-text-spill",
        "streams_procwright.py",
        &["text_spill"],
    ),
    (
        "procwright-python-text-bare",
        "streams_procwright.py",
        &["text_bare"],
    ),
    (
        "subprocess-lines",
        "streams_python.py",
        &["subprocess_lines"],
    ),
    ("subprocess-text", "streams_python.py", &["subprocess_text"]),
    ("asyncio-lines", "streams_python.py", &["asyncio_lines"]),
    ("plumbum-lines", "streams_packages.py", &["plumbum_lines"]),
    ("sh-lines", "streams_packages.py", &["sh_lines"]),
];

/// Ours, and whom they are compared with.
type Pairs = (&'static [&'static str], &'static [&'static str]);

const RUST: Pairs = (
    &["procwright-rust-spill", "procwright-rust-bare"],
    &[FLOOR, "rust-std", "tokio-read", "duct-reader"],
);

const CHUNK_PAIRS: [Pairs; 3] = [
    RUST,
    (
        &[
            "procwright-python-read1-spill",
            "procwright-python-read1-bare",
        ],
        &[FLOOR, "subprocess-read1", "asyncio-read"],
    ),
    (
        &[
            "procwright-python-readinto-spill",
            "procwright-python-readinto-bare",
        ],
        &["subprocess-readinto"],
    ),
];

const LINE_PAIRS: [Pairs; 3] = [
    RUST,
    (
        &[
            "procwright-python-lines-spill",
            "procwright-python-lines-bare",
        ],
        &["subprocess-lines", "asyncio-lines"],
    ),
    (
        &[
            "procwright-python-text-spill",
            "procwright-python-text-bare",
        ],
        &["subprocess-text", "plumbum-lines", "sh-lines"],
    ),
];

fn rounds(effort: Effort) -> Rounds {
    effort.rounds(Rounds {
        least: 1,
        most: 2,
        budget: Duration::from_secs(2),
    })
}

/// A flood, by the piece.
pub(super) fn chunks(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let mib: u64 = if effort.is_quick() { 64 } else { 1024 };
    let bytes = mib << 20;
    let entries = entries(tools, &CHUNKS);
    for kib in [4, 64] {
        let child = tools.built("flood");
        let args = words([&child.display(), &1, &bytes, &(kib << 10)]);
        let expect = [("bytes", bytes)];
        let outcome = round::go(tools, &entries, &args, &expect, rounds(effort));
        let case = format!("{mib} MiB in writes of {kib} KiB, read by the piece");
        rows(
            report,
            &case,
            &entries,
            &outcome,
            &[("seconds", "time", "s", 1.0)],
        );
        for (ours, theirs) in CHUNK_PAIRS {
            ratios(report, &case, ours, theirs, &outcome, ["seconds", "time"]);
        }
    }
}

/// Lines of 100 bytes. Buffered as the C library does it, and each by itself.
pub(super) fn lines(tools: &Tools, effort: Effort, _: &Notes, report: &mut Report) {
    let entries = entries(tools, &LINES);
    let counts: [u64; 2] = match effort {
        Effort::Quick => [200_000, 50_000],
        Effort::Rounds(_) => [2_000_000, 500_000],
    };
    for (write, count) in [4_000, 100].into_iter().zip(counts) {
        let child = tools.built("lines");
        let args = words([&child.display(), &count, &write]);
        let expect = [("bytes", 100 * count), ("lines", count)];
        let outcome = round::go(tools, &entries, &args, &expect, rounds(effort));
        let case = format!("{count} lines of 100 bytes in writes of {write}");
        // Seconds for all are microseconds for each, divided so.
        let each = count as f64 / 1e6;
        rows(
            report,
            &case,
            &entries,
            &outcome,
            &[("seconds", "time", "µs a line", each)],
        );
        for (ours, theirs) in LINE_PAIRS {
            ratios(report, &case, ours, theirs, &outcome, ["seconds", "time"]);
        }
    }
}
