//! The policies for output that is not taken as fast as it comes.

use std::path::PathBuf;

use procwright_os::Invalid;

/// The policy for bytes that come faster than they are taken.
///
/// ```
/// use procwright::Overflow;
///
/// let patient = Overflow::default();
/// assert_eq!(patient, Overflow::Spill { memory: 16 << 20, disk: None });
/// let live = Overflow::DropOldest { memory: 1 << 20 };
/// assert!(patient.is_lossless() && !live.is_lossless());
/// assert_eq!(live.memory(), 1 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// Keep `memory` bytes in memory, then up to `disk` bytes in files without
    /// a name, and only then let the producer wait. Nothing is lost. The
    /// default.
    ///
    /// A disk that is full or fails is no error: then less is kept, and the
    /// producer waits sooner.
    Spill {
        /// Bytes kept in memory.
        memory: u64,
        /// Bytes kept on disk; none means 1 GiB, or a tenth of what is free
        /// where that is less.
        disk: Option<u64>,
    },
    /// Keep `memory` bytes, then let the producer wait. Nothing is lost.
    Block {
        /// Bytes kept in memory.
        memory: u64,
    },
    /// Keep the latest `memory` bytes and forget what is older. The producer
    /// never waits. What was dropped is counted.
    DropOldest {
        /// Bytes kept in memory.
        memory: u64,
    },
    /// Keep `memory` bytes and forget what comes while they are there. The
    /// producer never waits. What was dropped is counted.
    DropNewest {
        /// Bytes kept in memory.
        memory: u64,
    },
    /// Keep `memory` bytes; one more is an error that says how many came before
    /// it. Those are still delivered.
    Fail {
        /// Bytes kept in memory.
        memory: u64,
    },
}

impl Overflow {
    /// The memory of the default: 16 MiB.
    pub const MEMORY: u64 = 16 << 20;

    /// The least that can be kept in memory: 4 KiB. Less is taken for this.
    pub const LEAST_MEMORY: u64 = 4 << 10;

    /// The bytes that are kept in memory.
    pub const fn memory(self) -> u64 {
        match self {
            Overflow::Spill { memory, .. }
            | Overflow::Block { memory }
            | Overflow::DropOldest { memory }
            | Overflow::DropNewest { memory }
            | Overflow::Fail { memory } => memory,
        }
    }

    /// The directory where [`Spill`](Overflow::Spill) makes its files: `PROCWRIGHT_SPOOL_DIR`, or
    /// the first of `/var/tmp`, `TMPDIR` and `/tmp` that can be written and is on a
    /// disk. None where everything stays in memory: by `PROCWRIGHT_SPOOL=0`, or
    /// because there is no such directory.
    ///
    /// # Errors
    /// A directory that was asked for and cannot be used.
    pub fn directory() -> Result<Option<PathBuf>, Invalid> {
        super::spool_dir::directory()
    }

    /// True if every byte comes through.
    pub const fn is_lossless(self) -> bool {
        matches!(self, Overflow::Spill { .. } | Overflow::Block { .. })
    }
}

impl Default for Overflow {
    fn default() -> Overflow {
        Overflow::Spill {
            memory: Overflow::MEMORY,
            disk: None,
        }
    }
}
