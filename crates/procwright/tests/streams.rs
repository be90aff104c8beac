//! Readers and writers of a child's streams, beyond reading and writing: interrupts,
//! gaps, readiness.

mod common;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;
use test_support::alone;

use common::{Census, child, eventually, sys};
use procwright::process::{Exit, Signal};
use procwright::stream::{Chunk, Closed, MergedItem, Patience, Reader};
use procwright::wait::{Event, Outcome, Want};
use procwright::{Overflow, Stdin, WaitSet};
use test_children::{Pattern, Stream};

/// The bare pipe, and a stream that is read ahead.
const BOTH: [Option<Overflow>; 2] = [
    None,
    Some(Overflow::Spill {
        memory: 1 << 20,
        disk: None,
    }),
];

alone! {
    fn an_interrupt_ends_a_read_which_can_be_taken_up_again() {
        for overflow in BOTH {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let (stdout, mut stdin) = (cat.stdout.take().unwrap(), cat.stdin.take().unwrap());
            let (mut interrupt, mut bell) = std::io::pipe().unwrap();
            let twin = interrupt.try_clone().unwrap();
            let patience = Patience::NEVER_ENDING.or_readable(twin.as_fd());
            std::thread::scope(|scope| {
                let readers: Vec<_> = (0..20)
                    .map(|_| scope.spawn(|| stdout.read_with(&mut [0; 8], patience).unwrap_err()))
                    .collect();
                bell.write_all(b"!").unwrap();
                for reader in readers {
                    assert_eq!(reader.join().unwrap().kind(), std::io::ErrorKind::Interrupted);
                }
            });
            interrupt.read_exact(&mut [0]).unwrap();
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| stdout.read_with(&mut [0; 8], patience).unwrap());
                stdin.write_all(b"abc").unwrap();
                assert_eq!(reader.join().unwrap(), Chunk::Bytes(3));
                let closed = scope.spawn(|| stdout.read_with(&mut [0; 8], patience).unwrap_err());
                stdout.close();
                assert!(Closed::is(&closed.join().unwrap()));
            });
        }
    }
}

