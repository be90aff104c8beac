//! How many processors there are for us.

use crate::sys::known::Known;

/// Whether our threads may have more than one processor at a time, as it was when this
/// was asked first: to find out takes the system a dozen calls, which read the limits of
/// control groups.
pub(crate) fn has_several_processors() -> bool {
    static SEVERAL: Known = Known::new();
    SEVERAL.or_find(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}
