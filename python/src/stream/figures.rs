//! The figures of a stream.

use std::time::Duration;

use procwright::buffer;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The parts of `Figures`, by their names.
pub(crate) fn figures<'py>(
    py: Python<'py>,
    found: &buffer::Figures,
    blocked: Option<Duration>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("bytes_in", found.bytes_in)?;
    dict.set_item("bytes_out", found.bytes_out)?;
    dict.set_item("lag_bytes", found.lag_bytes)?;
    dict.set_item("lag_s", found.lag.as_secs_f64())?;
    dict.set_item("peak_bytes", found.peak_bytes)?;
    dict.set_item("memory_bytes", found.memory_bytes)?;
    dict.set_item("memory_peak_bytes", found.memory_peak_bytes)?;
    dict.set_item("disk_bytes", found.disk_bytes)?;
    dict.set_item("disk_peak_bytes", found.disk_peak_bytes)?;
    dict.set_item("spilled_bytes", found.spilled_bytes)?;
    dict.set_item("dropped_bytes", found.dropped_bytes)?;
    dict.set_item("lost_bytes", found.lost_bytes)?;
    dict.set_item("blocked_s", blocked.map(|blocked| blocked.as_secs_f64()))?;
    Ok(dict)
}
