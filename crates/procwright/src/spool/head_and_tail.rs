//! The head and the tail of a stream of any length, in bounded memory.

use std::io;
use std::os::fd::BorrowedFd;

use super::Pages;
use procwright_os::memory;

/// Keeps the first `head` and the last `tail` bytes of what is read into it.
///
/// The tail is a ring at least as large as one read of a full pipe: with a ring
/// of just a small tail, a flood would be read in tiny pieces, and dropping
/// would be slower than keeping.
#[derive(Debug)]
pub(crate) struct HeadAndTail {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    head_pages: Pages,
    ring: Vec<u8>,
    ring_pages: Pages,
    /// The place of the next byte, once the ring has been filled for the first time;
    /// until then the ring's length says it.
    next: usize,
    /// Bytes that went into the ring.
    ringed: u64,
}

const RING_AT_LEAST: usize = 256 * 1024;

impl HeadAndTail {
    /// Keeps `limit` bytes: the first half and the last, the odd one in front.
    pub(crate) fn new(limit: u64) -> HeadAndTail {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        HeadAndTail {
            head_limit: limit - limit / 2,
            tail_limit: limit / 2,
            head: Vec::new(),
            head_pages: Pages::default(),
            ring: Vec::new(),
            ring_pages: Pages::default(),
            next: 0,
            ringed: 0,
        }
    }

    fn ring_size(&self) -> usize {
        self.tail_limit.max(RING_AT_LEAST)
    }

    /// The bytes that one read can take, at most `max`: up to the end of the
    /// head, or of the ring.
    fn room(&self, max: usize) -> usize {
        let head = self.head_limit - self.head.len();
        if head > 0 {
            return max.min(head);
        }
        let size = self.ring_size();
        let from = if self.ring.len() < size {
            self.ring.len()
        } else {
            self.next
        };
        max.min(size - from)
    }

    /// Reads once, like [`Memory::read_from`].
    ///
    /// [`Memory::read_from`]: super::Memory::read_from
    pub(crate) fn read_from(&mut self, fd: BorrowedFd<'_>, max: usize) -> io::Result<usize> {
        let max = self.room(max);
        if self.head.len() < self.head_limit {
            reserve(&mut self.head, &mut self.head_pages, max)?;
            return memory::read_into_spare(fd, &mut self.head, max);
        }
        let size = self.ring_size();
        let n = if self.ring.len() < size {
            reserve(&mut self.ring, &mut self.ring_pages, max)?;
            let n = memory::read_into_spare(fd, &mut self.ring, max)?;
            self.next = self.ring.len() % size;
            n
        } else {
            let end = self.next + max;
            let n = rustix::io::read(fd, &mut self.ring[self.next..end])?;
            self.next = (self.next + n) % size;
            n
        };
        self.ringed += n as u64;
        Ok(n)
    }

    /// The bytes of the latest read, which returned `n`.
    pub(crate) fn latest(&self, n: usize) -> &[u8] {
        if self.ringed == 0 {
            return &self.head[self.head.len() - n..];
        }
        // A read never wraps, so its bytes end where the next ones begin; at
        // the seam that is the end of the ring.
        let end = if self.next == 0 {
            self.ring.len()
        } else {
            self.next
        };
        &self.ring[end - n..end]
    }

    /// The bytes that were read in all.
    fn total(&self) -> u64 {
        self.head.len() as u64 + self.ringed
    }

    /// The bytes that are not kept.
    pub(crate) fn dropped(&self) -> u64 {
        self.ringed.saturating_sub(self.tail_limit as u64)
    }

    /// The bytes that are kept from the start and from the end.
    pub(crate) fn kept(&self) -> (u64, u64) {
        let head = self.head.len() as u64;
        (head, self.total() - head - self.dropped())
    }

    /// Head and tail, the tail in the two pieces that the ring has.
    pub(crate) fn pieces(&self) -> [&[u8]; 3] {
        let (_, tail) = self.kept();
        let tail = usize::try_from(tail).unwrap_or(usize::MAX);
        let (new, old) = self.ring.split_at(self.next);
        // `new` was written after `old`; a ring that never wrapped is all new,
        // or all old just when it has become full.
        let from_new = tail.min(new.len());
        let from_old = tail - from_new;
        [
            &self.head,
            &old[old.len() - from_old..],
            &new[new.len() - from_new..],
        ]
    }
}

/// Doubles up to what is needed, so that a small stream stays small.
fn reserve(memory: &mut Vec<u8>, pages: &mut Pages, more: usize) -> io::Result<()> {
    memory
        .try_reserve(more)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    pages.provide(memory.len(), memory.spare_capacity_mut(), more);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use proptest::prelude::*;

    use super::*;

    fn feed(ends: &mut HeadAndTail, bytes: &[u8], max: usize) {
        let (read, write) = procwright_os::pipe::pipe().unwrap();
        let mut write = std::fs::File::from(write);
        // Pieces fit the pipe, so that nothing blocks.
        for piece in bytes.chunks(4096) {
            write.write_all(piece).unwrap();
            let mut left = piece;
            while !left.is_empty() {
                let n = ends.read_from(read.as_fd(), max).unwrap();
                assert_eq!(ends.latest(n), &left[..n]);
                left = &left[n..];
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn keeps_exactly_both_ends(
            limit in prop_oneof![0u64..64, 1000u64..5000, 500_000u64..700_000],
            length in prop_oneof![0usize..200, 4000usize..10_000, 600_000usize..900_000],
            max in prop_oneof![1000usize..5000, Just(65536usize)],
        ) {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 31 + i / 251) as u8).collect();
            let mut ends = HeadAndTail::new(limit);
            feed(&mut ends, &bytes, max);
            let kept = ends.pieces().concat();
            let limit = usize::try_from(limit).unwrap();
            let expected = if length <= limit {
                bytes.clone()
            } else {
                let (head, tail) = (limit - limit / 2, limit / 2);
                [&bytes[..head], &bytes[length - tail..]].concat()
            };
            prop_assert_eq!(kept, expected);
            prop_assert_eq!(ends.dropped(), length.saturating_sub(limit) as u64);
            prop_assert_eq!(ends.total(), length as u64);
        }
    }
}
