//! One word, wherever it is.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Flag, View};

/// A word that can be read with one load, and what keeps its memory.
#[derive(Debug)]
pub(crate) struct Word {
    at: NonNull<AtomicU32>,
    kept: Kept,
}

#[derive(Clone, Debug)]
#[expect(dead_code, reason = "held for their memory")]
enum Kept {
    View(Arc<View>),
    Flag(Arc<Flag>),
}

// SAFETY: an atomic, in memory that `kept` keeps mapped and that may be shared.
unsafe impl Send for Word {}
// SAFETY: as above.
unsafe impl Sync for Word {}

impl Word {
    /// That of a cell; none if there is no such cell.
    pub(crate) fn of_cell(view: &Arc<View>, cell: usize) -> Option<Word> {
        Some(Word {
            at: NonNull::from(view.word(cell)?),
            kept: Kept::View(Arc::clone(view)),
        })
    }

    /// A flag.
    pub(crate) fn of_flag(flag: &Arc<Flag>) -> Word {
        Word {
            at: NonNull::from(flag.word()),
            kept: Kept::Flag(Arc::clone(flag)),
        }
    }

    /// Another way to the same word.
    pub(crate) fn twin(&self) -> Word {
        Word {
            at: self.at,
            kept: self.kept.clone(),
        }
    }

    /// One relaxed load: what it finds was so a moment ago, and orders nothing.
    #[inline]
    pub(crate) fn load(&self) -> u32 {
        self.word().load(Ordering::Relaxed)
    }

    pub(crate) fn word(&self) -> &AtomicU32 {
        // SAFETY: it points into memory that `kept` keeps for as long as `self`.
        unsafe { self.at.as_ref() }
    }
}
