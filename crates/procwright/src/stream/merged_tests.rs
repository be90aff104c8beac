use std::io::{PipeWriter, Write};
use std::thread;
use std::time::Instant;

use super::*;
use crate::drain::{Drain, MergeInput, Pump, Store};
use crate::spool::Overflow;
use crate::spool::elastic;
use crate::stream::{Closed, Frame, QueueReader, Separator, TooLong};
use StdStream::{Stderr, Stdout};
use procwright_os::time::Deadline;
use test_support::forked as testing;

const FOREVER: Patience<'static> = Patience::NEVER_ENDING;

/// A program's two pipes, and their reader.
struct Merged {
    reader: MergedReader,
    pipes: PerStream<PipeWriter>,
    written: u64,
}

impl Merged {
    fn new(policy: Overflow) -> Merged {
        Merged::with_written(policy, PerStream::default())
    }

    /// With so much in the pipes before either is read.
    fn with_written(policy: Overflow, written: PerStream<&[u8]>) -> Merged {
        let pump = Pump::get().unwrap();
        let hook = Box::new(|_: &elastic::Event| {});
        let (producer, consumer, monitor) = elastic::elastic(policy, pump.wake(), hook).unwrap();
        let (halves, merge) = MergeInput::pair(producer);
        let mut drains = Vec::new();
        let length: usize = written.values().map(|bytes| bytes.len()).sum();
        let pipes = halves.zip(written).map(|(half, written)| {
            let (reader, mut writer) = io::pipe().unwrap();
            procwright_os::pipe::set_nonblocking(&reader).unwrap();
            writer.write_all(written).unwrap();
            let store = Store::Merged(half);
            drains.push(Drain::new(reader.into(), None, store, Instant::now()));
            writer
        });
        merge.know_pipes(PerStream::new(drains[0].weak_fd(), drains[1].weak_fd()));
        let flows = drains.into_iter().map(|drain| {
            let gauge = drain.gauge();
            (Some(pump.take(drain)), gauge)
        });
        let flows = flows.collect();
        let reader = Reader::of_queue(QueueReader::new(consumer, monitor, flows));
        let merged = Merged {
            reader: MergedReader::new(reader, merge.headers()).unwrap(),
            pipes,
            written: length as u64,
        };
        merged.read();
        merged
    }

    /// Waits until all that was written was read out of the pipes.
    fn read(&self) {
        let watchdog = Instant::now() + Duration::from_secs(60);
        while self.reader.figures().unwrap().bytes_in < self.written {
            assert!(Instant::now() < watchdog, "nobody reads it");
            thread::yield_now();
        }
    }

    /// Writes and waits until that was read out of the pipe.
    fn write(&mut self, stream: StdStream, bytes: &[u8]) {
        self.pipes[stream].write_all(bytes).unwrap();
        self.written += bytes.len() as u64;
        self.read();
    }

    fn end(self) -> MergedReader {
        self.reader
    }
}

fn next(reader: &MergedReader) -> Option<(StdStream, String)> {
    match reader.next_line(FOREVER).unwrap()? {
        MergedItem::Line(line) => {
            let text = String::from_utf8(line.text().to_vec()).unwrap();
            Some((line.stream(), text))
        }
        MergedItem::Gap(n) => panic!("{n} bytes are missing"),
    }
}

fn spill() -> Overflow {
    Overflow::default()
}

