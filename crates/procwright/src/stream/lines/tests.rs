use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::line_buffer::BUFFER;
use super::*;
use crate::stream::{Chunk, Closed, Patience, Reader};
use procwright_os::time::Timeout;
use test_support::forked as testing;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Got {
    Line(Vec<u8>),
    Gap(u64),
    TooLong,
}

fn line(bytes: impl AsRef<[u8]>) -> Got {
    Got::Line(bytes.as_ref().to_vec())
}

/// What comes in: bytes, or a gap.
type Came = Result<Vec<u8>, u64>;

/// All lines of what comes in these pieces.
fn lines(came: &[Came], framing: &Framing, limit: usize) -> Vec<Got> {
    let frame = Frame::new(framing.clone()).unwrap();
    let mut buffer = LineBuffer::default();
    let mut came: VecDeque<Came> = came.to_vec().into();
    let mut got = Vec::new();
    loop {
        match buffer.available(&frame, limit) {
            None => buffer
                .fill(|room| {
                    let Some(next) = came.pop_front() else {
                        return Ok(Chunk::End);
                    };
                    Ok(match next {
                        Err(gap) => Chunk::Gap(gap),
                        Ok(bytes) => {
                            let n = bytes.len().min(room.len());
                            room[..n].copy_from_slice(&bytes[..n]);
                            if n < bytes.len() {
                                came.push_front(Ok(bytes[n..].to_vec()));
                            }
                            Chunk::Bytes(n)
                        }
                    })
                })
                .unwrap(),
            Some(Available::Line(cut)) => {
                got.push(line(&buffer.bytes()[..cut.length]));
                buffer.take_cut(&frame, cut);
            }
            Some(Available::AfterBuffer) => match buffer.take_after().unwrap() {
                Chunk::Gap(n) => got.push(Got::Gap(n)),
                _ => return got,
            },
            Some(Available::TooLong) => {
                got.push(Got::TooLong);
                return got;
            }
        }
    }
}

fn framing(separator: Separator, max_length: Option<usize>, too_long: TooLong) -> Framing {
    Framing {
        separator,
        max_length,
        too_long,
    }
}

fn unlimited(separator: Separator) -> Framing {
    framing(separator, None, TooLong::Split)
}

fn pieces(text: &str) -> Vec<Came> {
    text.split('|').map(|piece| Ok(piece.into())).collect()
}

fn texts(got: Vec<Got>) -> Vec<String> {
    got.into_iter()
        .map(|got| match got {
            Got::Line(bytes) => String::from_utf8(bytes).unwrap(),
            Got::Gap(n) => format!("<{n}>"),
            Got::TooLong => "<too long>".into(),
        })
        .collect()
}

#[test]
fn returns_and_newlines_may_come_apart() {
    let framing = unlimited(Separator::NewlineOrReturn);
    let all = |text| texts(lines(&pieces(text), &framing, usize::MAX));
    assert_eq!(all("a\r\nb\rc\n"), ["a\r\n", "b\r", "c\n"]);
    assert_eq!(all("a\r|\nb|\r|\r|\n\n"), ["a\r", "b\r", "\r", "\n"]);
    assert_eq!(all("a\r|\n"), ["a\r"]);
}

#[test]
fn no_piece_ends_within_a_separator() {
    let framing = |most| framing(Separator::Bytes(b"XY".into()), Some(most), TooLong::Split);
    let all = |text, most| texts(lines(&pieces(text), &framing(most), usize::MAX));
    assert_eq!(all("abcXYd", 4), ["abc", "XY", "d"]);
    assert_eq!(all("ab|c|X|Y|d", 4), ["abc", "XY", "d"]);
    assert_eq!(all("abcX|Zd", 4), ["abcX", "Zd"]);
    assert_eq!(all("abcdXY", 2), ["ab", "cd", "XY"]);
    assert_eq!(all("abX", 3), ["abX"]);
    // The caller's own limit may, and the line ends all the same.
    let limited = texts(lines(&pieces("aXYbXY"), &framing(9), 1));
    assert_eq!(limited, ["a", "X", "Y", "b", "X", "Y"]);
}

