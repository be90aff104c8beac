//! The order in which two streams were read, and what is known of that of writing.
//!
//! Two pipes have no common clock. What can be known is this: a look that finds a pipe empty
//! says that all which comes by it later is written later. So where, after the latest byte
//! of either pipe was read, a look at each has found both empty, there is a *pause*: all that was read
//! before was written before, and all that is read later is written later. Between two
//! pauses the order of the two streams is not known.

use std::os::fd::BorrowedFd;
use std::time::{Instant, SystemTime};

use crate::std_stream::StdStream;
use procwright_os::poll::{self, Flags};
use procwright_os::time::Deadline;

/// A piece of the merged output: so many bytes of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// The stream that was read.
    pub stream: StdStream,
    /// The number of bytes.
    pub bytes: u64,
    /// True if some of it may have been written before the segment in front of it, or before
    /// ambiguous ones in front of that: both streams had bytes to read, and
    /// nobody knows which was first. Where it is false, all in front was written before.
    pub ambiguous: bool,
    /// The time at which its first byte was read.
    pub at: SystemTime,
}

/// Records the order of reading.
#[derive(Debug)]
pub(super) struct Order {
    segments: Vec<Segment>,
    /// The bytes of the last segment behind the latest pause.
    since_pause: u64,
    /// When the first of them was read.
    since: SystemTime,
    /// Nothing was read after the latest pause.
    is_pause: bool,
}

impl Default for Order {
    fn default() -> Order {
        Order {
            segments: Vec::new(),
            since_pause: 0,
            since: SystemTime::UNIX_EPOCH,
            is_pause: false,
        }
    }
}

impl Order {
    /// Notes that `bytes` of one stream came next.
    pub(super) fn add(&mut self, stream: StdStream, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let at = SystemTime::now();
        let is_after_pause = std::mem::take(&mut self.is_pause);
        let is_first = self.segments.is_empty();
        let ambiguous = match self.segments.last_mut() {
            // A segment of which it is known that it comes later is one by itself.
            Some(last) if last.stream == stream && !(is_after_pause && last.ambiguous) => {
                last.bytes += bytes;
                if is_after_pause {
                    self.since_pause = 0;
                    self.since = at;
                }
                self.since_pause += bytes;
                return;
            }
            Some(last) if !is_after_pause && self.since_pause < last.bytes => {
                // What came before the pause is not ambiguous.
                last.bytes -= self.since_pause;
                let behind = Segment {
                    stream: last.stream,
                    bytes: self.since_pause,
                    ambiguous: false,
                    at: self.since,
                };
                self.segments.push(behind);
                true
            }
            _ => !is_after_pause && !is_first,
        };
        self.segments.push(Segment {
            stream,
            bytes,
            ambiguous,
            at,
        });
        self.since_pause = bytes;
        self.since = at;
    }

    /// Notes a pause if there is one: nothing is to be read of these pipes, which are all that
    /// have not ended.
    pub(super) fn look<'f>(&mut self, pipes: impl Iterator<Item = BorrowedFd<'f>>) {
        self.is_pause = self.is_pause || are_empty(pipes);
    }

    pub(super) fn into_segments(self) -> Vec<Segment> {
        self.segments
    }
}

/// True if each of these pipes was found empty.
pub(super) fn are_empty<'f>(pipes: impl Iterator<Item = BorrowedFd<'f>>) -> bool {
    let mut fds: Vec<_> = pipes
        .map(|fd| poll::Fd::from_borrowed_fd(fd, Flags::IN))
        .collect();
    if fds.is_empty() {
        return true;
    }
    // A pipe that was not looked at may have anything.
    poll::poll(&mut fds, Deadline::at(Instant::now())).is_ok()
        && fds.iter().all(|fd| !fd.revents().contains(Flags::IN))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;
    use StdStream::{Stderr, Stdout};

    #[derive(Clone, Copy)]
    enum Step {
        Read(StdStream, u64),
        Pause,
    }
    use Step::{Pause, Read};

    /// The segments: stream, bytes, ambiguous.
    fn order(steps: &[Step]) -> Vec<(StdStream, u64, bool)> {
        let mut order = Order::default();
        for step in steps {
            match *step {
                Read(stream, bytes) => order.add(stream, bytes),
                Pause => order.look(std::iter::empty()),
            }
        }
        let segments = order.into_segments().into_iter();
        segments
            .map(|one| (one.stream, one.bytes, one.ambiguous))
            .collect()
    }

    #[test]
    fn with_a_pause_between_the_order_is_known() {
        let steps = [
            Read(Stdout, 1),
            Pause,
            Read(Stderr, 2),
            Pause,
            Read(Stdout, 3),
        ];
        let known = [(Stdout, 1, false), (Stderr, 2, false), (Stdout, 3, false)];
        assert_eq!(order(&steps), known);
    }

    #[test]
    fn each_has_the_time_of_its_first_byte() {
        let tick = |before: SystemTime| {
            while SystemTime::now() <= before {}
            SystemTime::now()
        };
        let mut order = Order::default();
        let mut times = vec![tick(SystemTime::UNIX_EPOCH)];
        // The second read comes after a pause, which only the third shows to be a border.
        for (stream, is_pause) in [(Stdout, true), (Stdout, false), (Stderr, false)] {
            order.add(stream, 1);
            if is_pause {
                order.look(std::iter::empty());
            }
            times.push(tick(*times.last().unwrap()));
        }
        let segments = order.into_segments();
        assert_eq!(segments.len(), 3);
        for (segment, between) in segments.iter().zip(times.windows(2)) {
            assert!(
                between[0] <= segment.at && segment.at <= between[1],
                "{segments:?}"
            );
        }
    }

    #[test]
    fn without_one_it_is_not() {
        let steps = [
            Read(Stdout, 1),
            Read(Stderr, 2),
            Read(Stdout, 3),
            Pause,
            Read(Stderr, 4),
        ];
        let found = [
            (Stdout, 1, false),
            (Stderr, 2, true),
            (Stdout, 3, true),
            (Stderr, 4, false),
        ];
        assert_eq!(order(&steps), found);
    }

    #[test]
    fn only_what_came_after_the_pause_is_ambiguous() {
        let steps = [
            Read(Stdout, 1),
            Pause,
            Read(Stdout, 2),
            Pause,
            Read(Stdout, 4),
            Read(Stdout, 8),
            Read(Stderr, 16),
            Read(Stderr, 32),
            Pause,
            Read(Stderr, 64),
            Pause,
            Read(Stderr, 128),
        ];
        let found = [
            (Stdout, 3, false),
            (Stdout, 12, false),
            (Stderr, 48, true),
            (Stderr, 192, false),
        ];
        assert_eq!(order(&steps), found);
    }

    #[test]
    fn one_stream_is_one_segment() {
        assert_eq!(order(&[Read(Stdout, 0), Pause]), []);
        let steps = [
            Read(Stdout, 1),
            Read(Stdout, 2),
            Pause,
            Read(Stdout, 3),
            Pause,
            Pause,
        ];
        assert_eq!(order(&steps), [(Stdout, 6, false)]);
    }

    #[test]
    fn a_pipe_is_empty_when_it_was_looked_at() {
        let [(out, mut to_out), (err, to_err)] = [(); 2].map(|()| std::io::pipe().unwrap());
        let both = || are_empty([out.as_fd(), err.as_fd()].into_iter());
        assert!(both());
        to_out.write_all(b"x").unwrap();
        assert!(!both());
        assert!(are_empty([err.as_fd()].into_iter()));
        drop(to_err);
    }
}