#[test]
fn lines_keep_the_order_in_which_they_were_written() {
    let mut merged = Merged::new(spill());
    let before = SystemTime::now();
    let mut expected = Vec::new();
    for number in 0..100 {
        let stream = [Stdout, Stderr][number % 7 % 2];
        merged.write(stream, format!("line {number}\n").as_bytes());
        expected.push((stream, format!("line {number}")));
    }
    let after = SystemTime::now();
    let figures = merged.reader.figures().unwrap();
    assert_eq!(figures.bytes_in, merged.written);
    assert_eq!(figures.lag_bytes, merged.written);
    let reader = merged.end();
    let mut latest = before;
    for expected in expected {
        let Some(MergedItem::Line(line)) = reader.next_line(FOREVER).unwrap() else {
            panic!("{expected:?} is missing");
        };
        assert_eq!(line.text(), expected.1.as_bytes());
        assert_eq!(line.bytes(), format!("{}\n", expected.1).as_bytes());
        assert_eq!(line.stream(), expected.0);
        // When it came and not when it was read here. (To the nanosecond, as it
        // was kept; nobody sets the clock meanwhile.)
        assert!(latest <= line.at() && line.at() <= after);
        latest = line.at();
    }
    assert_eq!(next(&reader), None);
    assert_eq!(next(&reader), None);
    let figures = reader.figures().unwrap();
    assert_eq!(
        (figures.bytes_in, figures.lag_bytes),
        (figures.bytes_out, 0)
    );
}

/// The lines, and which are ambiguous.
fn certainties(reader: &MergedReader) -> Vec<(String, bool)> {
    std::iter::from_fn(|| match reader.next_line(FOREVER).unwrap()? {
        MergedItem::Line(line) => {
            let text = String::from_utf8(line.text().to_vec()).unwrap();
            Some((text, line.is_ambiguous()))
        }
        MergedItem::Gap(n) => panic!("{n} bytes are missing"),
    })
    .collect()
}

#[test]
fn what_was_read_before_the_next_was_written_is_certain() {
    // The look at both pipes comes before a record is told of, which each write waits for.
    let mut merged = Merged::new(spill());
    for (stream, line) in [
        (Stdout, "1\n"),
        (Stderr, "2\n"),
        (Stdout, "3"),
        (Stderr, "4\n"),
        (Stdout, "5\n"),
    ] {
        merged.write(stream, line.as_bytes());
    }
    let expected = ["1", "2", "4", "35"].map(|line| (line.to_owned(), false));
    assert_eq!(certainties(&merged.end()), expected);
}

#[test]
fn what_met_in_the_pipes_is_ambiguous() {
    let written = PerStream::new(&b"1\n2\n"[..], &b"3\n4\n"[..]);
    let mut merged = Merged::with_written(spill(), written);
    // All of it was read by now.
    merged.write(Stdout, b"5\n");
    merged.write(Stderr, b"6\n");
    let mut lines = certainties(&merged.end());
    assert_eq!(
        lines.split_off(4),
        [("5".to_owned(), false), ("6".to_owned(), false)]
    );
    // Whichever stream was read first.
    let flags = lines
        .iter()
        .map(|(_, ambiguous)| *ambiguous)
        .collect::<Vec<_>>();
    assert_eq!(flags, [false, false, true, true]);
    lines.sort();
    let texts = lines
        .iter()
        .map(|(text, _)| text.as_str())
        .collect::<Vec<_>>();
    assert_eq!(texts, ["1", "2", "3", "4"]);
}

#[test]
fn a_line_that_another_framing_cuts_is_no_later_for_what_came_behind_it() {
    let written = PerStream::new(&b"a;b"[..], &b"e\n"[..]);
    let mut merged = Merged::with_written(spill(), written);
    // After a pause.
    merged.write(Stdout, b"c");
    let (reader, pipes) = (merged.reader, merged.pipes);
    let line = |item: io::Result<Option<MergedItem>>| match item {
        Ok(Some(MergedItem::Line(line))) => (line.text().to_vec(), line.is_ambiguous()),
        other => panic!("{other:?}"),
    };
    assert_eq!(line(reader.next_line(FOREVER)), (b"e".to_vec(), false));
    // Takes in all that is there, in which no line ends.
    let short = Patience::until(Deadline::at(Instant::now()));
    while reader.figures().unwrap().lag_bytes > 0 {
        assert!(reader.next_line(short).is_err());
    }
    drop(pipes);
    let semicolons = Frame::new(Framing {
        separator: Separator::Bytes(b";".into()),
        ..Framing::default()
    });
    let semicolons = semicolons.unwrap();
    let next = || line(reader.next_line_as(&semicolons, FOREVER));
    assert_eq!(next(), (b"a".to_vec(), true));
    assert_eq!(next(), (b"bc".to_vec(), false));
}

