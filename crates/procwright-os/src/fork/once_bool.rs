//! An answer that is found out once in a process: the `race::OnceBool` of the
//! once_cell crate.

use std::sync::atomic::{AtomicU8, Ordering};

/// A yes or no that is found out once.
///
/// `OnceLock` is no option: a fork that comes while another thread finds out would
/// wait for that thread for ever.
///
/// Relaxed everywhere: the answer stands for itself and guards no other memory.
#[derive(Debug)]
pub(crate) struct OnceBool(AtomicU8);

const UNKNOWN: u8 = 0;
const YES: u8 = 1;
const NO: u8 = 2;

impl OnceBool {
    /// An answer that is not known yet.
    pub(crate) const fn new() -> OnceBool {
        OnceBool(AtomicU8::new(UNKNOWN))
    }

    /// The answer, or the error of finding it out, after which it is not known. Threads that
    /// come at once may each find it out.
    ///
    /// # Errors
    /// Those of `find`.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn get_or_try_init<E>(
        &self,
        find: impl FnOnce() -> Result<bool, E>,
    ) -> Result<bool, E> {
        match self.get() {
            Some(known) => Ok(known),
            None => Ok(self.set(find()?)),
        }
    }

    fn get(&self) -> Option<bool> {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => None,
            known => Some(known == YES),
        }
    }

    fn set(&self, answer: bool) -> bool {
        self.0
            .store(if answer { YES } else { NO }, Ordering::Relaxed);
        answer
    }
}
