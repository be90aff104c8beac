//! The Python front end: the private module `procwright._core`.
//!
//! What a person sees is in `procwright/`, in Python. Here is what needs the
//! core: values that it checks, and one function that runs.
#![deny(unsafe_code)]

mod bytes;
mod errors;
mod options;
mod report;
mod run;
mod signals;
mod taps;
mod values;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::run::run;
    #[pymodule_export]
    use super::values::{Cancel, Limit, Stop};
}
