//! The shape of a new queue.

use crate::error::Error;
use crate::format::{Geometry, MAX_LANES};
use procwright_os::Invalid;

/// Bytes of the smallest lane.
const LEAST: usize = 4096;
/// Bytes of a lane at first, unless it is told otherwise.
const USUAL: usize = 16 << 10;

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
    /// None for as much as usual, or the limit where that is less.
    first: Option<usize>,
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
            first: None,
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

    /// Bytes of a lane at first, rounded up to a power of 2, at least 4 KiB. More than the
    /// [limit](Options::limit) is refused.
    #[must_use]
    pub const fn first(mut self, bytes: usize) -> Options {
        self.first = Some(bytes);
        self
    }

    /// Bytes of a lane at most, at least 4 KiB. Where it is less than the usual size [at
    /// first](Options::first), and that was not set, lanes begin with less. Half of the limit,
    /// rounded down to a power of 2, is room for one message, and for messages that wait; of
    /// the latter a quarter is sure.
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
        self.first = Some(bytes);
        self.limit = match bytes.checked_next_power_of_two() {
            Some(bytes) if bytes > LEAST => bytes,
            Some(_) => LEAST,
            // It is refused as the first size.
            None => usize::MAX,
        };
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
        let limit = self.limit;
        if limit < LEAST {
            let problem = "less than a lane takes";
            return wrong("limit", limit as u64, problem, "pass at least 4096 bytes");
        }
        let given = self.first.unwrap_or(USUAL.min(1 << limit.ilog2()));
        let first = given.max(LEAST).checked_next_power_of_two();
        let Some(first) = first.filter(|first| *first <= 1 << 30) else {
            return wrong("first", given as u64, "too large", "pass at most 1 GiB");
        };
        if first > limit {
            let rounded = match first == given {
                true => String::new(),
                false => format!("rounded up to {first}, "),
            };
            return Err(Invalid::new(
                "first",
                format!("is {given}, {rounded}and limit is {limit}"),
                "a lane takes first bytes at first and limit at most: pass a limit of at least \
                 first, or no first",
            ));
        }
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
            (Some(0), 4096),
            (Some(1 << 14), 1 << 26),
            (Some(5000), 12_287),
            (Some(1 << 30), 1 << 40),
            (None, 4096),
            (None, 5000),
            (None, 8191),
            (None, 16_383),
            (None, 1 << 26),
            (None, usize::MAX),
        ] {
            let options = Options::new().limit(limit);
            let options = first.map_or(options, |first| options.first(first));
            let shape = options.geometry().unwrap();
            assert!(shape.window() <= limit as u64);
            let is_last = shape.size(shape.blocks() - 1) == 1 << 30;
            assert!(is_last || shape.window() + shape.size(shape.blocks()) > limit as u64);
        }
        assert_eq!(Options::new().geometry().unwrap().size(0), 16 << 10);
        assert_eq!(
            Options::new().fixed(100_000).geometry().unwrap().window(),
            1 << 17
        );
        assert!(Options::new().lanes(0).geometry().is_err());
        assert!(Options::new().first(usize::MAX).geometry().is_err());
        assert!(Options::new().fixed(usize::MAX).geometry().is_err());
        assert_eq!(Options::new().fixed(0).geometry().unwrap().window(), 4096);
    }

    #[test]
    fn a_limit_that_cannot_be_kept_is_refused_with_the_numbers() {
        let refused = |options: Options| options.geometry().unwrap_err().to_string();
        let text = refused(Options::new().first(1 << 20).limit(1 << 16));
        assert!(
            text.contains("first is 1048576, and limit is 65536"),
            "{text}"
        );
        let text = refused(Options::new().first(5000).limit(5000));
        assert!(
            text.contains("rounded up to 8192, and limit is 5000"),
            "{text}"
        );
        let text = refused(Options::new().limit(4095));
        assert!(text.contains("limit is 4095"), "{text}");
    }
}
