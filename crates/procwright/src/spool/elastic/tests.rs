//! Every byte at its place, under every policy and in any interleaving.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use test_children::{Pattern, Stream};

use super::*;
use procwright_os::time::Deadline;
use std::time::Instant;

const TINY: u64 = 4096;

struct Queue {
    producer: Option<ElasticProducer>,
    consumer: ElasticConsumer,
    monitor: Monitor,
    room: Arc<Wake>,
    pattern: Pattern,
    put: u64,
    /// How far the consumer is, gaps included.
    at: u64,
    got: u64,
    gaps: u64,
}

impl Queue {
    fn new(policy: Overflow, block: usize, directory: Option<&Path>) -> Queue {
        let disk = match (policy, directory) {
            (Overflow::Spill { disk, .. }, Some(directory)) => {
                Some(SpillFiles::new(directory.to_owned(), disk))
            }
            _ => None,
        };
        let room = Arc::new(Wake::new().unwrap());
        let (producer, consumer, monitor) = assemble(
            policy,
            block,
            disk,
            Share::alone(),
            Arc::clone(&room),
            Box::new(|_| {}),
        );
        Queue {
            producer: Some(producer),
            consumer,
            monitor,
            room,
            pattern: Pattern::new(Stream::Stdout, 1 << 20),
            put: 0,
            at: 0,
            got: 0,
            gaps: 0,
        }
    }

    fn put(&mut self, n: usize) -> usize {
        let bytes = self.pattern.slice(self.put, n);
        let put = self.producer.as_mut().unwrap().put(bytes).unwrap();
        self.put += put as u64;
        put
    }

    fn checked(&mut self, bytes: &[u8]) {
        assert_eq!(self.pattern.mismatch(self.at, bytes), None);
        self.at += bytes.len() as u64;
        self.got += bytes.len() as u64;
    }

    fn gap(&mut self, n: u64) {
        assert!(n > 0);
        self.at += n;
        self.gaps += n;
    }

    fn read(&mut self, most: usize) -> ReadOutcome {
        let mut buffer = vec![0; most];
        let item = self.consumer.read(&mut buffer).unwrap();
        match item {
            ReadOutcome::Bytes(n) => self.checked(&buffer[..n]),
            ReadOutcome::Gap(n) => self.gap(n),
            ReadOutcome::Empty | ReadOutcome::End => {}
        }
        item
    }

    fn peek(&mut self, most: usize) -> bool {
        match self.consumer.peek().unwrap() {
            Peek::Bytes(bytes) => {
                let copy = bytes[..bytes.len().min(most)].to_vec();
                self.checked(&copy);
                self.consumer.consume(copy.len());
                true
            }
            Peek::Gap(n) => {
                self.gap(n);
                true
            }
            Peek::Empty | Peek::End => false,
        }
    }

    /// Reads what is there, waiting for nothing.
    fn drain(&mut self) {
        while !matches!(self.read(1 << 16), ReadOutcome::Empty | ReadOutcome::End) {}
    }

    fn end(&mut self) {
        self.producer.take().unwrap().end();
        while self.read(1 << 16) != ReadOutcome::End {}
    }

    #[track_caller]
    fn balanced(&self) {
        let figures = self.monitor.figures();
        let Figures {
            bytes_in,
            bytes_out,
            lag_bytes,
            dropped_bytes,
            lost_bytes,
            ..
        } = figures;
        assert_eq!(bytes_in, self.put);
        assert_eq!(bytes_out, self.got);
        let sum = bytes_out + lag_bytes + dropped_bytes + lost_bytes;
        assert_eq!(bytes_in, sum, "{figures:?}");
        assert!(self.gaps <= dropped_bytes);
    }
}

