//! What is known of the order of two streams, driven turn by turn.

use std::io::{PipeWriter, Write};

use super::*;
use crate::drain::Store;
use StdStream::{Stderr, Stdout};

/// Two pipes, and what drains them.
struct Driver {
    inline: Inline<Vec<u8>>,
    pipes: PerStream<PipeWriter>,
}

impl Driver {
    fn new() -> Driver {
        let ends = PerStream::from_fn(|_| std::io::pipe().unwrap());
        let ends = ends.map(|(reader, writer)| {
            procwright_os::pipe::set_nonblocking(&reader).unwrap();
            let drain = Drain::new(reader.into(), None, Store::whole(), Instant::now());
            (Some(drain), writer)
        });
        let (out, err) = (ends.stdout, ends.stderr);
        let drains = PerStream::new(out.0, err.0);
        Driver {
            inline: Inline::new(drains, None, None, None, true, false),
            pipes: PerStream::new(out.1, err.1),
        }
    }

    fn write(&mut self, stream: StdStream, bytes: usize) {
        self.pipes[stream].write_all(&vec![b'x'; bytes]).unwrap();
    }

    /// Reads all that is there: one turn finds out what is ready, the next one reads.
    fn read(&mut self) {
        for _ in 0..4 {
            let now = Deadline::at(Instant::now());
            self.inline.turn([None; WATCH], now).unwrap();
        }
    }

    /// Stream, bytes and whether ambiguous, of each segment.
    fn order(self) -> Vec<(StdStream, u64, bool)> {
        let segments = self.inline.into_parts().1.unwrap().into_iter();
        let parts = segments.map(|one| (one.stream, one.bytes, one.ambiguous));
        parts.collect()
    }
}

#[test]
fn what_was_read_before_the_next_was_written_is_certain() {
    let mut driver = Driver::new();
    for (stream, bytes) in [(Stderr, 1), (Stdout, 2), (Stdout, 3), (Stderr, 4)] {
        driver.write(stream, bytes);
        driver.read();
    }
    let known = [(Stderr, 1, false), (Stdout, 5, false), (Stderr, 4, false)];
    assert_eq!(driver.order(), known);
}

#[test]
fn what_met_in_the_pipes_is_ambiguous() {
    let mut driver = Driver::new();
    driver.write(Stdout, 1);
    driver.read();
    // Stderr was first, and is read last: nobody can know.
    driver.write(Stderr, 2);
    driver.write(Stdout, 4);
    driver.read();
    driver.write(Stderr, 8);
    driver.read();
    let found = [
        (Stdout, 1, false),
        (Stdout, 4, false),
        (Stderr, 2, true),
        (Stderr, 8, false),
    ];
    assert_eq!(driver.order(), found);
}

#[test]
fn what_is_read_at_the_exit_is_ambiguous_too() {
    let mut driver = Driver::new();
    driver.write(Stdout, 1);
    driver.read();
    driver.write(Stderr, 2);
    driver.write(Stdout, 4);
    driver.inline.finish().unwrap();
    let found = [(Stdout, 1, false), (Stdout, 4, false), (Stderr, 2, true)];
    assert_eq!(driver.order(), found);
}

#[test]
fn a_stream_that_has_ended_hides_nothing() {
    let mut driver = Driver::new();
    driver.write(Stdout, 1);
    driver.read();
    let (closed, _) = std::io::pipe().map(|(_, writer)| (writer, ())).unwrap();
    driver.pipes.stdout = closed;
    driver.read();
    driver.write(Stderr, 2);
    driver.read();
    assert_eq!(driver.order(), [(Stdout, 1, false), (Stderr, 2, false)]);
}