alone! {
    fn an_interrupt_ends_a_write() {
        let mut deaf = child(&["sleep-forever"]).stdin(Stdin::Pipe).spawn().unwrap();
        let stdin = deaf.stdin.take().unwrap();
        let (interrupt, mut bell) = std::io::pipe().unwrap();
        bell.write_all(b"!").unwrap();
        let patience = Patience::NEVER_ENDING.or_readable(interrupt.as_fd());
        // A write with room does not wait, and is not interrupted.
        let mut written = 0;
        let error = loop {
            match stdin.write_with(&[7; 4096], patience) {
                Ok(n) => written += n,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
        assert!(written >= 4096, "{written}");
        deaf.signal(Signal::KILL).unwrap();
        deaf.wait(None).unwrap();
    }
}

alone! {
    fn gaps_are_told_where_they_are() {
        let memory = 64 << 10;
        let size = 8 << 20;
        for overflow in [Overflow::DropOldest { memory }, Overflow::DropNewest { memory }] {
            let mut flood = child(&["flood", "--out", "8M"]).spawn_with(overflow).unwrap();
            assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
            let stdout = flood.stdout.take().unwrap();
            let pattern = Pattern::new(Stream::Stdout, size as usize);
            let (mut at, mut gaps) = (0, 0);
            let mut buffer = vec![0; 4096];
            loop {
                match stdout.read_with(&mut buffer, Patience::NEVER_ENDING).unwrap() {
                    Chunk::Bytes(n) => {
                        assert_eq!(pattern.mismatch(at, &buffer[..n]), None, "at {at}");
                        at += n as u64;
                    }
                    Chunk::Gap(n) => {
                        at += n;
                        gaps += n;
                    }
                    Chunk::End => break,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(at, size);
            assert_eq!(gaps, stdout.figures().unwrap().dropped_bytes);
            assert!(gaps > 0);
        }
    }
}

/// Whether the descriptor is readable now.
fn is_ready(readiness: &procwright::stream::Readiness) -> bool {
    let mut set = WaitSet::new().unwrap();
    set.add(readiness.clone(), Event::Exited).unwrap();
    set.wait(Want::Any, Duration::ZERO).unwrap().outcome == Outcome::Satisfied
}

alone! {
    fn readiness_tells_of_bytes_of_the_end_and_of_nothing_else() {
        for overflow in BOTH {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let (stdout, mut stdin) = (cat.stdout.take().unwrap(), cat.stdin.take().unwrap());
            let (readable, writable) = (stdout.readiness().unwrap(), stdin.readiness().unwrap());
            assert!(!is_ready(&readable) && is_ready(&writable));
            let mut set = WaitSet::new().unwrap();
            set.add(stdout.readiness().unwrap(), Event::Exited).unwrap();
            stdin.write_all(b"abc").unwrap();
            assert_eq!(set.wait(Want::Any, None).unwrap().ended.len(), 1);
            assert_eq!(stdout.read_for(&mut [0; 2], Duration::ZERO).unwrap(), 2);
            assert!(is_ready(&readable));
            assert_eq!(stdout.read_for(&mut [0; 2], Duration::ZERO).unwrap(), 1);
            assert!(!is_ready(&readable), "nothing is left");
            drop(stdin);
            assert!(is_ready(&writable), "closed by its end");
            set.add(readable.clone(), Event::Exited).unwrap();
            assert_eq!(set.wait(Want::Any, None).unwrap().ended.len(), 1);
            assert_eq!(stdout.read_for(&mut [0; 2], Duration::ZERO).unwrap(), 0);
            assert!(is_ready(&readable));
        }
    }
}

alone! {
    fn a_set_is_resumed_by_a_close_from_elsewhere() {
        for overflow in BOTH {
            let mut quiet = child(&["sleep-forever"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let (stdout, stdin) = (quiet.stdout.take().unwrap(), quiet.stdin.take().unwrap());
            while stdin.write_for(&[0; 4096], Duration::ZERO).is_ok() {}
            for (readiness, close) in [
                (stdout.readiness().unwrap(), Box::new(|| stdout.close()) as Box<dyn Fn() -> bool + Send>),
                (stdin.readiness().unwrap(), Box::new(|| stdin.close())),
            ] {
                assert!(!is_ready(&readiness));
                let mut set = WaitSet::new().unwrap();
                set.add(readiness.clone(), Event::Exited).unwrap();
                std::thread::scope(|scope| {
                    let waiting = scope.spawn(move || set.wait(Want::Any, None).unwrap().ended.len());
                    assert!(close());
                    assert_eq!(waiting.join().unwrap(), 1);
                });
                assert!(is_ready(&readiness) && is_ready(&readiness), "for ever");
            }
            // Readiness is asked for when the stream is closed already.
            assert!(is_ready(&stdout.readiness().unwrap()) && is_ready(&stdin.readiness().unwrap()));
            quiet.signal(Signal::KILL).unwrap();
            quiet.wait(None).unwrap();
        }
    }
}

alone! {
    fn a_watched_stream_still_ends_at_once() {
        for overflow in BOTH {
            let mut yes = child(&["flood-forever"]).spawn_with(overflow).unwrap();
            let stdout = yes.stdout.take().unwrap();
            let readiness = stdout.readiness().unwrap();
            let weak = stdout.downgrade();
            assert!(weak.upgrade().is_some());
            // The last clone.
            drop(stdout);
            assert!(weak.upgrade().is_none());
            assert_eq!(yes.wait(None).unwrap().and_then(Exit::signal), Some(Signal::PIPE));
            assert!(is_ready(&readiness));

            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let stdin = cat.stdin.take().unwrap();
            let _readiness = stdin.readiness().unwrap();
            stdin.close();
            assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
        }
    }
}

alone! {
    fn readiness_leaves_nothing_behind_and_is_none_of_a_forks() {
        let before = Census::now();
        for overflow in BOTH {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            let (stdout, stdin) = (cat.stdout.take().unwrap(), cat.stdin.take().unwrap());
            let _twice = (stdout.readiness().unwrap(), stdout.readiness().unwrap());
            let code = sys::fork_running(|| {
                let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::Unsupported;
                let all = stdout.readiness().is_err_and(refused) && stdin.readiness().is_err_and(refused);
                i32::from(!all)
            });
            assert_eq!(code, 0);
            drop(stdin);
            cat.wait(None).unwrap();
        }
        before.comes_back();
    }
}

alone! {
    fn both_streams_of_a_child_as_one() {
        let before = Census::now();
        {
            let mut flood = child(&["flood", "--out", "3M", "--err", "2M"]).merged().spawn().unwrap();
            assert!(flood.stdout.is_none() && flood.stderr.is_none());
            let merged = flood.merged.take().unwrap();
            let mut streams = [Vec::new(), Vec::new()];
            while let Some(item) = merged.next_line(Patience::NEVER_ENDING).unwrap() {
                match item {
                    MergedItem::Line(line) => streams[line.stream() as usize].extend_from_slice(line.bytes()),
                    other => panic!("{other:?}"),
                }
            }
            for (stream, data) in [Stream::Stdout, Stream::Stderr].into_iter().zip(&streams) {
                assert_eq!(Pattern::new(stream, data.len()).mismatch(0, data), None);
            }
            assert_eq!((streams[0].len(), streams[1].len()), (3 << 20, 2 << 20));
            assert_eq!(merged.figures().unwrap().bytes_out, 5 << 20);
            assert!(merged.blocked().is_some());
            assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
            let report = flood.report().unwrap();
            let infos = [report.stdout_info, report.stderr_info].map(Option::unwrap);
            assert_eq!(infos.each_ref().map(|info| info.bytes), [3 << 20, 2 << 20]);
            assert!(infos.iter().all(|info| info.complete && info.dropped_bytes == 0));
        }
        before.comes_back();
    }
}

alone! {
    fn what_is_dropped_of_two_streams_is_told_of_each() {
        let overflow = Overflow::DropNewest { memory: 64 << 10 };
        let mut flood = child(&["flood", "--out", "3M", "--err", "2M"]).merged().spawn_with(overflow).unwrap();
        let merged = flood.merged.take().unwrap();
        assert_eq!(flood.wait(None).unwrap(), Some(Exit::Code(0)));
        let (mut came, mut gaps) = ([0, 0], 0);
        while let Some(item) = merged.next_line(Patience::NEVER_ENDING).unwrap() {
            match item {
                MergedItem::Line(line) => came[line.stream() as usize] += line.bytes().len() as u64,
                MergedItem::Gap(n) => gaps += n,
                other => panic!("{other:?}"),
            }
        }
        let report = flood.report().unwrap();
        let infos = [report.stdout_info, report.stderr_info].map(Option::unwrap);
        assert_eq!(infos.each_ref().map(|info| info.bytes), [3 << 20, 2 << 20]);
        assert_eq!(infos.each_ref().map(|info| info.kept_bytes), came);
        assert_eq!(infos.iter().map(|info| info.dropped_bytes).sum::<u64>(), gaps);
    }
}

#[test]
fn what_cannot_be_merged_is_refused_before_anything_starts() {
    for overflow in [None, Some(Overflow::DropOldest { memory: 1 << 20 })] {
        let error = child(&["exit", "0"])
            .merged()
            .spawn_with(overflow)
            .unwrap_err();
        assert!(matches!(error, procwright::Error::Invalid(_)), "{error}");
        assert!(error.to_string().contains("merged"), "{error}");
    }
    let error = child(&["exit", "0"])
        .merged()
        .stderr(procwright::Sink::Null)
        .spawn()
        .unwrap_err();
    assert!(error.to_string().contains("both streams"), "{error}");
}

alone! {
    fn a_child_that_is_over_keeps_no_descriptor_and_no_memory() {
        let before = Census::now();
        for overflow in [Some(Overflow::default()), None] {
            let mut cat = child(&["cat"]).stdin(Stdin::Pipe).spawn_with(overflow).unwrap();
            std::thread::scope(|scope| {
                let (mut stdout, mut stderr) = (cat.stdout.as_ref().unwrap(), cat.stderr.as_ref().unwrap());
                let ends = [
                    // Both threads are asleep for most of it, each in its own way.
                    scope.spawn(move || stdout.read_to_end(&mut Vec::new()).unwrap()),
                    scope.spawn(move || stderr.read_to_end(&mut Vec::new()).unwrap()),
                ];
                let mut stdin = cat.stdin.take().unwrap();
                stdin.write_all(&[b'x'; 100_000]).unwrap();
                // A wait that has to sleep.
                assert_eq!(cat.wait(Duration::from_millis(1)).unwrap(), None);
                drop(stdin);
                assert_eq!(ends.map(|end| end.join().unwrap()), [100_000, 0]);
            });
            assert_eq!(cat.wait(None).unwrap(), Some(Exit::Code(0)));
            // A bare pipe is kept until its reader is closed.
            let streams = [&cat.stdout, &cat.stderr].map(|stream| stream.as_ref().unwrap().clone());
            let kept = |streams: &[Reader]| {
                eventually(|| common::threads() == before.threads);
                assert!(streams.iter().all(Reader::close));
                common::fds().len() - before.fds.len()
            };
            if overflow.is_some() {
                assert_eq!(kept(&[]), 0, "{:?}", common::fds());
                let memory = streams.each_ref().map(|stream| stream.figures().unwrap().memory_bytes);
                assert_eq!(memory, [0, 0]);
            }
            let report = cat.report().unwrap();
            assert!(report.stdout_info.unwrap().complete);
            assert!(kept(&streams) <= 2, "{:?}", common::fds());
            drop((cat, streams));
        }
        before.comes_back();
    }
}
