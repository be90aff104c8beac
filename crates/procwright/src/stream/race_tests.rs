//! Closes that race with reads, writes, ends, spills and drops: each time the outcome
//! has to be one that may be, and nobody's descriptor is touched but our own.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Instant;

use test_children::{Pattern, Stream};

use super::{Chunk, Closed, Patience, QueueReader, Reader, StallWatch, Writer};
use crate::drain::{Drain, Pump, Store};
use crate::spool::{Overflow, elastic};
use test_support::forked as testing;

/// The most that is written in a round: less than a pipe holds.
const MOST: u64 = 40_000;

const SMALL: u64 = 4 << 10;

const KINDS: [Option<Overflow>; 5] = [
    None,
    Some(Overflow::Spill {
        memory: SMALL,
        disk: Some(1 << 20),
    }),
    Some(Overflow::DropOldest { memory: SMALL }),
    Some(Overflow::DropNewest { memory: SMALL }),
    Some(Overflow::Block { memory: SMALL }),
];

/// One stream, and what each of those who meet there is to do.
struct Round {
    overflow: Option<Overflow>,
    reader: Reader,
    writer: Writer,
    bytes: u64,
    /// The writer closes its end when it has written all.
    ends: bool,
    /// Which of the two ends the closer closes.
    closes_reader: bool,
    /// For how long each hesitates.
    hesitate: [u64; 3],
    reader_closing: AtomicBool,
    writer_closing: AtomicBool,
    written: AtomicU64,
}

/// What the reader came to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    End,
    Closed,
}

impl Round {
    fn new(number: u64, pump: &Pump) -> Round {
        let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        let overflow = KINDS[number as usize % KINDS.len()];
        let (theirs, ours) = io::pipe().unwrap();
        Round {
            overflow,
            reader: reader(theirs.into(), overflow, pump),
            writer: Writer::new(ours.into(), StallWatch::none()).unwrap(),
            bytes: 1 + below(MOST),
            ends: below(2) == 0,
            closes_reader: below(3) > 0,
            hesitate: [0; 3].map(|_| match below(4) {
                0 => 0,
                _ => below(3_000),
            }),
            reader_closing: AtomicBool::new(false),
            writer_closing: AtomicBool::new(false),
            written: AtomicU64::new(0),
        }
    }

    fn hesitates(&self, who: usize) {
        (0..self.hesitate[who]).for_each(|_| std::hint::spin_loop());
    }

    fn close_writer(&self) -> bool {
        self.writer_closing.store(true, Ordering::SeqCst);
        self.writer.close()
    }

    fn write(&self, pattern: &Pattern) {
        self.hesitates(0);
        let mut at = 0;
        while at < self.bytes {
            let n = (self.bytes - at).min(3_000);
            match (&self.writer).write(pattern.slice(at, n as usize)) {
                Ok(n) => at += n as u64,
                Err(e) if Closed::is(&e) => {
                    assert!(self.writer_closing.load(Ordering::SeqCst), "nobody closed");
                    break;
                }
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                    assert!(self.reader_closing.load(Ordering::SeqCst), "nobody closed");
                    break;
                }
                Err(e) => panic!("{e}"),
            }
            self.written.store(at, Ordering::SeqCst);
        }
        if self.ends {
            self.close_writer();
        }
    }

    fn read(&self, pattern: &Pattern) -> (Outcome, u64) {
        self.hesitates(1);
        let mut buffer = vec![0; 1 + self.hesitate[1] as usize];
        let mut at = 0;
        loop {
            match self.reader.read_with(&mut buffer, Patience::NEVER_ENDING) {
                Ok(Chunk::Bytes(n)) => {
                    assert_eq!(pattern.mismatch(at, &buffer[..n]), None);
                    at += n as u64;
                }
                Ok(Chunk::Gap(n)) => {
                    assert!(
                        self.overflow
                            .is_some_and(|overflow| !overflow.is_lossless())
                    );
                    at += n;
                }
                Ok(Chunk::End) => {
                    assert!(self.writer_closing.load(Ordering::SeqCst), "no end yet");
                    return (Outcome::End, at);
                }
                Err(e) if Closed::is(&e) => {
                    assert!(self.reader_closing.load(Ordering::SeqCst), "nobody closed");
                    return (Outcome::Closed, at);
                }
                Err(e) => panic!("{e}"),
            }
        }
    }

    fn close(&self) {
        self.hesitates(2);
        if self.closes_reader {
            self.reader_closing.store(true, Ordering::SeqCst);
            assert!(self.reader.close());
            assert!(self.reader.is_closed());
        } else {
            self.close_writer();
        }
    }

    /// After all three have done what they had to.
    fn check(&self, (outcome, read): (Outcome, u64)) {
        let written = self.written.load(Ordering::SeqCst);
        assert!(read <= written);
        if outcome == Outcome::End {
            assert_eq!(read, written, "not all of it was there");
        }
        if self.closes_reader && !self.ends {
            // The other end learns of it, when the pump has come round.
            let told = loop {
                if let Err(e) = (&self.writer).write(&[0; 4096]) {
                    break e;
                }
            };
            assert_eq!(told.kind(), io::ErrorKind::BrokenPipe);
        }
        assert_eq!(self.reader.close(), !self.closes_reader);
        assert_eq!(self.writer.close(), self.closes_reader && !self.ends);
        if let Some(figures) = self.reader.figures() {
            let accounted = figures.bytes_out + figures.lag_bytes + figures.dropped_bytes;
            assert_eq!(figures.bytes_in, accounted, "{figures:?}");
            assert_eq!(figures.lost_bytes, 0);
        }
    }
}