fn policies(memory: u64) -> [Overflow; 4] {
    [
        Overflow::Spill {
            memory,
            disk: Some(1 << 20),
        },
        Overflow::Block { memory },
        Overflow::DropOldest { memory },
        Overflow::DropNewest { memory },
    ]
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Put(usize),
    Read(usize),
    Peek(usize),
    Drain,
    /// Lets the spill thread run.
    Pause,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => prop_oneof![1usize..4, 1usize..300, 100usize..9000].prop_map(Action::Put),
        2 => (1usize..5000).prop_map(Action::Read),
        2 => (1usize..5000).prop_map(Action::Peek),
        1 => Just(Action::Drain),
        1 => Just(Action::Pause),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_byte_at_its_place(
        actions in prop::collection::vec(action(), 1..120),
        policy in 0usize..4,
        memory in prop_oneof![Just(TINY), Just(2 * TINY), 4097u64..40_000],
        block in prop_oneof![Just(4096usize), Just(512), 16usize..3000],
    ) {
        let directory = tempfile::tempdir().unwrap();
        let policy = policies(memory)[policy];
        let mut queue = Queue::new(policy, block, Some(directory.path()));
        for action in actions {
            match action {
                Action::Put(n) => {
                    let put = queue.put(n);
                    prop_assert!(policy.is_lossless() || put == n);
                }
                Action::Read(n) => {
                    queue.read(n);
                }
                Action::Peek(n) => {
                    queue.peek(n);
                }
                Action::Drain => queue.drain(),
                Action::Pause => std::thread::yield_now(),
            }
            queue.balanced();
            let figures = queue.monitor.figures();
            prop_assert!(
                figures.memory_peak_bytes <= memory + (SLACK_BLOCKS * block) as u64,
                "{figures:?}"
            );
            prop_assert!(figures.lag_bytes - figures.disk_bytes <= memory + block as u64);
        }
        queue.end();
        prop_assert_eq!(queue.at, queue.put);
        let figures = queue.monitor.figures();
        prop_assert_eq!(figures.dropped_bytes, queue.gaps);
        prop_assert_eq!(figures.lag_bytes, 0);
        prop_assert!(!policy.is_lossless() || queue.gaps == 0);
    }
}

#[test]
fn two_threads_and_a_disk() {
    // Small enough that memory, disk and all edges between are passed often.
    for (memory, block) in [(64 << 10, 4096), (20_000, 700), (TINY, 4096)] {
        let directory = tempfile::tempdir().unwrap();
        let policy = Overflow::Spill {
            memory,
            disk: Some(300_000),
        };
        let mut queue = Queue::new(policy, block, Some(directory.path()));
        let mut producer = queue.producer.take().unwrap();
        let room = Arc::clone(&queue.room);
        let total = 3_000_000;
        std::thread::scope(|scope| {
            let pattern = queue.pattern.clone();
            scope.spawn(move || {
                let mut at = 0;
                let mut size = 1;
                while at < total {
                    size = (size * 7 + 3) % 5003 + 1;
                    let n = size.min((total - at) as usize);
                    let put = producer.put(pattern.slice(at, n)).unwrap();
                    at += put as u64;
                    if put < n {
                        let fd =
                            procwright_os::poll::Fd::new(&*room, procwright_os::poll::Flags::IN);
                        procwright_os::poll::wait_one(fd, Deadline::NEVER).unwrap();
                        room.silence();
                    }
                }
                producer.end();
            });
            let mut size = 1;
            loop {
                size = (size * 5 + 1) % 7001 + 1;
                queue.consumer.wait(Deadline::NEVER);
                if size % 2 == 0 {
                    queue.peek(size);
                } else if queue.read(size) == ReadOutcome::End {
                    break;
                }
                if queue.at.is_multiple_of(50) {
                    std::thread::yield_now();
                }
            }
        });
        queue.put = total;
        queue.balanced();
        assert_eq!(queue.at, total);
    }
}

