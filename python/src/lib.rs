//! The Python front end: the private module `procwright._core`.
//!
//! Users see `procwright/`, in Python. The classes and functions here need the core.
//!
//! The files of this folder, highest first; each imports only from lines below its own:
//!
//! ```text
//! lib
//! map                           many commands, so many at a time
//! talk                          a talk with a child on an event loop
//! communicate                   all of the input and output of a child or a pipeline at once
//! pipeline_child                a pipeline that its caller holds
//! pipeline                      programs joined by pipes
//! pipeline_function             a callable between two of them
//! run, child                    a run; a child
//! wait                          sets of things to wait for
//! liveness, queue, stream       the classes of liveness, of queues and of a child's streams
//! process, options, events      any process; options as a Spec; events told to Python
//! explained                     what a program waits for, and why it does not end
//! setup, tee                    what is set up before a program's first instruction; copies
//! values, taps, report, budget  Stop, Limit, Cancel; callbacks; what a run gives back; memory
//! patient                       blocking operations, with signals
//! bytes                         growing bytes, and memory of the caller's
//! arguments                     values of parameters
//! errors, signals               errors as exceptions; the wake-up descriptor
//! python, raised                calls of the package; exceptions on their way through the core
//! attach                        the interpreter lock on threads of the core
//! ```
#![deny(unsafe_code)]

mod arguments;
mod attach;
mod budget;
mod bytes;
mod child;
mod communicate;
mod errors;
mod events;
mod explained;
mod liveness;
mod map;
mod options;
mod patient;
mod pipeline;
mod pipeline_child;
mod pipeline_function;
mod process;
mod python;
mod queue;
mod raised;
mod report;
mod run;
mod setup;
mod signals;
mod stream;
mod talk;
mod taps;
mod tee;
mod values;
mod wait;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::arguments::{checked_signal, checked_size, shell_words};
    #[pymodule_export]
    use super::budget::{budget, set_budget};
    #[pymodule_export]
    use super::child::{Child, ChildWait, spawn};
    #[pymodule_export]
    use super::communicate::Communication;
    #[pymodule_export]
    use super::explained::explain_own;
    #[pymodule_export]
    use super::liveness::{
        LivenessClaim, LivenessInvitation, LivenessMonitor, LivenessSleep, LivenessToken,
    };
    #[pymodule_export]
    use super::map::{Map, map_commands};
    #[pymodule_export]
    use super::pipeline::pipeline;
    #[pymodule_export]
    use super::pipeline_child::{PipelineChild, PipelineWait, spawn_pipeline};
    #[pymodule_export]
    use super::pipeline_function::StageStreams;
    #[pymodule_export]
    use super::process::ProcessHandle;
    #[pymodule_export]
    use super::queue::{Invitation, Receiver, Reservation, Sender, View, queue_names, queue_stat};
    #[pymodule_export]
    use super::run::run;
    #[pymodule_export]
    use super::setup::{setup_fault, setup_options};
    #[pymodule_export]
    use super::stream::{Frame, Merged, Reader, TextReader, UntakenStreams, Writer};
    #[pymodule_export]
    use super::talk::Talk;
    #[pymodule_export]
    use super::values::{Cancel, Limit, Stop};
    #[pymodule_export]
    use super::wait::{WaitSet, linger, wait_stats};

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        super::signals::init(module.py())?;
        super::attach::init(module)
    }
}

/// Python aligns its objects to 16 bytes, whatever is in them.
const _: () = {
    const fn fits<T>() -> bool {
        align_of::<T>() <= 16
    }
    assert!(fits::<child::Child>() && fits::<communicate::Communication>());
    assert!(fits::<pipeline_child::PipelineChild>());
    assert!(
        fits::<stream::Merged>()
            && fits::<stream::Frame>()
            && fits::<stream::Reader>()
            && fits::<stream::Writer>()
    );
    assert!(fits::<process::ProcessHandle>() && fits::<wait::WaitSet>() && fits::<talk::Talk>());
};