fn reader(fd: OwnedFd, overflow: Option<Overflow>, pump: &Pump) -> Reader {
    let Some(overflow) = overflow else {
        return Reader::of_pipe(fd, None, Arc::default()).unwrap();
    };
    rustix::io::ioctl_fionbio(&fd, true).unwrap();
    let hook = Box::new(|_: &elastic::Event| {});
    let (producer, consumer, monitor) = elastic::elastic(overflow, pump.wake(), hook).unwrap();
    let store = Store::Elastic(Some(producer));
    let drain = Drain::new(fd, None, store, Instant::now());
    let gauge = drain.gauge();
    Reader::of_queue(QueueReader::new(
        consumer,
        monitor,
        vec![(Some(pump.take(drain)), gauge)],
    ))
}

/// Takes every number that becomes free, and looks whether anybody meddles with it.
fn steal(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let mut pipes: Vec<_> = (0..4).map(|_| io::pipe().unwrap()).collect();
        for (_, writer) in &mut pipes {
            writer.write_all(b"mine").unwrap();
        }
        std::thread::yield_now();
        for (mut reader, writer) in pipes {
            drop(writer);
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            assert_eq!(all, b"mine");
        }
    }
}

fn race(rounds: u64) {
    let pump = Pump::get().unwrap();
    let current = Mutex::new(None::<Arc<Round>>);
    let result = Mutex::new(None);
    let [begin, end] = [(); 2].map(|()| Barrier::new(4));
    let over = AtomicBool::new(false);
    let pattern = Pattern::new(Stream::Stdout, MOST as usize);
    std::thread::scope(|scope| {
        let actor = |act: &'static (dyn Fn(&Round, &Pattern, &Mutex<Option<_>>) + Sync)| {
            let (current, result, pattern) = (&current, &result, &pattern);
            let (begin, end) = (&begin, &end);
            scope.spawn(move || {
                for _ in 0..rounds {
                    begin.wait();
                    let round = current.lock().unwrap().clone().unwrap();
                    // One that panics would leave the others at the barrier.
                    let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        act(&round, pattern, result);
                    }));
                    if acted.is_err() {
                        testing::exit(101);
                    }
                    drop(round);
                    end.wait();
                }
            });
        };
        actor(&|round, pattern, _| round.write(pattern));
        actor(&|round, pattern, result| {
            *result.lock().unwrap() = Some(round.read(pattern));
        });
        actor(&|round, _, _| round.close());
        let thief = scope.spawn(|| steal(&over));
        for number in 0..rounds {
            *current.lock().unwrap() = Some(Arc::new(Round::new(number, &pump)));
            begin.wait();
            end.wait();
            let round = current.lock().unwrap().take().unwrap();
            round.check(result.lock().unwrap().take().unwrap());
        }
        over.store(true, Ordering::Relaxed);
        thief.join().unwrap();
    });
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// In a process of its own, so that the descriptors can be counted.
#[test]
#[cfg(target_os = "linux")]
fn every_race_with_a_close_ends_as_it_may() {
    const ALONE: &str = "PROCWRIGHT_TEST_ALONE";
    let name = "stream::race_tests::every_race_with_a_close_ends_as_it_may";
    let stress = std::env::var_os("STRESS").is_some_and(|value| value == "1");
    if std::env::var_os(ALONE).is_none() {
        let mut copy = Command::new(std::env::current_exe().unwrap());
        copy.args([name, "--exact", "--nocapture"]).env(ALONE, name);
        let output = copy.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}\n{said}", output.status);
        return;
    }
    testing::alarm(if stress { 1800 } else { 120 });
    let before = descriptors();
    race(if stress { 1_000_000 } else { 10_000 });
    // The pump and the threads that write to disk end on their own.
    while descriptors() > before {
        std::thread::yield_now();
    }
}