#[test]
fn byte_by_byte_nothing_is_mixed() {
    let mut merged = Merged::new(spill());
    let (out, err) = (b"abc\ndef\nrest", b"1\n22\n333\n44.");
    for at in 0..12 {
        merged.write(Stdout, &out[at..=at]);
        merged.write(Stderr, &err[at..=at]);
    }
    let reader = merged.end();
    let expected = [
        (Stderr, "1"),
        (Stdout, "abc"),
        (Stderr, "22"),
        (Stdout, "def"),
        (Stderr, "333"),
        // What has no end comes at the end, in the order of its last bytes.
        (Stdout, "rest"),
        (Stderr, "44."),
    ];
    for expected in expected {
        assert_eq!(next(&reader), Some((expected.0, expected.1.into())));
    }
    assert_eq!(next(&reader), None);
}

#[test]
fn what_went_to_disk_comes_back_in_order() {
    let mut merged = Merged::new(Overflow::Spill {
        memory: 64 << 10,
        disk: None,
    });
    let line = |number: u32| format!("{number}{}\n", "-".repeat(number as usize % 3000));
    for number in 0..2000 {
        let stream = [Stdout, Stderr][(number / 3 % 2) as usize];
        merged.write(stream, line(number).as_bytes());
    }
    assert!(merged.reader.figures().unwrap().spilled_bytes > 0);
    let reader = merged.end();
    for number in 0..2000 {
        let stream = [Stdout, Stderr][(number / 3 % 2) as usize];
        let text = line(number).trim_end().to_owned();
        assert_eq!(next(&reader), Some((stream, text)));
    }
    assert_eq!(next(&reader), None);
}

#[test]
fn both_in_a_flood_lose_nothing_while_the_queue_is_full() {
    let Merged { reader, pipes, .. } = Merged::new(Overflow::Block { memory: 4096 });
    let writers = pipes.map(|mut pipe| {
        thread::spawn(move || {
            for number in 0..20_000 {
                writeln!(pipe, "{number}").unwrap();
            }
        })
    });
    let mut expected = [0, 0];
    while let Some((stream, text)) = next(&reader) {
        assert_eq!(text, expected[stream as usize].to_string());
        expected[stream as usize] += 1;
    }
    assert_eq!(expected, [20_000, 20_000]);
    for (_, writer) in writers {
        writer.join().unwrap();
    }
}

#[test]
fn whole_reads_are_dropped_and_the_gap_is_in_its_place() {
    let mut merged = Merged::new(Overflow::DropNewest { memory: 4096 });
    let mut kept = 0;
    while merged.reader.figures().unwrap().dropped_bytes == 0 {
        let stream = [Stdout, Stderr][kept % 2];
        merged.write(stream, format!("{kept:099}\n").as_bytes());
        kept += 1;
    }
    // The last one was too much.
    kept -= 1;
    merged.write(Stdout, b"too much as well");
    let figures = merged.reader.figures().unwrap();
    assert_eq!(figures.dropped_bytes, 116, "bytes of the streams alone");
    for number in 0..kept {
        assert_eq!(
            next(&merged.reader),
            Some(([Stdout, Stderr][number % 2], format!("{number:099}")))
        );
    }
    let gap = merged.reader.next_line(FOREVER).unwrap();
    assert_eq!(gap, Some(MergedItem::Gap(116)));
    merged.write(Stderr, b"unfinished");
    merged.write(Stdout, b"again\n");
    assert_eq!(next(&merged.reader), Some((Stdout, "again".into())));
    let reader = merged.end();
    assert_eq!(next(&reader), Some((Stderr, "unfinished".into())));
    assert_eq!(next(&reader), None);
}

