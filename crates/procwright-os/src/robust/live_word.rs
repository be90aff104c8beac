//! A word that one load reads, wherever it is.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Flag, MappedCells};

/// A word that one load reads, and the memory that it is in.
#[derive(Debug)]
pub struct LiveWord {
    at: NonNull<AtomicU32>,
    kept: WordMemory,
}

/// The memory of a word, held so that it stays mapped.
#[derive(Clone, Debug)]
#[expect(dead_code, reason = "held for their memory")]
enum WordMemory {
    MappedCells(Arc<MappedCells>),
    Flag(Arc<Flag>),
}

// SAFETY: an atomic, in memory that `kept` keeps mapped and that may be shared.
unsafe impl Send for LiveWord {}
// SAFETY: as above.
unsafe impl Sync for LiveWord {}

impl LiveWord {
    /// The word of a cell; none if there is no such cell.
    pub fn of_cell(view: &Arc<MappedCells>, cell: usize) -> Option<LiveWord> {
        Some(LiveWord {
            at: NonNull::from(view.word(cell)?),
            kept: WordMemory::MappedCells(Arc::clone(view)),
        })
    }

    /// The word of a flag.
    pub fn of_flag(flag: &Arc<Flag>) -> LiveWord {
        LiveWord {
            at: NonNull::from(flag.word()),
            kept: WordMemory::Flag(Arc::clone(flag)),
        }
    }

    /// A second reference to the same word.
    pub fn twin(&self) -> LiveWord {
        LiveWord {
            at: self.at,
            kept: self.kept.clone(),
        }
    }

    /// Reads the word. Relaxed: the answer was true a moment ago, and orders nothing.
    #[inline]
    pub fn load(&self) -> u32 {
        self.word().load(Ordering::Relaxed)
    }

    /// The word itself, to sleep on.
    pub fn word(&self) -> &AtomicU32 {
        // SAFETY: it points into memory that `kept` keeps for as long as `self`.
        unsafe { self.at.as_ref() }
    }
}
