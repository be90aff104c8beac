//! Bytes that no program should write, in bounded memory.

mod common;

use common::{child, figure, scaled, status_bytes, timed};
use procwright::Overflow;
use procwright::process::Exit;
use procwright::stream::{
    Chunk, Framing, Item, LineReader, LineTooLong, Patience, Reader, Separator, TooLong,
};
use test_children::{Pattern, Stream, pattern_byte};
use test_support::alone;

const MIB: u64 = 1 << 20;

/// Reads a whole stream, and compares each byte.
fn is_whole(reader: &Reader, bytes: u64) {
    let mut buffer = vec![0; 64 << 10];
    let pattern = Pattern::new(Stream::Stdout, buffer.len());
    let mut at = 0;
    loop {
        match reader.read_with(&mut buffer, Patience::NEVER_ENDING) {
            Ok(Chunk::Bytes(n)) => {
                assert_eq!(pattern.mismatch(at, &buffer[..n]), None);
                at += n as u64;
            }
            Ok(Chunk::End) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(at, bytes);
}

alone! {
    fn one_byte_a_write() {
        // About a minute of it under `STRESS=1`.
        let bytes = scaled(300_000, 60_000_000);
        for overflow in [Some(Overflow::default()), None] {
            let command = child(&["flood", "--out", &bytes.to_string(), "--chunk", "1"]);
            let trickle = command.spawn_with(overflow).unwrap();
            let ((), took) = timed(|| is_whole(trickle.stdout.as_ref().unwrap(), bytes));
            assert_eq!(trickle.wait(None).unwrap(), Some(Exit::Code(0)));
            let peak = status_bytes("VmHWM");
            assert!(peak <= 32 * MIB, "{peak}");
            figure(&format!("{bytes} writes of one byte, {overflow:?}: {took:?}, {} KiB", peak >> 10));
        }
        // An unread stream takes no more memory: the pieces are packed.
        let bytes = 500_000;
        let command = child(&["flood", "--out", "500000", "--chunk", "1"]);
        let overflow = Overflow::Spill { memory: MIB, disk: Some(0) };
        let trickle = command.spawn_with(overflow).unwrap();
        assert_eq!(trickle.wait(None).unwrap(), Some(Exit::Code(0)));
        let stdout = trickle.stdout.as_ref().unwrap();
        let figures = stdout.figures().unwrap();
        assert!(figures.memory_peak_bytes <= MIB, "{figures:?}");
        is_whole(stdout, bytes);
    }
}

fn lines(args: &[&str], framing: Framing) -> LineReader {
    let mut child = child(args).spawn().unwrap();
    LineReader::new(child.stdout.take().unwrap(), framing).unwrap()
}

/// The next line, or none at the end.
fn next(lines: &LineReader) -> std::io::Result<Option<Vec<u8>>> {
    loop {
        let made = lines.try_line(usize::MAX, |item| match item {
            Item::Line(line) => Some(line.to_vec()),
            Item::End => None,
            item => panic!("{item:?}"),
        })?;
        match made {
            Some(line) => return Ok(line),
            None => lines.await_line(usize::MAX, Patience::NEVER_ENDING)?,
        }
    }
}

alone! {
    fn a_hundred_megabytes_without_a_newline() {
        let framing = Framing {
            max_length: Some(1 << 20),
            too_long: TooLong::Split,
            ..Framing::default()
        };
        let long = lines(&["big-line", "100M"], framing.clone());
        let mut length = 0;
        while let Some(piece) = next(&long).unwrap() {
            assert!(piece.len() <= 1 << 20);
            length += piece.len();
            let last = length == 100 << 20;
            assert_eq!(piece.last(), Some(if last { &b'\n' } else { &b'x' }));
        }
        assert_eq!(length, 100 << 20);
        let peak = status_bytes("VmHWM");
        assert!(peak <= 48 * MIB, "{peak}");
        figure(&format!("a line of 100 MiB in pieces: {} KiB at most", peak >> 10));

        let framing = Framing { too_long: TooLong::Fail, ..framing };
        let long = lines(&["big-line", "100M"], framing);
        for _ in 0..2 {
            let error = next(&long).unwrap_err();
            let inner = error.get_ref().and_then(|e| e.downcast_ref::<LineTooLong>());
            assert_eq!(inner.map(|e| e.max_length), Some(1 << 20));
        }
        // The bytes are still there.
        let mut buffer = vec![0; 1 << 20];
        let mut length = 0;
        loop {
            match long.read_with(&mut buffer, Patience::NEVER_ENDING).unwrap() {
                Chunk::Bytes(n) => length += n,
                Chunk::End => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(length, 100 << 20);
        assert!(status_bytes("VmHWM") <= 48 * MIB);
    }
}

alone! {
    fn lines_are_the_same_wherever_the_pieces_end() {
        let bytes = scaled(200_000, 5_000_000);
        let data: Vec<u8> = (0..bytes).map(|at| pattern_byte(Stream::Stdout, at)).collect();
        // Bytes of the pattern: a NUL, a byte that never occurs in UTF-8, two in a row.
        let pair = data[12_345..12_347].to_vec();
        for (separator, end) in [
            (Separator::Newline, vec![b'\n']),
            (Separator::Bytes(vec![0]), vec![0]),
            (Separator::Bytes(vec![0xff]), vec![0xff]),
            (Separator::Bytes(pair.clone()), pair),
        ] {
            let mut expected = Vec::new();
            let mut begin = 0;
            for at in end.len()..=data.len() {
                if at - begin >= end.len() && data[..at].ends_with(&end) {
                    expected.push(&data[begin..at]);
                    begin = at;
                }
            }
            if begin < data.len() {
                expected.push(&data[begin..]);
            }
            for chunk in ["1", "7", "4096", "65537"] {
                let framing = Framing { separator: separator.clone(), ..Framing::default() };
                let args = ["flood", "--out", &bytes.to_string(), "--chunk", chunk];
                let lines = lines(&args, framing);
                for line in &expected {
                    assert_eq!(next(&lines).unwrap().as_deref(), Some(*line));
                }
                assert_eq!(next(&lines).unwrap(), None);
            }
        }
    }
}
