//! The number of processors that our threads may use.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Processors that our threads may have at a time, 1 at least, as it was when this was asked
/// first: to find out takes the system a dozen calls, which read the limits of control groups.
#[doc(alias = "available_parallelism")]
#[doc(alias = "nproc")]
pub fn processors() -> usize {
    // No lock, which a fork could inherit; threads that come at once may each find out.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    match COUNT.load(Ordering::Relaxed) {
        0 => {
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            COUNT.store(count, Ordering::Relaxed);
            count
        }
        known => known,
    }
}

/// True if our threads may have more than one processor at a time.
pub fn has_several_processors() -> bool {
    processors() > 1
}
