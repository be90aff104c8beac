//! A program's output: both streams at once, callbacks, the order, merging.

mod common;

use std::sync::mpsc;
use std::time::Duration;
use test_support::alone;

use common::{Census, child, scaled, shared, stopped};
use procwright::{Command, Error, Foreign, Reason, Sink, StdStream};
use test_children::{Pattern, Stream};

#[track_caller]
fn is_pattern(stream: Stream, bytes: &[u8], length: u64) {
    assert_eq!(bytes.len() as u64, length, "{stream:?}");
    assert_eq!(
        Pattern::new(stream, 1 << 20).mismatch(0, bytes),
        None,
        "{stream:?}"
    );
}

#[test]
fn both_streams_at_once() {
    let _dog = common::watchdog("both_streams_at_once");
    let size = scaled(64 << 20, 1 << 30);
    for chunk in ["4096", "2049", "64K", "1000000"] {
        let output = child(&[
            "flood",
            "--out",
            &size.to_string(),
            "--err",
            &size.to_string(),
            "--chunk",
            chunk,
        ])
        .run()
        .unwrap();
        is_pattern(Stream::Stdout, &output.stdout, size);
        is_pattern(Stream::Stderr, &output.stderr, size);
        let info = output.report.stdout_info.unwrap();
        assert_eq!(
            (info.bytes, info.kept_bytes, info.dropped_bytes),
            (size, size, 0)
        );
        assert!(info.complete && info.held_by.is_empty() && info.held_by_complete);
    }
    // One stream is much longer than the other.
    let output = child(&["flood", "--out", "100", "--err", "20M"])
        .run()
        .unwrap();
    is_pattern(Stream::Stdout, &output.stdout, 100);
    is_pattern(Stream::Stderr, &output.stderr, 20 << 20);
}

alone! {
    fn a_second_reader_comes_and_goes() {
        // The silence between the floods is long enough for the second reader to end.
        use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
        static OVER: AtomicBool = AtomicBool::new(false);
        static SEEN: AtomicU64 = AtomicU64::new(0);
        let before = Census::now();
        let watch = std::thread::spawn(|| {
            let mut there = false;
            while !OVER.load(Ordering::Relaxed) {
                let now = common::threads().iter().any(|name| name == "procwright-drai");
                if now && !there { SEEN.fetch_add(1, Ordering::Relaxed); }
                there = now;
                std::thread::yield_now();
            }
        });
        let output = child(&["flood", "--out", "24M", "--err", "24M", "--rounds", "4", "--pause", "200", "--chunk", "4096"]).run().unwrap();
        is_pattern(Stream::Stdout, &output.stdout, 96 << 20);
        is_pattern(Stream::Stderr, &output.stderr, 96 << 20);
        // The watching thread opens descriptors of its own, so it ends first.
        OVER.store(true, Ordering::Relaxed);
        watch.join().unwrap();
        before.unchanged();
        common::figure(&format!("the second reader was seen coming {} times in 4 floods", SEEN.load(Ordering::Relaxed)));
    }
}

#[test]
fn all_in_order_for_a_line_callback() {
    let _dog = common::watchdog("all_in_order_for_a_line_callback");
    let lines = shared(Vec::new());
    let seen = lines.clone();
    let output = child(&["trickle", "50000", "0"])
        .on_stdout_line(move |line| {
            seen.lock().unwrap().push(line.to_vec());
            Ok(())
        })
        .run()
        .unwrap();
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 50_000);
    for (n, line) in lines.iter().enumerate() {
        assert_eq!(*line, format!("line {n}\n").into_bytes());
    }
    assert_eq!(output.stdout, lines.concat());
    assert_eq!(output.report.stdout_info.unwrap().undelivered_bytes, 0);
}

#[test]
fn one_huge_line_and_one_without_an_end() {
    let _dog = common::watchdog("one_huge_line_and_one_without_an_end");
    let size = scaled(32 << 20, 100 << 20);
    let lengths = shared(Vec::new());
    let seen = lengths.clone();
    let whole = procwright::stream::Framing::default();
    child(&["big-line", &size.to_string()])
        .line_framing(whole)
        .on_stdout_line(move |line| {
            seen.lock().unwrap().push(line.len() as u64);
            Ok(())
        })
        .run()
        .unwrap();
    assert_eq!(*lengths.lock().unwrap(), [size]);
    let last = shared(Vec::new());
    let seen = last.clone();
    child(&["print-bytes", "610a62", "--err"])
        .on_stderr_line(move |line| {
            seen.lock().unwrap().push(line.to_vec());
            Ok(())
        })
        .run()
        .unwrap();
    assert_eq!(*last.lock().unwrap(), [b"a\n".to_vec(), b"b".to_vec()]);
}

