//! The memory and disk that all streams may take together.

use procwright::Budget;
use pyo3::prelude::*;

/// Bytes in memory and on disk; None for what the disk allows.
#[pyfunction]
pub(crate) fn budget() -> (u64, Option<u64>) {
    let Budget { memory, disk } = Budget::current();
    (memory, disk)
}

/// Sets both. None is the default.
#[pyfunction]
pub(crate) fn set_budget(memory: Option<u64>, disk: Option<u64>) {
    let memory = memory.unwrap_or(Budget::default().memory);
    Budget { memory, disk }.set();
}
