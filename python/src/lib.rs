//! The Python front end: the private module `procwright._core`.
//!
//! What a person sees is in `procwright/`, in Python. Here is what needs the
//! core: values that it checks, one function that runs, processes, and sets of them
//! to wait for.
#![deny(unsafe_code)]

mod bytes;
mod child;
mod errors;
mod options;
mod process;
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
    use super::child::{Child, spawn};
    #[pymodule_export]
    use super::process::Handle;
    #[pymodule_export]
    use super::run::run;
    #[pymodule_export]
    use super::stream::{Frame, Reader, TextReader, Writer};
    #[pymodule_export]
    use super::values::{Cancel, Limit, Stop};
    #[pymodule_export]
    use super::wait::{WaitSet, linger, wait_stats};
}
