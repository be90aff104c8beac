//! The number of processors that our threads may use.

use crate::fork::OnceBool;

/// True if our threads may have more than one processor at a time, as it was when this
/// was asked first: to find out takes the system a dozen calls, which read the limits of
/// control groups.
#[doc(alias = "available_parallelism")]
#[doc(alias = "nproc")]
pub fn has_several_processors() -> bool {
    static SEVERAL: OnceBool = OnceBool::new();
    SEVERAL.get_or_init(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}
