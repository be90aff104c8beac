//! A program's input: bytes, a file, an iterator, a reader, or nothing.

mod common;

use std::io::Read;
use std::sync::mpsc;
use std::time::Duration;
use test_support::alone;

use bytes::Bytes;
use common::{Census, child, shared, stopped, sys};
use procwright::process::Stop;
use procwright::{Error, Foreign, Reason, Stdin};
use test_children::{Pattern, Stream};

const CHUNK: usize = 1 << 20;

/// A reader of the pattern.
struct PatternReader {
    pattern: Pattern,
    at: u64,
    end: u64,
}

impl PatternReader {
    fn new(end: u64) -> PatternReader {
        PatternReader {
            pattern: Pattern::new(Stream::Stdout, CHUNK),
            at: 0,
            end,
        }
    }
}

impl Read for PatternReader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = into
            .len()
            .min(usize::try_from(self.end - self.at).unwrap())
            .min(CHUNK);
        into[..n].copy_from_slice(self.pattern.slice(self.at, n));
        self.at += n as u64;
        Ok(n)
    }
}

#[track_caller]
fn is_pattern(bytes: &[u8], length: u64) {
    assert_eq!(bytes.len() as u64, length);
    let pattern = Pattern::new(Stream::Stdout, CHUNK);
    assert_eq!(pattern.mismatch(0, bytes), None);
}

#[test]
fn a_lot_comes_back_identical() {
    let _dog = common::watchdog("a_lot_comes_back_identical");
    let length = common::scaled(256 << 20, 1 << 30);
    let mut reader = PatternReader::new(length);
    let mut all = Vec::with_capacity(usize::try_from(length).unwrap());
    reader.read_to_end(&mut all).unwrap();
    let (output, took) = common::timed(|| child(&["cat"]).stdin_bytes(all).run().unwrap());
    common::figure(&format!("{} MiB through cat in {took:?}", length >> 20));
    is_pattern(&output.stdout, length);
}

#[test]
fn every_kind_of_input() {
    let _dog = common::watchdog("every_kind_of_input");
    let length = 20_000_003;
    let mut all = Vec::new();
    PatternReader::new(length).read_to_end(&mut all).unwrap();
    let reader = child(&["cat"])
        .stdin_reader(PatternReader::new(length))
        .run()
        .unwrap();
    is_pattern(&reader.stdout, length);
    let mut pieces: Vec<Result<Bytes, procwright::BoxError>> = all
        .chunks(77_777)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    // An empty piece is not the end.
    pieces.insert(3, Ok(Bytes::new()));
    let iterator = child(&["cat"]).stdin_iter(pieces).run().unwrap();
    is_pattern(&iterator.stdout, length);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("input");
    std::fs::write(&path, &all).unwrap();
    let file = child(&["cat-to-stderr"])
        .stdin(Stdin::File(path))
        .run()
        .unwrap();
    is_pattern(&file.stderr, length);
    assert!(child(&["cat"]).run().unwrap().stdout.is_empty());
    assert!(
        child(&["cat"])
            .stdin_bytes("")
            .run()
            .unwrap()
            .stdout
            .is_empty()
    );
    assert!(
        child(&["cat"])
            .stdin_iter([])
            .run()
            .unwrap()
            .stdout
            .is_empty()
    );
}

alone! {
    fn a_program_that_does_not_read_is_no_error() {
        let before = Census::now();
        let big = Bytes::from(vec![1_u8; 10 << 20]);
        for _ in 0..20 {
            let output = child(&["close-stdin-exit", "7"]).stdin_bytes(big.clone()).run().unwrap();
            assert_eq!((output.status().code(), output.report.reason), (Some(7), Reason::Finished));
            let output = child(&["exit", "8"]).stdin_bytes(big.clone()).run().unwrap();
            assert_eq!(output.status().code(), Some(8));
        }
        // Input that never ends is no error either, and its thread ends.
        let forever = std::iter::repeat_with(|| Ok(Bytes::from_static(&[0; 1000])));
        let output = child(&["close-stdin-exit", "9"]).stdin_iter(forever).run().unwrap();
        assert_eq!(output.status().code(), Some(9));
        before.comes_back();
        // Input that never comes is none either.
        let (keep, never) = mpsc::channel::<Bytes>();
        let output = child(&["exit", "3"]).stdin_iter(never.into_iter().map(Ok)).run().unwrap();
        assert_eq!(output.status().code(), Some(3));
        drop(keep);
        before.comes_back();
    }
}