alone! {
    fn a_slow_callback_holds_the_program_back_in_bounded_memory() {
        let total: u64 = 128 << 20;
        let lines = (total / 4096).to_string();
        let base = common::reset_peak();
        let count = shared(0_u64);
        let (held, seen) = (shared(0_u64), count.clone());
        let wrote_when_held = held.clone();
        let output = child(&["trickle", &lines, "0", "--size", "4096"])
            .limit(procwright::Limit { bytes: 0, beyond: procwright::Beyond::HeadAndTail })
            .on_stdout_line(move |line| {
                let mut count = seen.lock().unwrap();
                assert_eq!(line.len(), 4096);
                assert!(line.starts_with(format!("line {count}.").as_bytes()));
                if *count == 0 {
                    // Takes no line until the program cannot go on.
                    let [pid] = common::children()[..] else { panic!("not one child") };
                    let wrote = || {
                        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
                        io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse::<u64>().unwrap()
                    };
                    let mut last = (0, 0);
                    while last.1 < 2000 {
                        assert!(common::lives(pid), "nothing held it back");
                        let now = wrote();
                        last = if now == last.0 && now > 8 << 20 { (now, last.1 + 1) } else { (now, 0) };
                        std::thread::yield_now();
                    }
                    *held.lock().unwrap() = last.0;
                }
                *count += 1;
                Ok(())
            })
            .run()
            .unwrap();
        let peak = common::status_bytes("VmHWM") - base;
        common::figure(&format!("slow callback: held back after {} MiB, memory grew by {} MiB",
            *wrote_when_held.lock().unwrap() >> 20, peak >> 20));
        assert_eq!(*count.lock().unwrap(), total / 4096);
        assert!(*wrote_when_held.lock().unwrap() < 24 << 20);
        assert!(peak < 40 << 20, "{peak}");
        let info = output.report.stdout_info.unwrap();
        assert_eq!((info.bytes, info.undelivered_bytes), (total, 0));
        // The program was held back, and the report says so.
        assert!(info.blocked > Some(Duration::ZERO));
    }
}

alone! {
    fn a_callback_that_blocks_does_not_hold_up_a_timeout() {
        let before = Census::now();
        let (keep, never) = mpsc::channel::<()>();
        let timeout = Duration::from_millis(100);
        let (result, took) = common::timed(|| {
            child(&["flood-forever"])
                .on_stdout_line(|_| Ok(()))
                .tee_to(StdStream::Stdout, Blocks(never))
                .timeout(timeout)
                .stop(procwright::process::Stop::new().with_grace(Duration::from_millis(10)))
                .run()
        });
        let output = stopped(result);
        assert_eq!(output.report.reason, Reason::Timeout);
        assert!(took >= timeout && !common::lives(output.report.pid));
        let info = output.report.stdout_info.as_ref().unwrap();
        assert!(info.undelivered_bytes > 0 && !info.complete, "{info:?}");
        drop(keep);
        before.comes_back();
    }
}

struct Blocks(mpsc::Receiver<()>);