#[test]
fn bytes_go_to_disk_in_order_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let policy = Overflow::Spill {
        memory: 64 << 10,
        disk: Some(40 << 20),
    };
    let mut queue = Queue::new(policy, 4096, Some(directory.path()));
    // More than two files, so that the edge of files is passed.
    let total = 36 << 20;
    while queue.put < total {
        queue.put(100_000);
        std::thread::yield_now();
    }
    let figures = queue.monitor.figures();
    assert!(figures.disk_bytes > 32 << 20, "{figures:?}");
    assert!(figures.memory_peak_bytes <= (64 + 4 * SLACK_BLOCKS as u64) << 10);
    queue.balanced();
    queue.end();
    assert_eq!(queue.at, queue.put);
    let figures = queue.monitor.figures();
    assert_eq!((figures.disk_bytes, figures.lag_bytes), (0, 0));
    assert!(figures.spilled_bytes >= figures.disk_peak_bytes);
    assert_eq!(figures.lag, Duration::ZERO);
}

#[test]
fn a_full_memory_holds_the_producer_until_it_pays() {
    let mut queue = Queue::new(Overflow::Block { memory: 40_960 }, 4096, None);
    assert_eq!(queue.put(50_000), 40_960);
    assert!(matches!(
        queue.producer.as_mut().unwrap().area().unwrap(),
        Space::Held
    ));
    let is_rung = |queue: &Queue| {
        let fd = procwright_os::poll::Fd::new(&*queue.room, procwright_os::poll::Flags::IN);
        procwright_os::poll::wait_one(fd, Deadline::at(Instant::now())).unwrap()
    };
    queue.read(4096);
    queue.read(1023);
    assert!(!is_rung(&queue) && queue.put(1) == 0);
    queue.peek(1);
    assert!(is_rung(&queue));
    assert_eq!(queue.put(50_000), 5120);
    assert!(queue.monitor.figures().refused > Duration::ZERO);
    queue.end();
    assert_eq!(queue.at, queue.put);
}

#[test]
fn the_latest_are_kept_to_the_byte() {
    let mut queue = Queue::new(Overflow::DropOldest { memory: 10_000 }, 4096, None);
    queue.put(123_457);
    assert_eq!(queue.read(1), ReadOutcome::Gap(113_457));
    // What is in hand is not dropped: it may be on its way already.
    assert!(queue.peek(1));
    queue.put(100_000);
    assert!(queue.peek(1 << 16));
    queue.end();
    queue.balanced();
    assert_eq!(queue.at, queue.put);
    let in_hand = queue.monitor.figures().bytes_out;
    assert!((10_001..=20_000).contains(&in_hand), "{in_hand}");
}

#[test]
fn the_first_are_kept_to_the_byte() {
    let mut queue = Queue::new(Overflow::DropNewest { memory: 10_000 }, 4096, None);
    queue.put(123_457);
    for most in [4096, 4096, 1808] {
        assert_eq!(queue.read(1 << 16), ReadOutcome::Bytes(most));
    }
    queue.put(5);
    assert_eq!(queue.read(1), ReadOutcome::Gap(113_457));
    assert_eq!(queue.read(10), ReadOutcome::Bytes(5));
    queue.end();
    queue.balanced();
}

#[test]
fn dropping_byte_by_byte_takes_no_bookkeeping() {
    let mut queue = Queue::new(Overflow::DropNewest { memory: 8192 }, 4096, None);
    queue.put(8192);
    for _ in 0..8000 {
        queue.put(1);
        queue.peek(1);
    }
    let entries = queue.monitor.0.lock().storage.tail.len();
    assert!(entries <= 2 * 8 + 2, "{entries}");
}

#[test]
fn one_byte_too_many_fails_and_one_less_does_not() {
    let mut queue = Queue::new(Overflow::Fail { memory: 10_000 }, 4096, None);
    queue.put(10_000);
    // Looking for room is no failure: the stream may be at its end.
    assert!(matches!(
        queue.producer.as_mut().unwrap().area().unwrap(),
        Space::Area(_)
    ));
    queue.balanced();
    let mut producer = queue.producer.take().unwrap();
    assert_eq!(producer.overflowed(), None);
    producer.put(&[0]).unwrap();
    assert_eq!(producer.overflowed(), Some(10_000));
    assert!(matches!(producer.area().unwrap(), Space::Closed));
    for most in [4096, 4096, 1808] {
        assert_eq!(queue.read(1 << 16), ReadOutcome::Bytes(most));
    }
    let error = queue.consumer.read(&mut [0; 10]).unwrap_err();
    assert!(matches!(error, Broken::Overflowed { offset: 10_000 }));
    assert_eq!(queue.read(10), ReadOutcome::End);
}

