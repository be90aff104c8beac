//! How many processors there are for us.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether our threads may have more than one processor at a time, as it was when this
/// was asked first: to find out takes the system a dozen calls, which read the limits of
/// control groups.
pub(crate) fn has_several_processors() -> bool {
    const UNKNOWN: u8 = 0;
    const ONE: u8 = 1;
    const SEVERAL: u8 = 2;
    // Not a `OnceLock`: a fork that comes while another thread is at it would wait for
    // that thread for ever.
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    match KNOWN.load(Ordering::Relaxed) {
        UNKNOWN => {
            let count = std::thread::available_parallelism();
            let has_several = count.is_ok_and(|count| count.get() > 1);
            KNOWN.store(if has_several { SEVERAL } else { ONE }, Ordering::Relaxed);
            has_several
        }
        known => known == SEVERAL,
    }
}
