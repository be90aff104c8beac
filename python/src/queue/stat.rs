//! A queue as it is seen from outside, for `procwright/_queue_stat.py`.

use procwright::queue::{self, Asleep, LaneStat};
use pyo3::prelude::*;

use super::errors::{Side, failed};

/// Lanes, first, limit, memory, epoch, claims.
type Numbers = (u32, u64, u64, u64, u64, u32);
/// State, pid, asleep.
type Receiver = (&'static str, Option<i32>, Option<&'static str>);
/// Number, state, pid, guest, waiting, block, whether it is blocked.
type Lane = (
    u32,
    &'static str,
    Option<i32>,
    u32,
    Option<u64>,
    Option<u64>,
    bool,
);

/// What the queue of that name is like.
#[pyfunction]
pub(crate) fn queue_stat(py: Python<'_>, name: &str) -> PyResult<(Numbers, Receiver, Vec<Lane>)> {
    let stat = py.detach(|| queue::stat(name));
    // Who looks is neither: an error of both.
    let stat = stat.map_err(|error| failed(py, &error, Side::Sender))?;
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

fn lane(lane: &LaneStat) -> Lane {
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
    names.map_err(|error| failed(py, &error, Side::Sender))
}