#[test]
fn single_bytes_are_packed() {
    let memory = 1 << 20;
    let mut queue = Queue::new(Overflow::Block { memory }, 65_536, None);
    let mut put = 0;
    while queue.put(1) == 1 {
        put += 1;
    }
    assert_eq!(put, memory);
    assert_eq!(queue.monitor.figures().memory_peak_bytes, memory);
    queue.end();
}

#[test]
fn memory_goes_back_after_a_burst() {
    let mut queue = Queue::new(Overflow::Block { memory: 1 << 20 }, 4096, None);
    queue.put(1 << 20);
    assert!(queue.monitor.figures().memory_bytes >= 1 << 20);
    queue.drain();
    assert!(queue.monitor.figures().memory_bytes <= 4 * 4096);
    // A stream that is taken as fast as it comes stays where it is warm.
    let peak = queue.monitor.figures().memory_peak_bytes;
    for _ in 0..1000 {
        queue.put(3000);
        queue.drain();
    }
    assert!(queue.monitor.figures().memory_bytes <= 4 * 4096);
    assert_eq!(queue.monitor.figures().memory_peak_bytes, peak);
}

#[test]
fn the_end_brings_the_producers_error_behind_its_bytes() {
    let mut queue = Queue::new(Overflow::default(), 4096, None);
    queue.put(3);
    queue.producer.take().unwrap().fail("broken".into());
    assert_eq!(queue.read(10), ReadOutcome::Bytes(3));
    let error = queue.consumer.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.to_string(), "broken");
    assert_eq!(queue.read(10), ReadOutcome::End);

    let mut queue = Queue::new(Overflow::default(), 4096, None);
    drop(queue.producer.take());
    let error = queue.consumer.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.to_string(), "the producer is gone");
}

#[test]
fn who_leaves_is_noticed() {
    let mut queue = Queue::new(Overflow::Block { memory: TINY }, 4096, None);
    queue.put(5000);
    queue.producer.take().unwrap().leave();
    assert_eq!(queue.read(10), ReadOutcome::End);

    let mut queue = Queue::new(Overflow::Block { memory: TINY }, 4096, None);
    queue.put(5000);
    let Queue {
        consumer,
        producer,
        room,
        monitor,
        ..
    } = queue;
    drop(consumer);
    let fd = procwright_os::poll::Fd::new(&*room, procwright_os::poll::Flags::IN);
    assert!(procwright_os::poll::wait_one(fd, Deadline::NEVER).unwrap());
    assert!(matches!(producer.unwrap().area().unwrap(), Space::Closed));
    assert!(!monitor.wait_ended(Deadline::NEVER));
}

#[test]
fn a_descriptor_tells_of_bytes_and_of_the_end() {
    let mut queue = Queue::new(Overflow::Block { memory: TINY }, 4096, None);
    let readiness = queue.consumer.closer().readiness().unwrap();
    let is_ready = || {
        let fd = procwright_os::poll::Fd::new(&readiness, procwright_os::poll::Flags::IN);
        procwright_os::poll::wait_one(fd, Deadline::at(Instant::now())).unwrap()
    };
    assert!(!is_ready());
    queue.put(3);
    assert!(is_ready());
    queue.read(2);
    assert!(is_ready());
    // Exactly: no read has to find nothing first.
    queue.read(1);
    assert!(!is_ready());
    queue.put(1);
    queue.drain();
    assert!(!is_ready());
    queue.end();
    assert!(is_ready());
}

