//! Is the peer alive? The classes themselves, not wrapped in Python: a look is one
//! call of a native method and nothing else.
//!
//! What needs Python's own modules is in `procwright/_liveness.py`.

mod claim;
mod invitation;
mod monitor;
mod token;

pub(crate) use claim::LivenessClaim;
pub(crate) use invitation::LivenessInvitation;
pub(crate) use monitor::LivenessMonitor;
pub(crate) use token::LivenessToken;

use procwright::liveness::{Guarantee, Mechanism, Names, State};
use pyo3::prelude::*;

/// The Python half.
const MODULE: &str = "procwright._liveness";

/// What `function` of the Python half gives.
fn python<'py>(
    py: Python<'py>,
    function: &str,
    args: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import(MODULE)?.getattr(function)?.call1(args)
}

/// The word for a state.
fn name(state: State) -> &'static str {
    match state {
        State::Alive => "alive",
        State::Released => "released",
        State::Died => "died",
    }
}

/// A `LivenessGuarantee`.
fn guarantee(py: Python<'_>, guarantee: Guarantee) -> PyResult<Bound<'_, PyAny>> {
    let names = match guarantee.names {
        Names::Image => "image",
        Names::Process => "process",
        Names::Thread => "thread",
        _ => "other",
    };
    let mechanism = match guarantee.mechanism {
        Mechanism::RobustWord => "robust_word",
        Mechanism::Watcher => "watcher",
        _ => "other",
    };
    python(py, "LivenessGuarantee", (names, mechanism))
}