#[test]
fn what_is_too_long_is_told_as_soon_as_it_is_known() {
    let framing = framing(Separator::Newline, Some(4), TooLong::Fail);
    let all = |text| texts(lines(&pieces(text), &framing, usize::MAX));
    assert_eq!(all("abc\nabcd\n"), ["abc\n", "<too long>"]);
    assert_eq!(all("abc\n|abcd"), ["abc\n", "abcd"]);
    assert_eq!(all("abc\n|abc|de"), ["abc\n", "<too long>"]);
    // Also if parts of it were given out before.
    assert_eq!(
        texts(lines(&pieces("abc|def"), &framing, 3)),
        ["abc", "<too long>"]
    );
}

#[test]
fn a_gap_parts_lines() {
    for separator in [
        Separator::Newline,
        Separator::NewlineOrReturn,
        Separator::Bytes(b"\r\n".into()),
    ] {
        let came = [
            Ok(b"one\r\ntw".to_vec()),
            Err(7),
            Ok(b"o\r\n".to_vec()),
            Err(1),
            Err(2),
        ];
        let got = lines(&came, &unlimited(separator), usize::MAX);
        assert_eq!(texts(got), ["one\r\n", "tw", "<7>", "o\r\n", "<1>", "<2>"]);
    }
    // What comes behind it is no rest of what came before.
    let came = [Ok(b"a\r".to_vec()), Err(1), Ok(b"\nb".to_vec())];
    let got = lines(&came, &unlimited(Separator::NewlineOrReturn), usize::MAX);
    assert_eq!(texts(got), ["a\r", "<1>", "\n", "b"]);
    let came = [Ok(b"aX".to_vec()), Err(1), Ok(b"Yb".to_vec())];
    let got = lines(
        &came,
        &unlimited(Separator::Bytes(b"XY".into())),
        usize::MAX,
    );
    assert_eq!(texts(got), ["aX", "<1>", "Yb"]);
}

#[test]
fn what_cannot_be_used_is_refused() {
    let refused = |framing: Framing| Frame::new(framing).unwrap_err().what().to_owned();
    assert_eq!(
        refused(unlimited(Separator::Bytes(Vec::new()))),
        "separator"
    );
    for too_long in [TooLong::Split, TooLong::Fail] {
        assert_eq!(
            refused(framing(Separator::Newline, Some(0), too_long)),
            "max_length"
        );
        let three = Separator::Bytes(b"abc".into());
        assert_eq!(refused(framing(three, Some(2), too_long)), "max_length");
    }
}

#[test]
fn an_endless_line_takes_little_memory() {
    let frame = Frame::new(framing(Separator::Newline, Some(1000), TooLong::Split)).unwrap();
    let mut buffer = LineBuffer::default();
    let (mut left, mut got) = (100_000_000, 0);
    while left > 0 {
        buffer
            .fill(|room| {
                let n = room.len().min(left);
                room[..n].fill(b'x');
                left -= n;
                Ok(Chunk::Bytes(n))
            })
            .unwrap();
        while let Some(Available::Line(cut)) = buffer.available(&frame, usize::MAX) {
            got += cut.length;
            buffer.take_cut(&frame, cut);
        }
        assert!(buffer.memory() <= 4 * BUFFER, "{}", buffer.memory());
    }
    assert_eq!(got, 100_000_000);
}