#[test]
fn a_descriptor_tells_of_the_close_for_ever() {
    for is_asked_for_first in [true, false] {
        let mut queue = Queue::new(Overflow::Block { memory: TINY }, 4096, None);
        let closer = queue.consumer.closer();
        let early = is_asked_for_first.then(|| closer.readiness().unwrap());
        closer.close();
        assert_eq!(
            queue.consumer.read(&mut [0; 4]).unwrap(),
            ReadOutcome::Empty
        );
        let late = closer.readiness().unwrap();
        for readiness in early.iter().chain([&late]) {
            let fd = procwright_os::poll::Fd::new(readiness, procwright_os::poll::Flags::IN);
            assert!(procwright_os::poll::wait_one(fd, Deadline::at(Instant::now())).unwrap());
        }
    }
}

#[test]
fn a_wait_has_a_deadline() {
    let mut queue = Queue::new(Overflow::Block { memory: TINY }, 4096, None);
    let since = Instant::now();
    let deadline = Deadline::at(since + Duration::from_millis(30));
    assert!(!queue.consumer.wait(deadline));
    assert!(since.elapsed() >= Duration::from_millis(30));
    queue.put(1);
    assert!(queue.consumer.wait(Deadline::NEVER));
    let seen = queue.monitor.figures();
    queue.put(1);
    assert!(queue.monitor.wait_moved(&seen, Deadline::NEVER));
    let seen = queue.monitor.figures();
    assert!(seen.lag_bytes == 2 && seen.lag > Duration::ZERO);
}

#[test]
fn what_cannot_be_read_back_is_lost_alone_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let policy = Overflow::Spill {
        memory: 64 << 10,
        disk: Some(1 << 20),
    };
    let mut queue = Queue::new(policy, 4096, Some(directory.path()));
    while queue.monitor.figures().spilled_bytes < 100_000 {
        queue.put(4096);
        std::thread::yield_now();
    }
    // The file is cut behind our back.
    {
        let mut state = queue.monitor.0.lock();
        let range = state.storage.disk.as_mut().unwrap().next().unwrap();
        rustix::fs::ftruncate(&range.file, 8192).unwrap();
    }
    queue.producer.take().unwrap().end();
    let mut lost = 0;
    loop {
        let mut buffer = [0; 4096];
        match queue.consumer.read(&mut buffer) {
            Ok(ReadOutcome::Bytes(n)) => queue.checked(&buffer[..n]),
            Ok(ReadOutcome::End) => break,
            Ok(item) => panic!("{item:?}"),
            Err(Broken::Lost { offset, length, .. }) => {
                assert_eq!(offset, queue.at);
                queue.at += length;
                lost += length;
            }
            Err(error) => panic!("{error}"),
        }
    }
    queue.balanced();
    assert_eq!(
        (queue.at, lost),
        (queue.put, queue.monitor.figures().lost_bytes)
    );
    assert!(lost > 0);
}

#[test]
fn a_directory_that_vanishes_costs_room_and_no_byte() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("spool");
    std::fs::create_dir(&place).unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let policy = Overflow::Spill {
        memory: 64 << 10,
        disk: Some(1 << 20),
    };
    let mut queue = Queue::new(policy, 4096, None);
    let theirs = Arc::clone(&told);
    let hook: Hook = Box::new(move |event| {
        assert!(matches!(event, Event::Degraded { .. }), "{event:?}");
        theirs.fetch_add(1, Ordering::Relaxed);
    });
    let disk = Some(SpillFiles::new(place.clone(), Some(1 << 20)));
    let (producer, consumer, monitor) = assemble(
        policy,
        4096,
        disk,
        Share::alone(),
        Arc::clone(&queue.room),
        hook,
    );
    (queue.producer, queue.consumer, queue.monitor) = (Some(producer), consumer, monitor);
    std::fs::remove_dir(&place).unwrap();
    assert_eq!(queue.put(100_000), 64 << 10);
    while told.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(queue.put(1), 0);
    queue.end();
    assert_eq!(queue.at, queue.put);
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert_eq!(queue.monitor.figures().spilled_bytes, 0);
}
