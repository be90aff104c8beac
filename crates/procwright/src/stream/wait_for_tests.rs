use std::io::{PipeWriter, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::stream::{Chunk, Closed, Framing, LineItem, Reader};

const FOREVER: Patience<'static> = Patience::NEVER_ENDING;

fn stream() -> (LineReader, PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let reader = Reader::of_pipe(reader.into(), None, Arc::default()).unwrap();
    let reader = LineReader::new(reader, Framing::default()).unwrap();
    (reader, writer)
}

fn line(stream: usize, line: &str) -> Found {
    let line = line.into();
    Found::Line { stream, line }
}

fn is(word: &str) -> impl FnMut(&[u8]) -> bool {
    move |line: &[u8]| memchr::memmem::find(line, word.as_bytes()).is_some()
}

#[test]
fn a_line_of_either_stream_is_found_and_what_follows_stays() {
    let ((out, mut to_out), (err, mut to_err)) = (stream(), stream());
    to_out.write_all(b"one\nready\nnext\n").unwrap();
    to_err.write_all(b"warning\n").unwrap();
    let both = [&out, &err];
    assert_eq!(
        wait_for(&both, FOREVER, is("ready")).unwrap(),
        line(0, "ready")
    );
    assert_eq!(
        out.next_line(FOREVER).unwrap(),
        Some(LineItem::from("next"))
    );
    thread::scope(|scope| {
        // Asleep, with something to look at in neither.
        let waiting = scope.spawn(|| wait_for(&both, FOREVER, is("now")).unwrap());
        to_out.write_all(b"not yet\n").unwrap();
        to_err.write_all(b"now\r\n").unwrap();
        assert_eq!(waiting.join().unwrap(), line(1, "now"));
    });
}

#[test]
fn a_prompt_is_found_as_it_grows() {
    let (out, mut to_out) = stream();
    let mut seen = Vec::new();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let matches = |line: &[u8]| {
                seen.push(line.to_vec());
                line.ends_with(b"> ")
            };
            wait_for(&[&out], FOREVER, matches).unwrap()
        });
        for byte in b"hello\n$> " {
            to_out.write_all(&[*byte]).unwrap();
        }
        assert_eq!(waiting.join().unwrap(), line(0, "$> "));
    });
    assert!(
        seen.contains(&b"hello".to_vec()),
        "whole lines are told whole"
    );
    to_out.write_all(b"later\n").unwrap();
    assert_eq!(
        out.next_line(FOREVER).unwrap(),
        Some(LineItem::from("later"))
    );
}

#[test]
fn the_end_of_a_line_is_passed_over_that_comes_later() {
    let (out, mut to_out) = stream();
    let mut say = |bytes: &[u8]| to_out.write_all(bytes).unwrap();
    let at_once = || Patience::from(Duration::ZERO);
    for end in [b"\n".as_slice(), b"\r\n"] {
        say(b"ready");
        let found = wait_for(&[&out], FOREVER, is("ready")).unwrap();
        assert_eq!(found, line(0, "ready"));
        say(end);
        // By itself, which whoever reads is not told of.
        let nothing = out.next_line(at_once()).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::TimedOut);
        say(b"next\n");
        let next = out.next_line(FOREVER).unwrap();
        assert_eq!(next, Some(LineItem::from("next")));
    }
    // What is no end stays, and so does a second one.
    for rest in ["\n\nnext\n", " it is\n", "\r!\n"] {
        say(b"ready");
        wait_for(&[&out], FOREVER, is("ready")).unwrap();
        say(rest.as_bytes());
        let expected = rest.strip_prefix('\n').unwrap_or(rest).lines();
        for expected in expected {
            let next = out.next_line(FOREVER).unwrap();
            assert_eq!(next, Some(LineItem::from(expected)));
        }
    }
    // A read that could go past the buffer.
    say(b"ready");
    wait_for(&[&out], FOREVER, is("ready")).unwrap();
    say(b"\nbytes");
    let mut bytes = [0; 1 << 17];
    let read = out.read_with(&mut bytes, FOREVER).unwrap();
    assert_eq!((read, &bytes[..5]), (Chunk::Bytes(5), b"bytes".as_slice()));
}