impl std::io::Write for Blocks {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.recv();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

alone! {
    fn an_error_or_a_panic_of_a_callback_stops_the_program() {
        let before = Census::now();
        let result = child(&["flood-forever"]).tee_to(StdStream::Stdout, std::io::sink()).on_stdout_line(|_| Ok(()))
            .tap_stream(StdStream::Stdout, Box::new(Fails(0))).run();
        let Err(Error::Foreign { what: Foreign::Callback, source, output, .. }) = &result else { panic!("{result:?}") };
        assert_eq!(source.to_string(), "enough");
        assert!(!common::lives(output.report.pid) && output.report.stdout_info.as_ref().unwrap().bytes > 0);
        before.comes_back();
        let result = child(&["trickle", "1000000", "1"]).on_stdout_line(|_| panic!("on purpose")).run();
        assert!(matches!(&result, Err(Error::Foreign { what: Foreign::Callback, .. })), "{result:?}");
        before.comes_back();
    }
}

/// A sink that fails at the third piece.
struct Fails(usize);

impl procwright::Tap for Fails {
    fn piece(&mut self, _: procwright::Piece<'_>) -> Result<(), procwright::BoxError> {
        self.0 = if self.0 > 3 { 1 } else { self.0 + 1 };
        if self.0 == 3 {
            Err("enough".into())
        } else {
            Ok(())
        }
    }
}

#[test]
fn the_order_of_the_two_streams() {
    let _dog = common::watchdog("the_order_of_the_two_streams");
    let size: u64 = 8 << 20;
    let output = child(&[
        "flood",
        "--out",
        &size.to_string(),
        "--err",
        &size.to_string(),
        "--chunk",
        "3000",
    ])
    .merged()
    .run()
    .unwrap();
    is_pattern(Stream::Stdout, &output.stdout, size);
    is_pattern(Stream::Stderr, &output.stderr, size);
    let segments = output.merged.unwrap();
    for stream in StdStream::BOTH {
        let sum: u64 = segments
            .iter()
            .filter(|segment| segment.stream == stream)
            .map(|segment| segment.bytes)
            .sum();
        assert_eq!(sum, size);
    }
    assert!(segments.iter().all(|segment| segment.bytes > 0));
    assert!(
        segments
            .windows(2)
            .all(|pair| pair[0].stream != pair[1].stream || !pair[1].ambiguous)
    );
}

/// Runs in a copy of this executable: a program that writes to the streams in turn, and
/// goes on only when its last line has arrived.
#[test]
fn a_program_in_lock_step_has_its_exact_order() {
    use std::io::{Read, Write};
    let name = "a_program_in_lock_step_has_its_exact_order";
    let _dog = common::watchdog(name);
    if std::env::var_os("PROCWRIGHT_TEST_LOCK_STEP").is_some() {
        let mut go = [0];
        for n in 0..300_u32 {
            if n % 3 == 0 {
                std::io::stderr().write_all(b"-e\n").unwrap();
            } else {
                std::io::stdout().write_all(b"-o\n").unwrap();
                std::io::stdout().flush().unwrap();
            }
            std::io::stdin().read_exact(&mut go).unwrap();
        }
        return;
    }
    let (arrived, wait) = mpsc::channel::<()>();
    let again = arrived.clone();
    let ticks = std::iter::from_fn(move || wait.recv().ok().map(|()| Ok("x".into())));
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env("PROCWRIGHT_TEST_LOCK_STEP", "1")
        .stdin_iter(ticks)
        .on_stdout_line(move |line| {
            if line.ends_with(b"-o\n") {
                let _ = arrived.send(());
            }
            Ok(())
        })
        .on_stderr_line(move |line| {
            if line.ends_with(b"-e\n") {
                let _ = again.send(());
            }
            Ok(())
        })
        .merged()
        .run()
        .unwrap();
    assert!(output.success(), "{:?}", output.report);
    let mut at = [0, 0];
    let mut order = String::new();
    for segment in output.merged.unwrap() {
        let (data, at) = match segment.stream {
            StdStream::Stdout => (&output.stdout, &mut at[0]),
            StdStream::Stderr => (&output.stderr, &mut at[1]),
        };
        let next = *at + usize::try_from(segment.bytes).unwrap();
        order += &String::from_utf8_lossy(&data[*at..next]);
        *at = next;
    }
    let expected: String = (0..300)
        .map(|n| if n % 3 == 0 { "-e\n" } else { "-o\n" })
        .collect();
    assert!(order.contains(&expected), "{order}");
}

#[test]
fn merged_into_one() {
    let _dog = common::watchdog("merged_into_one");
    let alternating = |size: usize, chunk: usize| {
        let (out, err) = (
            Pattern::new(Stream::Stdout, chunk),
            Pattern::new(Stream::Stderr, chunk),
        );
        (0..size / chunk)
            .flat_map(|n| {
                [
                    out.slice((n * chunk) as u64, chunk),
                    err.slice((n * chunk) as u64, chunk),
                ]
                .concat()
            })
            .collect::<Vec<u8>>()
    };
    let flood = || {
        child(&[
            "flood",
            "--out",
            "3000000",
            "--err",
            "3000000",
            "--chunk",
            "1000",
            "--alternate",
        ])
    };
    let expected = alternating(3_000_000, 1000);
    let output = flood().stderr(Sink::Merged).run().unwrap();
    assert!(output.stdout == expected && output.stderr.is_empty());
    assert!(output.report.stderr_info.is_none());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("both");
    let file = |append| Sink::File {
        path: path.clone(),
        append,
    };
    flood()
        .stdout(file(false))
        .stderr(Sink::Merged)
        .run()
        .unwrap();
    assert!(std::fs::read(&path).unwrap() == expected);
    // The file is emptied, then appended to.
    child(&["echo", "a"]).stdout(file(false)).run().unwrap();
    child(&["echo", "--stderr", "b"])
        .stdout(file(true))
        .stderr(Sink::Merged)
        .run()
        .unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"a\nb\n");
    // The reverse has nothing to merge into.
    assert!(matches!(
        child(&["echo"]).stdout(Sink::Merged).run(),
        Err(Error::Invalid(_))
    ));
}

