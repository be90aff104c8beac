//! Limits of the kept output: head and tail, failing, everything in a file.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{Census, child, scaled, stopped};
use procwright::process::{Exit, Stop};
use procwright::{Beyond, BoxError, Limit, Output, Piece, Reason, StdStream, Tap, Until};
use test_children::{Pattern, Stream};
use test_support::alone;

fn head_and_tail(bytes: u64) -> Limit {
    Limit {
        bytes,
        beyond: Beyond::HeadAndTail,
    }
}

fn fail(bytes: u64) -> Limit {
    Limit {
        bytes,
        beyond: Beyond::Fail,
    }
}

fn pattern(stream: Stream, length: u64) -> Vec<u8> {
    (0..length)
        .map(|offset| test_children::pattern_byte(stream, offset))
        .collect()
}

#[track_caller]
fn keeps_both_ends(output: &Output, size: u64, limit: u64) {
    let pairs = [
        (Stream::Stdout, &output.stdout, &output.report.stdout_info),
        (Stream::Stderr, &output.stderr, &output.report.stderr_info),
    ];
    for (stream, kept, info) in pairs {
        let info = info.as_ref().unwrap();
        let what = format!("{stream:?}: {size} bytes under {limit}");
        let all = pattern(stream, size.min(4 << 20));
        let at = |offset: u64| usize::try_from(offset).unwrap();
        if size <= limit {
            assert_eq!(kept, &all, "{what}");
            assert_eq!(info.dropped_at, None, "{what}");
        } else {
            let (head, tail) = (limit - limit / 2, limit / 2);
            assert_eq!(kept.len() as u64, limit, "{what}");
            assert_eq!(kept[..at(head)], all[..at(head)], "{what}: the head");
            let tail_pattern = Pattern::new(stream, at(tail).max(1));
            assert_eq!(
                &kept[at(head)..],
                tail_pattern.slice(size - tail, at(tail)),
                "{what}: the tail"
            );
            assert_eq!(info.dropped_at, Some(head), "{what}");
        }
        assert_eq!(
            (info.bytes, info.kept_bytes),
            (size, size.min(limit)),
            "{what}"
        );
        assert_eq!(info.dropped_bytes, size.saturating_sub(limit), "{what}");
        assert!(info.complete, "{what}");
    }
}

#[test]
fn both_ends_are_exact() {
    let _dog = common::watchdog("both_ends_are_exact");
    let sizes = [0_u64, 1, 2, 1000, 70_000, 1_000_003];
    for limit in [0_u64, 1, 2, 3, 999, 1000, 1001, 65_537, 600_001, 1 << 20] {
        for size in sizes {
            let text = size.to_string();
            let output = child(&["flood", "--out", &text, "--err", &text, "--chunk", "5000"])
                .limit(head_and_tail(limit))
                .run()
                .unwrap();
            assert!(output.success());
            keeps_both_ends(&output, size, limit);
        }
    }
}

#[test]
fn failing_stops_the_program_and_keeps_the_beginning() {
    let _dog = common::watchdog("failing_stops_the_program_and_keeps_the_beginning");
    for limit in [0_u64, 1, 4097, 1_000_001] {
        for (stream, args) in [
            (Stream::Stdout, &["flood-forever"][..]),
            (Stream::Stderr, &["flood-forever", "--err"]),
        ] {
            let output = stopped(child(args).limit(fail(limit)).run());
            assert_eq!(output.report.reason, Reason::OutputLimit);
            assert!(!common::lives(output.report.pid));
            let (kept, info) = match stream {
                Stream::Stdout => (&output.stdout, &output.report.stdout_info),
                Stream::Stderr => (&output.stderr, &output.report.stderr_info),
            };
            assert!(kept.len() as u64 == limit && kept.iter().all(|b| *b == b'.'));
            let info = info.as_ref().unwrap();
            assert!(info.bytes > limit && !info.complete);
            assert_eq!(
                (info.kept_bytes, info.dropped_bytes, info.dropped_at),
                (limit, info.bytes - limit, Some(limit))
            );
        }
    }
    // Output of exactly the limit is not beyond it.
    for limit in [0_u64, 1, 5000, 300_000] {
        let text = limit.to_string();
        let output = child(&["flood", "--out", &text, "--err", &text])
            .limit(fail(limit))
            .run()
            .unwrap();
        assert_eq!(output.stdout, pattern(Stream::Stdout, limit));
        assert_eq!(output.report.stdout_info.unwrap().dropped_bytes, 0);
    }
    // Both streams flood.
    let output = stopped(
        child(&["flood", "--out", "1G", "--err", "1G"])
            .limit(fail(8 << 20))
            .run(),
    );
    assert_eq!(output.report.reason, Reason::OutputLimit);
    assert_eq!(output.stdout.len().max(output.stderr.len()), 8 << 20);
}

/// A tap that counts what it gets.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicU64>);