#[test]
fn a_close_and_an_interrupt_release_who_waits() {
    let mut merged = Merged::new(spill());
    merged.write(Stderr, b"no end");
    let (interrupt, mut bell) = io::pipe().unwrap();
    let patience = FOREVER.or_readable(std::os::fd::AsFd::as_fd(&interrupt));
    let reader = &merged.reader;
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..10)
            .map(|_| scope.spawn(|| reader.next_line(patience).unwrap_err()))
            .collect();
        bell.write_all(b"!").unwrap();
        for waiting in waiting {
            let error = waiting.join().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        }
        let waiting: Vec<_> = (0..10)
            .map(|_| scope.spawn(|| reader.next_line(FOREVER).unwrap_err()))
            .collect();
        assert!(reader.close());
        for waiting in waiting {
            assert!(Closed::is(&waiting.join().unwrap()));
        }
    });
    let short = Patience::until(Deadline::at(Instant::now()));
    assert!(Closed::is(&reader.next_line(short).unwrap_err()));
    // The writer learns of it.
    for (_, mut pipe) in merged.pipes {
        while pipe.write(b"x").is_ok() {
            thread::yield_now();
        }
    }
}

#[test]
fn lines_may_be_others() {
    let framing = Framing {
        separator: Separator::Bytes(b";".into()),
        max_length: Some(4),
        too_long: TooLong::Split,
    };
    let mut merged = Merged::new(spill());
    merged.write(Stdout, b"one;three;");
    let reader = merged.end().with_framing(framing).unwrap();
    for text in ["one", "thre", "e"] {
        assert_eq!(next(&reader), Some((Stdout, text.into())));
    }
    assert_eq!(next(&reader), None);
    let empty = Framing {
        separator: Separator::Bytes(Vec::new()),
        ..Framing::default()
    };
    assert!(reader.with_framing(empty).is_err());
}

#[test]
fn each_line_may_have_a_framing_of_its_own() {
    let frame = |separator: &[u8], max_length, too_long| {
        let separator = Separator::Bytes(separator.to_vec());
        Frame::new(Framing {
            separator,
            max_length,
            too_long,
        })
        .unwrap()
    };
    let pieces = frame(b"\n", Some(3), TooLong::Split);
    let fails = frame(b"\n", Some(3), TooLong::Fail);
    let mut merged = Merged::new(spill());
    merged.write(Stdout, b"a;b\nlong");
    merged.write(Stderr, b"c;d\n");
    merged.write(Stdout, b"er\nend\n");
    let reader = merged.end();
    let next_as = |frame: &Frame| match reader.next_line_as(frame, FOREVER).unwrap() {
        Some(MergedItem::Line(line)) => (line.stream(), line.bytes().to_vec()),
        other => panic!("{other:?}"),
    };
    let semicolons = frame(b";", None, TooLong::Split);
    assert_eq!(next_as(&semicolons), (Stdout, b"a;".to_vec()));
    assert_eq!(next(&reader), Some((Stdout, "b".into())));
    // A piece needs no end to be seen.
    assert_eq!(next_as(&pieces), (Stdout, b"lon".to_vec()));
    assert_eq!(next_as(&semicolons), (Stderr, b"c;".to_vec()));
    assert_eq!(next(&reader), Some((Stderr, "d".into())));
    let error = reader.next_line_as(&fails, FOREVER).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    // It stays where it is.
    assert_eq!(next(&reader), Some((Stdout, "ger".into())));
    assert_eq!(next_as(&pieces), (Stdout, b"end".to_vec()));
}

#[test]
fn a_fork_is_refused() {
    let merged = Merged::new(spill());
    let held = merged.reader.records.lock();
    let child = testing::fork();
    if child == 0 {
        let error = merged.reader.next_line(FOREVER).unwrap_err();
        let is_refused = error.kind() == io::ErrorKind::Unsupported;
        let none = merged.reader.figures().is_none() && merged.reader.blocked().is_none();
        testing::exit(i32::from(!(is_refused && none)));
    }
    assert_eq!(testing::wait_code(child), 0);
    drop(held);
}
