//! The Python front end: the private module `procwright._core`.
//!
//! What a person sees is in `procwright/`, in Python. Here is what needs the
//! core: values that it checks, one function that runs, processes, and sets of them
//! to wait for.
#![deny(unsafe_code)]

mod budget;
mod bytes;
mod child;
mod communicate;
mod errors;
mod liveness;
mod options;
mod process;
mod queue;
mod report;
mod run;
mod signals;
mod stream;
mod taps;
mod values;
mod wait;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::budget::{budget, set_budget};
    #[pymodule_export]
    use super::child::{Child, spawn};
    #[pymodule_export]
    use super::communicate::Communication;
    #[pymodule_export]
    use super::liveness::{LivenessClaim, LivenessInvitation, LivenessMonitor, LivenessToken};
    #[pymodule_export]
    use super::process::Handle;
    #[pymodule_export]
    use super::queue::{Invitation, Receiver, Reservation, Sender, View, queue_names, queue_stat};
    #[pymodule_export]
    use super::run::run;
    #[pymodule_export]
    use super::stream::{Frame, Merged, Reader, TextReader, Writer};
    #[pymodule_export]
    use super::values::{Cancel, Limit, Stop};
    #[pymodule_export]
    use super::wait::{WaitSet, linger, wait_stats};
}

/// Python aligns its objects to 16 bytes, whatever is in them.
const _: () = {
    const fn fits<T>() -> bool {
        align_of::<T>() <= 16
    }
    assert!(fits::<child::Child>() && fits::<communicate::Communication>());
    assert!(
        fits::<stream::Merged>()
            && fits::<stream::Frame>()
            && fits::<stream::Reader>()
            && fits::<stream::Writer>()
    );
    assert!(fits::<process::Handle>() && fits::<wait::WaitSet>());
};