impl Counted {
    fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tap for Counted {
    fn piece(&mut self, piece: Piece<'_>) -> Result<(), BoxError> {
        let bytes = piece.bytes.len() as u64;
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// The program ignores SIGTERM, and ends once it has written all: if its pipe is read to the end.
#[test]
fn what_comes_beyond_a_failing_limit_is_read_and_goes_to_nobody() {
    let _dog = common::watchdog("what_comes_beyond_a_failing_limit_is_read_and_goes_to_nobody");
    const ALL: u64 = 8 << 20;
    let dir = tempfile::tempdir().unwrap();
    for limit in [0_u64, 1, 70_000, 1 << 20] {
        for (stream, args) in [
            (Stream::Stdout, ["flood", "--out", "8M", "--ignore-term"]),
            (Stream::Stderr, ["flood", "--err", "8M", "--ignore-term"]),
        ] {
            let path = dir.path().join("full");
            let file = match stream {
                Stream::Stdout => path.clone(),
                Stream::Stderr => dir.path().join("full.stderr"),
            };
            let of = match stream {
                Stream::Stdout => StdStream::Stdout,
                Stream::Stderr => StdStream::Stderr,
            };
            let (tap, both) = (Counted::default(), Counted::default());
            let lines = Arc::new(AtomicU64::new(0));
            let counts = Arc::clone(&lines);
            let count_line = move |line: &[u8]| {
                counts.fetch_add(line.len() as u64, Ordering::Relaxed);
                Ok(())
            };
            let flood = child(&args);
            let flood = match of {
                StdStream::Stdout => flood.on_stdout_line(count_line),
                StdStream::Stderr => flood.on_stderr_line(count_line),
            };
            let output = flood
                .limit(fail(limit))
                .stop(Stop::new().with_grace(Duration::MAX))
                .keep_full(&path)
                .tap_stream(of, Box::new(tap.clone()))
                .tap_both(Box::new(both.clone()))
                .run();
            let output = stopped(output);
            assert_eq!(output.report.reason, Reason::OutputLimit);
            assert_eq!(output.report.status, Exit::Code(0));
            let (kept, info) = match stream {
                Stream::Stdout => (&output.stdout, &output.report.stdout_info),
                Stream::Stderr => (&output.stderr, &output.report.stderr_info),
            };
            assert_eq!(kept, &pattern(stream, limit));
            let info = info.as_ref().unwrap();
            assert_eq!((info.bytes, info.kept_bytes), (ALL, limit));
            assert_eq!(
                (info.dropped_bytes, info.undelivered_bytes),
                (ALL - limit, 0)
            );
            let got = [tap.bytes(), both.bytes(), lines.load(Ordering::Relaxed)];
            assert_eq!(got, [limit; 3], "{stream:?}");
            assert_eq!(std::fs::read(file).unwrap(), pattern(stream, limit));
            let error = info.kept_error.as_ref().unwrap();
            assert!(error.starts_with("it ends at the limit"), "{error}");
        }
    }
}

/// Whether or not there was a stop: what is left out is told.
#[test]
fn a_program_that_has_ended_has_written_too_much_as_well() {
    let _dog = common::watchdog("a_program_that_has_ended_has_written_too_much_as_well");
    for until in [Until::Eof, Until::Exit] {
        for _ in 0..5 {
            let flood = child(&["flood", "--out", "1001"]);
            let output = stopped(flood.until(until).limit(fail(1000)).run());
            assert_eq!(output.report.reason, Reason::OutputLimit);
            assert_eq!(output.stdout, pattern(Stream::Stdout, 1000));
        }
    }
}

#[test]
fn everything_is_kept_in_a_file() {
    let _dog = common::watchdog("everything_is_kept_in_a_file");
    let size: u64 = scaled(40 << 20, 400 << 20);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let text = size.to_string();
    let output = child(&["flood", "--out", &text, "--err", &text])
        .limit(head_and_tail(1001))
        .keep_full(&path)
        .run()
        .unwrap();
    keeps_both_ends(&output, size, 1001);
    let beside = dir.path().join("log.stderr");
    for (stream, path, info) in [
        (Stream::Stdout, path, output.report.stdout_info.unwrap()),
        (Stream::Stderr, beside, output.report.stderr_info.unwrap()),
    ] {
        let all = std::fs::read(&path).unwrap();
        assert_eq!(
            (
                all.len() as u64,
                Pattern::new(stream, 1 << 20).mismatch(0, &all)
            ),
            (size, None)
        );
        assert_eq!((info.kept_at, info.kept_error), (Some(path), None));
    }
}

alone! {
    fn a_full_disk_is_reported() {
        let before = Census::now();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let output = child(&["flood", "--out", "40M", "--err", "1M"]).keep_full(&path).run().unwrap();
        let (out, err) = (output.report.stdout_info.as_ref().unwrap(), output.report.stderr_info.as_ref().unwrap());
        assert!(out.kept_error.as_ref().unwrap().contains("No space"), "{out:?}");
        assert_eq!(out.kept_at.as_ref(), Some(&path));
        assert_eq!((err.kept_error.as_ref(), out.bytes), (None, 40 << 20));
        assert_eq!(output.stdout, pattern(Stream::Stdout, 40 << 20));
        assert!(output.report.explain(b"").contains("not whole"));
        before.comes_back();
    }
}

alone! {
    fn a_long_flood_under_a_small_limit() {
        let size: u64 = scaled(2 << 30, 10 << 30);
        let base = common::reset_peak();
        let (output, took) = common::timed(|| {
            child(&["flood", "--out", &size.to_string()]).limit(head_and_tail(1 << 20)).run().unwrap()
        });
        let grown = common::status_bytes("VmHWM") - base;
        common::figure(&format!("{} MiB under 1 MiB: {took:?}, memory grew by {} KiB", size >> 20, grown >> 10));
        assert!(grown <= 32 << 20, "{grown}");
        let info = output.report.stdout_info.as_ref().unwrap();
        assert_eq!((info.bytes, info.kept_bytes, info.dropped_bytes), (size, 1 << 20, size - (1 << 20)));
        let half = 1_usize << 19;
        let pattern = Pattern::new(Stream::Stdout, half);
        assert_eq!(&output.stdout[..half], pattern.slice(0, half));
        assert_eq!(&output.stdout[half..], pattern.slice(size - half as u64, half));
    }
}
