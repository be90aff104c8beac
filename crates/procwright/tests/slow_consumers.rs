//! A reader that takes its time, and a child that must not notice, or notices no more
//! than it has to.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use test_support::alone;

use common::{child, figure, scaled};
use procwright::process::Exit;
use procwright::stream::Reader;
use procwright::{Overflow, Sink};

const LINES: usize = 60;
const SIZE: usize = 40_000;

/// The report of `test-child paced`, in nanoseconds.
#[derive(Debug)]
struct Paced {
    blocked: u64,
    waits: u64,
    queued: u64,
    wall: u64,
}

impl Paced {
    fn parse(report: &str) -> Paced {
        let number = |key: &str| -> u64 {
            let word = report
                .split_whitespace()
                .find_map(|word| word.strip_prefix(key));
            word.unwrap_or_else(|| panic!("{report:?}"))
                .parse()
                .unwrap()
        };
        Paced {
            blocked: number("blocked_ns="),
            waits: number("waits="),
            queued: number("queued_ns="),
            wall: number("wall_ns="),
        }
    }
}

/// Milliseconds between two lines of 40 kB.
fn pace() -> u64 {
    scaled(2, 50)
}

fn paced(says: bool) -> procwright::Command<'static> {
    let [lines, pace, size] = [LINES as u64, pace(), SIZE as u64].map(|number| number.to_string());
    let command = child(&["paced", &lines, &pace, "--size", &size]);
    match says {
        true => command.arg("--say"),
        false => command,
    }
}

/// Takes the next line, and checks its number.
fn takes(reader: &mut impl BufRead, number: usize) {
    let mut line = Vec::new();
    assert_eq!(reader.read_until(b'\n', &mut line).unwrap(), SIZE);
    let begin = format!("line {number}");
    assert!(line.starts_with(begin.as_bytes()));
    let rest = &line[begin.len()..SIZE - 1];
    assert!(rest.iter().all(|byte| *byte == b'.'));
}

/// Reads the child's stderr: its progress, and at the end its report.
fn listen(stderr: Reader, tell: mpsc::Sender<usize>) -> std::thread::JoinHandle<Paced> {
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines() {
            let line = line.unwrap();
            match line.strip_prefix("wrote ") {
                Some(number) => tell.send(number.parse().unwrap()).unwrap(),
                None => return Paced::parse(&line),
            }
        }
        panic!("it has not reported")
    })
}

alone! {
    fn a_slow_reader_never_holds_up_the_child() {
        // The reader takes one line when the child has written five more. There is no
        // pause: a child that waited for the reader would wait for ever, and the reader
        // for it.
        let mut spilled = paced(true).spawn().unwrap();
        let (tell, wrote) = mpsc::channel();
        let report = listen(spilled.stderr.take().unwrap(), tell);
        let stdout = spilled.stdout.take().unwrap();
        let mut reader = BufReader::new(stdout.clone());
        let mut written = 0;
        for number in 0..LINES {
            let due = (5 * number + 5).min(LINES);
            while written < due {
                assert_eq!(wrote.recv().unwrap(), written);
                written += 1;
            }
            takes(&mut reader, number);
        }
        assert_eq!(reader.read_until(b'\n', &mut Vec::new()).unwrap(), 0);
        assert_eq!(spilled.wait(None).unwrap(), Some(Exit::Code(0)));
        let report = report.join().unwrap();
        let figures = stdout.figures().unwrap();
        assert!(figures.peak_bytes > (LINES * SIZE / 2) as u64, "{figures:?}");
        assert_eq!(figures.refused, Duration::ZERO);
        // The time that the pump took to come round is not guaranteed.
        figure(&format!("a line taken for five written: {report:?}"));
    }
}

/// The figures of a child that a reader holds up for `pause` at every line.
struct Slow {
    report: Paced,
    /// All pauses, the time of the reads included.
    pauses: Duration,
    /// Time for which the child is reported to have been held up.
    told: Duration,
    /// Pauses before the last of the output fits into a pipe.
    before: Duration,
}

fn read_slowly(overflow: Option<Overflow>, pause: Duration) -> Slow {
    let begun = Instant::now();
    let mut held = paced(false).spawn_with(overflow).unwrap();
    let (tell, _wrote) = mpsc::channel();
    let report = listen(held.stderr.take().unwrap(), tell);
    // No message comes, so this is a pause and not a race.
    let (_keep, never) = mpsc::channel::<()>();
    let stdout = held.stdout.take().unwrap();
    let mut reader = BufReader::with_capacity(SIZE, stdout.clone());
    let mut before = Duration::ZERO;
    for number in 0..LINES {
        takes(&mut reader, number);
        let paused = Instant::now();
        let _ = never.recv_timeout(pause);
        // At most one line more is in the buffer, and the rest in the pipe.
        if (number + 2) * SIZE + (64 << 10) < LINES * SIZE {
            before += paused.elapsed();
        }
    }
    let pauses = begun.elapsed();
    assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    assert_eq!(held.wait(None).unwrap(), Some(Exit::Code(0)));
    let report = report.join().unwrap();
    Slow {
        report,
        pauses,
        told: stdout.blocked().unwrap(),
        before,
    }
}

alone! {
    fn with_the_bare_pipe_it_is_held_up_as_long_as_the_reader_pauses() {
        let pause = Duration::from_millis(scaled(10, 250));
        let Slow { report, pauses, told, before } = read_slowly(None, pause);
        assert!(report.waits > 0, "{report:?}");
        // Only the reader makes room in a pipe without any.
        let wall = Duration::from_nanos(report.wall);
        assert!(wall >= before, "{report:?}: the reader paused for {before:?}");
        // Waits for a processor are no pipe's, and neither is the cost of a call.
        let beside = report.queued + 50_000 * report.waits;
        let blocked = Duration::from_nanos(report.blocked.saturating_sub(beside));
        assert!(blocked > Duration::ZERO);
        // Only the reader itself sees how late it woke up the last time.
        assert!(told + pause >= blocked, "{report:?}: {told:?} were told");
        assert!(told <= pauses, "{told:?} were told, and the reader took {pauses:?} in all");
        figure(&format!("bare pipe, {pause:?} a line: {report:?}, told {told:?}, pauses {pauses:?}"));

        let mut alone = paced(false).stdout(Sink::Null).spawn().unwrap();
        let mut report = String::new();
        alone.stderr.as_mut().unwrap().read_to_string(&mut report).unwrap();
        figure(&format!("alone: {:?}", Paced::parse(&report)));
        let spilled = read_slowly(Some(Overflow::default()), pause);
        let Slow { report, pauses, told, .. } = spilled;
        figure(&format!("spilled, {pause:?} a line: {report:?}, told {told:?}, pauses {pauses:?}"));
    }
}
