//! A queue seen from outside, for `procwright/_queue_stat.py`.

use procwright::queue::{self, Asleep, LaneStat};
use pyo3::prelude::*;

use super::arguments;
use super::errors::send_error;

/// Lanes, first, limit, memory, epoch, claims.
type QueueParts = (u32, u64, u64, u64, u64, u32);
/// State, pid, asleep.
type ReceiverParts = (&'static str, Option<i32>, Option<&'static str>);
/// Number, state, pid, guest, waiting, block, whether it is blocked.
type LaneParts = (
    u32,
    &'static str,
    Option<i32>,
    u32,
    Option<u64>,
    Option<u64>,
    bool,
);

/// The state of the queue of that name.
#[pyfunction]
pub(crate) fn queue_stat(
    py: Python<'_>,
    #[pyo3(from_py_with = arguments::name)] name: String,
) -> PyResult<(QueueParts, ReceiverParts, Vec<LaneParts>)> {
    let stat = py.detach(|| queue::stat(&name));
    // No error of a mere look depends on the side.
    let stat = stat.map_err(|error| send_error(py, &error))?;
    let numbers = (
        stat.lanes,
        stat.first,
        stat.limit,
        stat.memory,
        stat.epoch,
        stat.claims,
    );
    let receiver = stat.receiver;
    let receiver = (
        receiver.state.name(),
        receiver.pid,
        receiver.asleep.map(Asleep::name),
    );
    Ok((numbers, receiver, stat.taken.iter().map(lane).collect()))
}

fn lane(lane: &LaneStat) -> LaneParts {
    (
        lane.number,
        lane.state.name(),
        lane.pid,
        lane.guest,
        lane.waiting,
        lane.block,
        lane.is_blocked,
    )
}

/// The names of all queues of this user.
#[pyfunction]
pub(crate) fn queue_names(py: Python<'_>) -> PyResult<Vec<String>> {
    let names = py.detach(queue::names);
    names.map_err(|error| send_error(py, &error))
}
