//! Queues. The classes themselves, not wrapped in Python: to send or to receive a
//! short message is one call of a native method and nothing else.
//!
//! What needs Python's own modules is in `procwright/_queue.py`.

mod copy;
mod data;
mod doors;
mod end;
mod errors;
mod invitation;
mod receiver;
mod reservation;
mod sender;
mod view;
mod waiting;
mod window;

pub(crate) use invitation::Invitation;
pub(crate) use receiver::{LentReceiver, Receiver};
pub(crate) use reservation::Reservation;
pub(crate) use sender::Sender;
pub(crate) use view::View;

use std::time::Instant;

use procwright::time::Deadline;
use pyo3::prelude::*;

use crate::errors::invalid;
use crate::values::seconds;

/// The Python half.
const MODULE: &str = "procwright._queue";

/// What `function` of the Python half gives.
fn python<'py>(
    py: Python<'py>,
    function: &str,
    args: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import(MODULE)?.getattr(function)?.call1(args)
}

/// When so many seconds from now are over.
fn deadline(py: Python<'_>, timeout: Option<f64>) -> PyResult<Deadline> {
    let timeout = seconds("timeout", timeout).map_err(|error| invalid(py, &error))?;
    Ok(timeout.starting(Instant::now()))
}
