//! The shape of a new queue.

use crate::error::Error;
use crate::format::{Geometry, MAX_LANES};
use procwright_os::Invalid;

/// The shape of a new queue.
///
/// ```
/// let receiver = procwright_queue::Options::new().lanes(4).limit(1 << 20).create()?;
/// # Ok::<(), procwright_queue::Error>(())
/// ```
#[doc(alias = "mq_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    lanes: u32,
    first: usize,
    limit: usize,
    keep: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

impl Options {
    /// The usual shape: 64 lanes, each of 16 KiB at first and 64 MiB at most, which keep
    /// blocks of up to 16 MiB.
    pub const fn new() -> Options {
        Options {
            lanes: 64,
            first: 16 << 10,
            limit: 64 << 20,
            keep: 16 << 20,
        }
    }

    /// Number of senders at a time, from 1 to 4,096. A lane that no sender has taken costs
    /// 132 bytes.
    #[doc(alias = "mq_maxmsg")]
    #[must_use]
    pub const fn lanes(mut self, lanes: u32) -> Options {
        self.lanes = lanes;
        self
    }

    /// Bytes of a lane at first, rounded up to a power of 2, at least 4 KiB.
    #[must_use]
    pub const fn first(mut self, bytes: usize) -> Options {
        self.first = bytes;
        self
    }

    /// Bytes of a lane at most, but not less than [at first](Options::first). Half of the
    /// limit, rounded down to a power of 2, is room for one message, and for messages that
    /// wait; of the latter a quarter is sure.
    #[doc(alias = "RLIMIT_MSGQUEUE")]
    #[must_use]
    pub const fn limit(mut self, bytes: usize) -> Options {
        self.limit = bytes;
        self
    }

    /// Size of the largest block whose memory stays with a lane that has grown; all such
    /// blocks together have less than twice as much, and the first one always stays. Of
    /// larger blocks a lane gives back what was received, and takes it anew for what is
    /// sent next: good after a flood, and slow for messages that need such a block each
    /// time.
    #[must_use]
    pub const fn keep(mut self, bytes: usize) -> Options {
        self.keep = bytes;
        self
    }

    /// Lanes of exactly `bytes`, rounded up to a power of 2, which never grow.
    #[must_use]
    pub const fn fixed(mut self, bytes: usize) -> Options {
        self.first = bytes;
        self.limit = bytes;
        self
    }

    pub(super) fn checked(self) -> Result<Geometry, Error> {
        self.geometry().map_err(|invalid| {
            Error::Io(std::io::Error::new(
                std::io::ErrorKind::InvalidInput,
                invalid,
            ))
        })
    }

    fn geometry(self) -> Result<Geometry, Invalid> {
        let wrong = |what, value: u64, problem, hint| {
            Err(Invalid::new(
                what,
                format!("is {value}, which is {problem}"),
                hint,
            ))
        };
        if !(1..=MAX_LANES).contains(&self.lanes) {
            let lanes = u64::from(self.lanes);
            return wrong("lanes", lanes, "out of range", "pass 1 to 4096");
        }
        let first = self.first.max(4096).checked_next_power_of_two();
        let Some(first) = first.filter(|first| *first <= 1 << 30) else {
            let first = self.first as u64;
            return wrong("first", first, "too large", "pass at most 1 GiB");
        };
        let limit = self.limit.max(first);
        // Largest number of blocks within the limit; the last has at most a gibibyte.
        let blocks = (limit / first + 1).ilog2();
        let blocks = blocks.clamp(1, 31 - first.ilog2());
        let kept = (self.keep / first).max(1).ilog2() + 1;
        match Geometry::new(self.lanes, first.ilog2(), blocks, kept.min(blocks)) {
            Some(geometry) => Ok(geometry),
            None => {
                let limit = self.limit as u64;
                wrong("limit", limit, "impossible", "pass at most 2 GiB")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_kept() {
        for (first, limit) in [
            (0, 0),
            (1 << 14, 1 << 26),
            (5000, 12_287),
            (1 << 30, 1 << 40),
        ] {
            let shape = Options::new().first(first).limit(limit).geometry().unwrap();
            let most = limit.max(shape.size(0) as usize) as u64;
            assert!(shape.window() <= most);
            let is_last = shape.size(shape.blocks() - 1) == 1 << 30;
            assert!(is_last || shape.window() + shape.size(shape.blocks()) > most);
        }
        assert_eq!(
            Options::new().fixed(100_000).geometry().unwrap().window(),
            1 << 17
        );
        assert!(Options::new().lanes(0).geometry().is_err());
        assert!(Options::new().first(usize::MAX).geometry().is_err());
    }
}
