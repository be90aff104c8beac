use std::io::{self, Write};
use std::sync::Arc;
use std::thread;

use super::super::{Frame, Framing, Item, LineReader, Separator, TooLong};
use crate::stream::{Patience, Reader};

const FOREVER: Patience<'static> = Patience::NEVER_ENDING;

/// All that is written is in the pipe, and no more will come.
fn written(bytes: &[u8]) -> LineReader {
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(bytes).unwrap();
    let reader = Reader::of_pipe(reader.into(), None, Arc::default()).unwrap();
    LineReader::new(reader, Framing::default()).unwrap()
}

fn frame(separator: &[u8], max_length: Option<usize>) -> Frame {
    Frame::new(Framing {
        separator: Separator::Bytes(separator.to_vec()),
        max_length,
        too_long: TooLong::Split,
    })
    .unwrap()
}

/// The next line; nothing at the end.
fn next(lines: &LineReader, frame: Option<&Frame>) -> Vec<u8> {
    let make = |item: Item<'_>| match item {
        Item::Line(line) => line.to_vec(),
        _ => Vec::new(),
    };
    loop {
        let tried = match frame {
            Some(frame) => lines.try_line_as(frame, usize::MAX, make),
            None => lines.try_line(usize::MAX, make),
        };
        match (tried.unwrap(), frame) {
            (Some(line), _) => return line,
            (None, Some(frame)) => lines.await_line_as(frame, usize::MAX, FOREVER).unwrap(),
            (None, None) => lines.await_line(usize::MAX, FOREVER).unwrap(),
        }
    }
}

#[test]
fn each_line_may_have_a_framing_of_its_own() {
    let lines = written(b"a--b\nc--\nd-e--f");
    let dashes = frame(b"--", None);
    assert_eq!(next(&lines, Some(&dashes)), b"a--");
    assert_eq!(next(&lines, None), b"b\n");
    assert_eq!(next(&lines, Some(&dashes)), b"c--");
    assert_eq!(next(&lines, None), b"\n");
    assert_eq!(next(&lines, Some(&frame(b"--", Some(2)))), b"d-");
    assert_eq!(next(&lines, Some(&frame(b"-", None))), b"e-");
    assert_eq!(next(&lines, None), b"-f");
    assert_eq!(next(&lines, Some(&dashes)), b"");
    assert_eq!(dashes.strip(b"x--"), b"x");
}

#[test]
fn what_goes_back_is_read_again_before_all_else() {
    let lines = written(b"one\ntwo\nthree\n");
    assert_eq!(next(&lines, None), b"one\n");
    assert_eq!(lines.position(), 4);
    // Where it was, and more than was there.
    for back in [&b"ONE\n"[..], &[b'x'; 200_000], b"y\n"] {
        lines.put_back(back).unwrap();
    }
    assert_eq!(next(&lines, None), b"y\n");
    assert_eq!(lines.position(), 4_u64.wrapping_sub(200_004));
    let long = next(&lines, None);
    assert_eq!((long.len(), &long[200_000..]), (200_004, &b"ONE\n"[..]));
    assert_eq!(lines.position(), 4);
    assert_eq!(next(&lines, None), b"two\n");
    lines.put_back(b"and ").unwrap();
    assert_eq!(next(&lines, None), b"and three\n");
    assert_eq!(next(&lines, None), b"");
    lines.put_back(b"behind the end").unwrap();
    assert_eq!(next(&lines, None), b"behind the end");
}

/// It may sleep for ever.
#[test]
fn who_puts_something_back_does_not_wait_for_who_reads() {
    let (read, mut write) = io::pipe().unwrap();
    let reader = Reader::of_pipe(read.into(), None, Arc::default()).unwrap();
    let lines = Arc::new(LineReader::new(reader, Framing::default()).unwrap());
    let reading = {
        let lines = Arc::clone(&lines);
        thread::spawn(move || lines.await_line(usize::MAX, FOREVER))
    };
    while lines.held.try_lock().is_some() {
        thread::yield_now();
    }
    lines.put_back(b"second, ").unwrap();
    lines.put_back(b"first, ").unwrap();
    write.write_all(b"third\n").unwrap();
    reading.join().unwrap().unwrap();
    assert_eq!(next(&lines, None), b"first, second, third\n");
}

#[test]
fn what_is_held_is_shown_and_taken_in_part() {
    let lines = written(b"\xc3\xa4\xc3");
    let nothing = lines.try_held(|held, last| ((held.len(), last), 9));
    assert_eq!(nothing.unwrap(), Some((0, false)));
    lines.await_bytes(FOREVER).unwrap();
    let taken = lines.try_held(|held, last| ((held.to_vec(), last), 2));
    assert_eq!(taken.unwrap(), Some((b"\xc3\xa4\xc3".to_vec(), false)));
    lines.await_line(usize::MAX, FOREVER).unwrap();
    let rest = lines.try_held(|held, last| ((held.to_vec(), last), 0));
    assert_eq!(rest.unwrap(), Some((b"\xc3".to_vec(), true)));
    assert_eq!(lines.held_bytes().unwrap(), 1);
    lines.close();
    assert!(lines.held_bytes().is_err());
    assert!(lines.try_held(|_, _| ((), 0)).is_err());
    assert!(lines.put_back(b"x").is_err());
}

#[test]
fn a_lent_pipe_blocks_and_is_closed_all_the_same() {
    let (read, write) = io::pipe().unwrap();
    let reader = Reader::of_pipe(read.into(), None, Arc::default()).unwrap();
    let number = reader.lend_pipe().unwrap().unwrap();
    assert!(number >= 0);
    assert_eq!(reader.lend_pipe().unwrap(), Some(number));
    let lines = Arc::new(LineReader::new(reader, Framing::default()).unwrap());
    let blocked = {
        let lines = Arc::clone(&lines);
        thread::spawn(move || lines.await_bytes(FOREVER))
    };
    lines.close();
    assert!(blocked.join().unwrap().is_err());
    assert!(lines.reader().lend_pipe().is_err());
    drop(write);
}