alone! {
    fn an_error_of_the_iterator_stops_the_program_and_comes_through() {
        let before = Census::now();
        let pieces = [Ok(Bytes::from_static(b"first ")), Ok("second".into()), Err("the cause".into())];
        let result = child(&["cat"]).stdin_iter(pieces).run();
        let Err(Error::Foreign { what: Foreign::Stdin, source, output, .. }) = &result else { panic!("{result:?}") };
        assert_eq!(source.to_string(), "the cause");
        assert!(result.as_ref().unwrap_err().to_string().contains("the cause"));
        // The output so far is there, as much as the program had written.
        assert!(b"first second".starts_with(&output.stdout));
        assert!(output.report.status.signal().is_some());
        before.comes_back();

        struct Breaks(u32);
        impl Read for Breaks {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                self.0 += 1;
                if self.0 > 100 { return Err(std::io::Error::from_raw_os_error(libc::EIO)) }
                into[0] = b'x';
                Ok(1)
            }
        }
        let result = child(&["ignore-term"])
            .stop(Stop::new().with_grace(Duration::from_millis(10)))
            .stdin_reader(Breaks(0))
            .run();
        let Err(Error::Foreign { source, output, .. }) = result else { panic!("{result:?}") };
        assert!(source.to_string().contains("os error 5"));
        assert!(output.report.survivors.is_empty() && !common::lives(output.report.pid));
        before.comes_back();
    }
}

alone! {
    fn a_panic_of_the_iterator_does_not_hang() {
        let before = Census::now();
        let pieces = (0..3).map(|n| { assert!(n < 2, "on purpose"); Ok(Bytes::from_static(b"x")) });
        let result = child(&["cat"]).stdin_iter(pieces).run();
        assert!(matches!(result, Err(Error::Foreign { what: Foreign::Stdin, .. })), "{result:?}");
        before.comes_back();
    }
}

alone! {
    fn an_iterator_that_blocks_does_not_hold_up_a_timeout() {
        let before = Census::now();
        let (keep, never) = mpsc::channel::<Bytes>();
        let timeout = Duration::from_millis(50);
        let (result, took) = common::timed(|| {
            child(&["cat"]).stdin_iter(never.into_iter().map(Ok)).timeout(timeout).run()
        });
        let output = stopped(result);
        assert_eq!(output.report.reason, Reason::Timeout);
        assert!(took >= timeout);
        assert!(!common::lives(output.report.pid));
        // The thread ends as soon as the iterator lets it.
        drop(keep);
        before.comes_back();
    }
}

#[test]
fn lock_step_with_a_program() {
    // Each piece is given only after the line before has come back.
    let _dog = common::watchdog("lock_step_with_a_program");
    let (echoed, wait) = mpsc::channel();
    let lines = shared(Vec::new());
    let seen = lines.clone();
    let pieces = (0..200).map(move |n| {
        if n > 0 {
            wait.recv()?;
        }
        Ok(Bytes::from(format!("line {n}\n")))
    });
    child(&["cat"])
        .stdin_iter(pieces)
        .on_stdout_line(move |line| {
            seen.lock().unwrap().push(String::from_utf8(line.to_vec())?);
            let _ = echoed.send(());
            Ok(())
        })
        .run()
        .unwrap();
    let expected: Vec<String> = (0..200).map(|n| format!("line {n}\n")).collect();
    assert_eq!(*lines.lock().unwrap(), expected);
}

alone! {
    fn a_fork_meanwhile_keeps_no_input_open() {
        let (tell, begun) = mpsc::channel();
        let (go_on, wait) = mpsc::channel::<()>();
        let pieces = (0..2).map(move |n| {
            if n > 0 {
                wait.recv()?;
            }
            Ok(Bytes::from_static(b"piece\n"))
        });
        let run = std::thread::spawn(|| {
            child(&["cat"])
                .stdin_iter(pieces)
                // The program runs: a fork during its start may have copies.
                .on_stdout_line(move |_| {
                    let _ = tell.send(());
                    Ok(())
                })
                // The time is a watchdog: the program would wait for the fork's end.
                .timeout(Duration::from_secs(200))
                .run()
                .unwrap()
        });
        begun.recv().unwrap();
        let fork = sys::fork_pausing();
        go_on.send(()).unwrap();
        let output = run.join().unwrap();
        sys::end(fork);
        sys::reap(fork);
        assert_eq!(output.report.reason, Reason::Finished);
        assert_eq!(output.stdout, b"piece\npiece\n");
    }
}
