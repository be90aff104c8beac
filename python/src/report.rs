//! The report of a run as plain values of Python's.

use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use procwright::process::Exit;
use procwright::{Holder, Report, StreamInfo};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

/// `Until::Exit` as it is written in Python.
pub(crate) const UNTIL_EXIT: &str = "until=\"exit\"";

/// The parts of a `Result` that the report has, by their names.
pub(crate) fn dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let argv = report.argv.iter().map(|word| word.as_os_str());
    let argv = PyTuple::new(py, argv.collect::<Vec<_>>())?;
    dict.set_item("argv", argv)?;
    dict.set_item("pid", report.pid)?;
    dict.set_item("status", status(py, report.status)?)?;
    dict.set_item("reason", report.reason.name())?;
    dict.set_item("ok_codes", PyTuple::new(py, &report.ok_codes)?)?;
    dict.set_item("outcome", report.outcome())?;
    dict.set_item("why", report.why())?;
    dict.set_item("summary", report.summary())?;
    dict.set_item("duration_s", report.duration.as_secs_f64())?;
    dict.set_item("cpu_user_s", secs(report.cpu_user))?;
    dict.set_item("cpu_system_s", secs(report.cpu_system))?;
    dict.set_item("max_rss_bytes", report.max_rss_bytes)?;
    let survivors = report.survivors.iter();
    let survivors = survivors.map(|one| (one.pid, &one.name, one.state));
    dict.set_item("survivors", survivors.collect::<Vec<_>>())?;
    dict.set_item("processes", &report.processes)?;
    dict.set_item("stdout_info", info(py, report.stdout_info.as_ref())?)?;
    dict.set_item("stderr_info", info(py, report.stderr_info.as_ref())?)?;
    Ok(dict)
}

fn secs(duration: Option<Duration>) -> Option<f64> {
    duration.map(|duration| duration.as_secs_f64())
}

/// The parts of a `Status`.
pub(crate) fn status(py: Python<'_>, exit: Exit) -> PyResult<Bound<'_, PyTuple>> {
    let none = None::<i32>;
    match exit {
        Exit::Code(code) => ("exited", code, none, none, none, none).into_pyobject(py),
        Exit::Signal { signal, core } => {
            let (number, name) = (signal.number(), signal.name());
            ("signaled", none, number, name, core, none).into_pyobject(py)
        }
        Exit::Unknown(why) => ("unknown", none, none, none, none, why.name()).into_pyobject(py),
        other => ("unknown", none, none, none, none, other.to_string()).into_pyobject(py),
    }
}

/// Number, name, and start and inode of a holder.
pub(crate) type RawHolder<'a> = (i32, &'a str, Option<(u64, Option<u64>)>);

/// The parts of each `Holder`.
pub(crate) fn holders(holders: &[Holder]) -> Vec<RawHolder<'_>> {
    let holders = holders.iter();
    holders
        .map(|one| (one.pid, one.name.as_str(), one.identity()))
        .collect()
}

fn info<'py>(py: Python<'py>, info: Option<&StreamInfo>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(info) = info else { return Ok(None) };
    let dict = PyDict::new(py);
    dict.set_item("bytes", info.bytes)?;
    dict.set_item("kept_bytes", info.kept_bytes)?;
    dict.set_item("dropped_bytes", info.dropped_bytes)?;
    dict.set_item("dropped_at", info.dropped_at)?;
    let blocked = info.blocked.map(|blocked| blocked.as_secs_f64());
    dict.set_item("blocked_s", blocked)?;
    dict.set_item("complete", info.complete)?;
    dict.set_item("held_by", holders(&info.held_by))?;
    dict.set_item("held_by_complete", info.held_by_complete)?;
    let kept_at = info.kept_at.as_ref();
    let kept_at = kept_at.map(|path| PyBytes::new(py, path.as_os_str().as_bytes()));
    dict.set_item("kept_at", kept_at)?;
    dict.set_item("kept_error", &info.kept_error)?;
    dict.set_item("undelivered_bytes", info.undelivered_bytes)?;
    Ok(Some(dict))
}