#[test]
fn a_long_line_leaves_no_memory_behind() {
    let frame = Frame::new(Framing::default()).unwrap();
    let mut buffer = LineBuffer::default();
    let mut long = vec![b'x'; 20 << 20];
    long.extend_from_slice(b"\nshort\nrest");
    let mut rest = &long[..];
    let mut got = Vec::new();
    while !rest.is_empty() || got.len() < 2 {
        match buffer.available(&frame, usize::MAX) {
            Some(Available::Line(cut)) => {
                got.push(cut.length);
                buffer.take_cut(&frame, cut);
            }
            None => buffer
                .fill(|room| Ok(Chunk::Bytes(io::Read::read(&mut rest, room)?)))
                .unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(got, [(20 << 20) + 1, 6]);
    buffer.fill(|_| Ok(Chunk::Bytes(0))).unwrap();
    assert!(buffer.memory() <= 2 * BUFFER, "{}", buffer.memory());
}

/// The reference: what the lines of a whole are, by looking at it slowly.
fn expected(whole: &[u8], separator: &[u8], max_length: Option<usize>) -> Vec<Got> {
    let mut got = Vec::new();
    let mut rest = whole;
    while !rest.is_empty() {
        let start = rest
            .windows(separator.len())
            .position(|window| window == separator);
        let end = start.map_or(rest.len(), |start| start + separator.len());
        let (mut this, later) = rest.split_at(end);
        let most = max_length.unwrap_or(usize::MAX);
        while this.len() > most {
            let cut = start.map_or(most, |_| most.min(this.len() - separator.len()));
            let (piece, left) = this.split_at(cut.max(1));
            got.push(line(piece));
            this = left;
        }
        got.push(line(this));
        rest = later;
    }
    got
}

fn cut_up(whole: &[u8], sizes: &[usize]) -> Vec<Came> {
    let mut came = Vec::new();
    let mut rest = whole;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, left) = rest.split_at(size.min(rest.len()));
        came.push(Ok(piece.to_vec()));
        rest = left;
    }
    came
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"aabX\r\n\0\xff".to_vec());
    prop::collection::vec(byte, 0..60)
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1usize..7, 1..6)
}

proptest! {
    #[test]
    fn wherever_it_is_cut_the_lines_are_the_same(
        whole in text(),
        sizes in sizes(),
        separator in prop::sample::select(vec!["\n", "\r\n", "aa", "aab", "X\0X", "\0"]),
        max_length in prop::option::of(3usize..12),
    ) {
        let separator = separator.as_bytes();
        let framing = framing(
            Separator::Bytes(separator.to_vec()),
            max_length,
            TooLong::Split,
        );
        let got = lines(&cut_up(&whole, &sizes), &framing, usize::MAX);
        prop_assert_eq!(&got, &expected(&whole, separator, max_length));
        if separator == b"\n" {
            let newline = Framing { separator: Separator::Newline, ..framing };
            prop_assert_eq!(&lines(&cut_up(&whole, &sizes), &newline, usize::MAX), &got);
        }
    }

    #[test]
    fn a_line_is_too_long_wherever_it_is_cut(
        whole in text(),
        sizes in sizes(),
        separator in prop::sample::select(vec!["\n", "aa", "aab"]),
        max_length in 3usize..12,
    ) {
        let separator = separator.as_bytes();
        let framing = framing(
            Separator::Bytes(separator.to_vec()),
            Some(max_length),
            TooLong::Fail,
        );
        let mut expected = expected(&whole, separator, None);
        let is_too_long = |got: &Got| matches!(got, Got::Line(line) if line.len() > max_length);
        if let Some(at) = expected.iter().position(is_too_long) {
            expected.truncate(at);
            expected.push(Got::TooLong);
        }
        prop_assert_eq!(lines(&cut_up(&whole, &sizes), &framing, usize::MAX), expected);
    }

    #[test]
    fn no_byte_is_lost_and_no_line_glued(
        parts in prop::collection::vec((text(), sizes()), 1..4),
        separator in prop::sample::select(vec!["\n", "aa", "aab", "X\0X"]),
        max_length in prop::option::of(3usize..12),
        limit in prop_oneof![1usize..5, Just(usize::MAX)],
    ) {
        let framing = framing(
            Separator::Bytes(separator.as_bytes().to_vec()),
            max_length,
            TooLong::Split,
        );
        let mut came = Vec::new();
        for (whole, sizes) in &parts {
            came.extend(cut_up(whole, sizes));
            came.push(Err(9));
        }
        let got = lines(&came, &framing, limit);
        // Between gaps each byte is there; with all of a line in one piece or in
        // several, its end is where it was.
        let parted: Vec<Vec<Got>> = got
            .split(|got| *got == Got::Gap(9))
            .map(<[Got]>::to_vec)
            .collect();
        prop_assert_eq!(parted.len(), parts.len() + 1);
        for (got, (whole, _)) in parted.iter().zip(&parts) {
            let mut all = Vec::new();
            for got in got {
                let Got::Line(line) = got else { panic!("{got:?}") };
                prop_assert!(!line.is_empty() && line.len() <= limit);
                prop_assert!(line.len() <= max_length.unwrap_or(usize::MAX));
                all.extend_from_slice(line);
                // No end of a line in the middle of a piece.
                let inner = &line[..line.len() - 1];
                prop_assert!(memchr::memmem::find(inner, separator.as_bytes()).is_none());
            }
            prop_assert_eq!(&all, whole);
        }
    }

    #[test]
    fn newlines_and_returns_however_they_come(whole in text(), sizes in sizes()) {
        let framing = unlimited(Separator::NewlineOrReturn);
        let stripped: Vec<Vec<u8>> = lines(&cut_up(&whole, &sizes), &framing, usize::MAX)
            .into_iter()
            .map(|got| match got {
                Got::Line(line) => framing.separator.strip(&line).to_vec(),
                other => panic!("{other:?}"),
            })
            .collect();
        let text: String = whole.iter().map(|&byte| char::from(byte)).collect();
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut expected: Vec<Vec<u8>> = text
            .split('\n')
            .map(|line| line.chars().map(|c| c as u32 as u8).collect())
            .collect();
        if expected.last().is_some_and(Vec::is_empty) {
            expected.pop();
        }
        prop_assert_eq!(stripped, expected);
    }
}

