//! Queues. The classes themselves, not wrapped in Python: to send or to receive a
//! short message is one call of a native method and nothing else.
//!
//! What needs Python's own modules is in `procwright/_queue.py`.

mod copy;
mod data;
mod door;
mod end;
mod errors;
mod given;
mod invitation;
mod later;
mod loan;
mod pickled;
mod receiver;
mod reservation;
mod sender;
mod stat;
mod unpickled;
mod view;
mod waiting;
mod window;

pub(crate) use invitation::Invitation;
pub(crate) use receiver::{LentReceiver, Receiver};
pub(crate) use reservation::Reservation;
pub(crate) use sender::Sender;
pub(crate) use stat::{queue_names, queue_stat};
pub(crate) use view::View;

use std::time::Instant;

use procwright::time::{Deadline, Timeout};
use pyo3::prelude::*;

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

/// When that is over, from now on.
fn deadline(timeout: Option<Timeout>) -> Deadline {
    timeout.unwrap_or(Timeout::NEVER).starting(Instant::now())
}