#[test]
fn it_ends_with_the_last_stream() {
    let ((out, to_out), (err, mut to_err)) = (stream(), stream());
    drop(to_out);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_for(&[&out, &err], FOREVER, is("never")).unwrap());
        to_err.write_all(b"something\nelse").unwrap();
        drop(to_err);
        assert_eq!(waiting.join().unwrap(), Found::Ended);
    });
    assert_eq!(wait_for(&[&out], FOREVER, is("")).unwrap(), Found::Ended);
    assert_eq!(wait_for(&[], FOREVER, is("")).unwrap(), Found::Ended);
}

#[test]
fn the_last_line_may_have_no_end() {
    let (out, mut to_out) = stream();
    to_out.write_all(b"one\ntwo").unwrap();
    drop(to_out);
    assert_eq!(
        wait_for(&[&out], FOREVER, is("two")).unwrap(),
        line(0, "two")
    );
    assert_eq!(wait_for(&[&out], FOREVER, is("two")).unwrap(), Found::Ended);
}

#[test]
fn time_an_interrupt_and_a_close_end_it() {
    let ((out, mut to_out), (err, _to_err)) = (stream(), stream());
    let both = [&out, &err];
    to_out.write_all(b"not comple").unwrap();
    let begun = Instant::now();
    let short = Patience::from(Duration::from_millis(20));
    assert_eq!(
        wait_for(&both, short, is("complete")).unwrap(),
        Found::TimedOut
    );
    assert!(begun.elapsed() >= Duration::from_millis(20));
    let (interrupt, mut bell) = io::pipe().unwrap();
    bell.write_all(b"!").unwrap();
    let patience = FOREVER.or_readable(interrupt.as_fd());
    assert_eq!(
        wait_for(&both, patience, is("complete")).unwrap(),
        Found::Interrupted
    );
    // Taken up again, nothing is missing.
    to_out.write_all(b"te").unwrap();
    assert_eq!(
        wait_for(&both, patience, is("complete")).unwrap(),
        line(0, "not complete")
    );
    thread::scope(|scope| {
        let waiting = scope.spawn(|| wait_for(&both, FOREVER, is("never")).unwrap_err());
        err.close();
        assert!(Closed::is(&waiting.join().unwrap()));
        // Also where another thread reads the stream.
        let reading = scope.spawn(|| out.next_line(FOREVER).unwrap_err());
        let waiting = scope.spawn(|| wait_for(&[&out], FOREVER, is("never")).unwrap_err());
        out.close();
        assert!(Closed::is(&reading.join().unwrap()));
        assert!(Closed::is(&waiting.join().unwrap()));
    });
}

#[test]
fn a_stream_that_never_runs_dry_hides_nothing() {
    let ((out, mut to_out), (err, mut to_err)) = (stream(), stream());
    let both = [&out, &err];
    thread::scope(|scope| {
        let flood = scope.spawn(move || while to_out.write_all(&[b'\n'; 4096]).is_ok() {});
        let short = Patience::from(Duration::from_millis(20));
        assert_eq!(
            wait_for(&both, short, is("never")).unwrap(),
            Found::TimedOut
        );
        let (interrupt, mut bell) = io::pipe().unwrap();
        bell.write_all(b"!").unwrap();
        let patience = FOREVER.or_readable(interrupt.as_fd());
        assert_eq!(
            wait_for(&both, patience, is("never")).unwrap(),
            Found::Interrupted
        );
        to_err.write_all(b"ready\n").unwrap();
        assert_eq!(
            wait_for(&both, FOREVER, is("ready")).unwrap(),
            line(1, "ready")
        );
        out.close();
        flood.join().unwrap();
    });
}

#[test]
fn a_prompt_is_found_however_many_reads_it_came_in() {
    // Each datagram is a read of its own.
    for reads in 14..36 {
        let (theirs, ours) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let reader = Reader::from_fd(theirs.into()).unwrap();
        let reader = LineReader::new(reader, Framing::default()).unwrap();
        for _ in 1..reads {
            ours.send(b"a line\n").unwrap();
        }
        ours.send(b"$ ").unwrap();
        // Should it be overlooked, this is what it waits for.
        let in_time = Patience::from(Duration::from_secs(10));
        let found = wait_for(&[&reader], in_time, is("$ ")).unwrap();
        assert_eq!(found, line(0, "$ "), "in {reads} reads");
    }
}