fn reader(framing: Framing) -> (Arc<LineReader>, io::PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let reader = Reader::of_pipe(reader.into(), None, Arc::default()).unwrap();
    (Arc::new(LineReader::new(reader, framing).unwrap()), writer)
}

#[test]
fn lines_and_bytes_by_turns() {
    let (reader, mut writer) = reader(unlimited(Separator::NewlineOrReturn));
    writer.write_all(b"one\r").unwrap();
    let patience = Patience::NEVER_ENDING;
    let next = || reader.next_line(patience).unwrap();
    assert_eq!(next(), Some(LineItem::from("one")));
    writer.write_all(b"\ntwo\nthree").unwrap();
    // The newline is that of the line.
    let mut some = [0; 3];
    assert_eq!(
        reader.read_with(&mut some, patience).unwrap(),
        Chunk::Bytes(3)
    );
    assert_eq!(&some, b"two");
    assert_eq!(next(), Some(LineItem::from("")));
    let taken = reader.try_bytes(3, |item| (item == Item::Line(b"thr"), 2));
    assert_eq!(taken.unwrap(), Some(true));
    drop(writer);
    assert_eq!(next(), Some(LineItem::from("ree")));
    assert_eq!(next(), None);
    assert_eq!(reader.read_with(&mut some, patience).unwrap(), Chunk::End);
    assert_eq!(reader.lines().count(), 0);
}

#[test]
fn a_line_that_fails_ends_the_iteration_and_stays() {
    let (reader, mut writer) = reader(framing(Separator::Newline, Some(4), TooLong::Fail));
    writer.write_all(b"abc\nabcdef\n").unwrap();
    drop(writer);
    let got: Vec<_> = reader.lines().collect();
    assert_eq!(got.len(), 2);
    let error = got[1].as_ref().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().contains('4'));
    let mut rest = [0; 16];
    let n = reader.read_with(&mut rest, Patience::NEVER_ENDING).unwrap();
    assert_eq!(n, Chunk::Bytes(7));
}