#[test]
fn merged_into_what_is_inherited() {
    let said = common::alone("merged_into_what_is_inherited", || {
        let run = |text: &str| {
            child(&["echo", "--stderr", text])
                .stdout(Sink::Inherit)
                .stderr(Sink::Merged)
                .run()
                .unwrap()
        };
        assert!(run("through-stdout").success());
        assert!(
            child(&["echo", "--stderr", "through-stderr"])
                .stdout(Sink::Inherit)
                .stderr(Sink::Inherit)
                .run()
                .unwrap()
                .success()
        );
    });
    if let Some(said) = said {
        assert!(said.stdout.contains("through-stdout") && !said.stderr.contains("through-stdout"));
        assert!(said.stderr.contains("through-stderr"));
    }
}

#[test]
fn an_output_that_ends_before_its_program() {
    let _dog = common::watchdog("an_output_that_ends_before_its_program");
    let (output, took) = common::timed(|| {
        child(&["close-stdout-then-sleep", "150", "--both"])
            .run()
            .unwrap()
    });
    assert!(output.success() && took >= Duration::from_millis(150));
    assert!(output.report.stdout_info.unwrap().complete);
    let output = child(&["invalid-utf8"]).run().unwrap();
    assert_eq!(output.stdout, test_children::INVALID_UTF8);
}

alone! {
    fn memory_of_a_large_capture() {
        let size: u64 = 256 << 20;
        let base = common::reset_peak();
        let output = child(&["flood", "--out", &size.to_string()]).run().unwrap();
        let grown = common::status_bytes("VmHWM") - base;
        common::figure(&format!("capturing {} MiB took {} MiB at the peak", size >> 20, grown >> 20));
        assert_eq!(output.stdout.len() as u64, size);
        assert!(grown <= size + (32 << 20), "{grown}");
        drop(output);
        let base = common::reset_peak();
        let half = (size / 2).to_string();
        let output = child(&["flood", "--out", &half, "--err", &half]).run().unwrap();
        let grown = common::status_bytes("VmHWM") - base;
        common::figure(&format!("capturing 2 x {} MiB took {} MiB at the peak", size >> 21, grown >> 20));
        assert!(grown <= size + (32 << 20), "{grown}");
        assert_eq!(output.stderr.len() as u64, size / 2);
    }
}

#[test]
fn the_debug_text_is_short() {
    let _dog = common::watchdog("the_debug_text_is_short");
    let output = child(&["flood", "--out", "1M"]).run().unwrap();
    let text = format!("{output:?}");
    assert!(
        text.len() < 5000 && text.contains("1048376 bytes more"),
        "{text}"
    );
    let four = procwright::Limit {
        bytes: 4,
        beyond: procwright::Beyond::HeadAndTail,
    };
    let limited = child(&["echo", "0123456789"]).limit(four).run().unwrap();
    let text = format!("{limited:?}");
    let marked = r#"stdout: b"01" [… 7 bytes dropped …] b"9\n""#;
    assert!(text.contains(marked), "{text}");
}

/// Runs in a copy of this executable: a program that floods stdout and leaves another
/// behind that floods stderr for longer.
#[test]
fn the_second_stream_may_go_on_after_the_first() {
    use std::io::Write;
    use std::process::{Command as Std, Stdio};
    let name = "the_second_stream_may_go_on_after_the_first";
    let _dog = common::watchdog(name);
    let size: u64 = 300 << 20;
    if std::env::var_os("PROCWRIGHT_TEST_LEADER").is_some() {
        let mut other = Std::new(test_children::path());
        other.args(["flood", "--err", &size.to_string()]);
        other.stdin(Stdio::null()).stdout(Stdio::null());
        // Left behind on purpose: the flooder outlives this process.
        #[allow(clippy::zombie_processes)]
        let _left = other.spawn().unwrap();
        std::io::stdout().write_all(&vec![b'O'; 30 << 20]).unwrap();
        return;
    }
    for _ in 0..3 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture", "--test-threads=1"])
            .env("PROCWRIGHT_TEST_LEADER", "1")
            .run()
            .unwrap();
        assert!(output.success() && output.stdout.len() > 30 << 20);
        is_pattern(Stream::Stderr, &output.stderr, size);
        assert!(output.report.stderr_info.unwrap().complete);
    }
}