#[test]
fn a_close_releases_all_who_wait_for_a_line() {
    let (reader, mut writer) = reader(Framing::default());
    let (interrupt, _never) = io::pipe().unwrap();
    writer.write_all(b"no end").unwrap();
    let waiting: Vec<_> = (0..60)
        .map(|number| {
            let reader = Arc::clone(&reader);
            let interrupt = interrupt.try_clone().unwrap();
            thread::spawn(move || {
                let patience = match number % 2 {
                    0 => Patience::NEVER_ENDING,
                    _ => Patience::NEVER_ENDING.or_readable(interrupt.as_fd()),
                };
                match number % 3 {
                    0 => reader.await_line(usize::MAX, patience).unwrap_err(),
                    1 => reader.lines().find_map(Result::err).unwrap(),
                    _ => reader.next_line(patience).unwrap_err(),
                }
            })
        })
        .collect();
    // One of them holds what has come and waits for the rest.
    while reader.held.try_lock().is_some() {
        thread::yield_now();
    }
    assert!(reader.close());
    assert!(!reader.close());
    for waiting in waiting {
        assert!(Closed::is(&waiting.join().unwrap()));
    }
    assert!(Closed::is(&reader.try_line(9, |_| ()).unwrap_err()));
    assert!(writer.write_all(b"x").is_err());
}

#[test]
fn who_queues_for_a_line_can_be_interrupted() {
    let (reader, mut writer) = reader(Framing::default());
    let (interrupt, mut bell) = io::pipe().unwrap();
    let patience = Patience::NEVER_ENDING.or_readable(interrupt.as_fd());
    thread::scope(|scope| {
        let blocked = scope.spawn(|| reader.next_line(Patience::NEVER_ENDING).unwrap());
        while reader.held.try_lock().is_some() {
            thread::yield_now();
        }
        let queued = scope.spawn(|| reader.await_line(usize::MAX, patience).unwrap_err());
        bell.write_all(b"!").unwrap();
        assert_eq!(queued.join().unwrap().kind(), io::ErrorKind::Interrupted);
        let begun = Instant::now();
        let short = Patience::from(Timeout::after(Duration::from_millis(20)));
        let error = reader.await_bytes(short).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= Duration::from_millis(20));
        writer.write_all(b"line\n").unwrap();
        assert_eq!(blocked.join().unwrap(), Some(LineItem::from("line")));
    });
}

/// What never waits is told of the end of its patience all the same, and keeps what it has.
#[test]
fn a_line_that_goes_on_and_on_can_be_interrupted() {
    let (reader, mut writer) = reader(Framing::default());
    let (interrupt, mut bell) = io::pipe().unwrap();
    bell.write_all(b"!").unwrap();
    let patience = Patience::NEVER_ENDING.or_readable(interrupt.as_fd());
    let short = Duration::from_millis(20);
    thread::scope(|scope| {
        scope.spawn(|| while writer.write_all(&[b'.'; 4096]).is_ok() {});
        let error = reader.next_line(patience).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        for patience in [Patience::from(Duration::ZERO), Patience::from(short)] {
            let error = reader.next_line(patience).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(patience.deadline().reached(Instant::now()));
        }
        assert!(reader.try_held(|held, _| (held.len(), 0)).unwrap() > Some(0));
        reader.close();
    });
}

#[test]
fn a_fork_touches_no_lock() {
    let (reader, mut writer) = reader(Framing::default());
    writer.write_all(b"one\ntwo\n").unwrap();
    reader
        .await_line(usize::MAX, Patience::NEVER_ENDING)
        .unwrap();
    let held = reader.held.lock();
    let child = testing::fork();
    if child == 0 {
        let refused = |error: io::Error| error.kind() == io::ErrorKind::Unsupported;
        let all = reader.try_line(9, |_| ()).is_err_and(refused)
            && reader.next_line(Patience::NEVER_ENDING).is_err_and(refused)
            && reader
                .read_with(&mut [0; 4], Patience::NEVER_ENDING)
                .is_err_and(refused);
        testing::exit(i32::from(!all));
    }
    assert_eq!(testing::wait_code(child), 0);
    drop(held);
    assert_eq!(
        reader.lines().next().unwrap().unwrap(),
        LineItem::from("one")
    );
}
