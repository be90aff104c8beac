//! Numbers and words that a caller of a queue passes.

use procwright::queue::Overflow;
use procwright::time::Timeout;
use pyo3::prelude::*;

use super::Invitation;
use crate::arguments::{Argument, bad_type, choice, limit_of, maybe, string};
pub(super) use crate::arguments::{items, timeout, timeout_seconds};

/// A number called `what`, from `least` on.
fn count(what: &str, least: usize, given: Argument<'_, '_>) -> PyResult<usize> {
    crate::arguments::count(what, least, given, &format!("pass {least} or more"))
}

/// Makes a function for each argument, which knows the argument's name.
macro_rules! counts {
    ($($name:ident from $least:literal,)*) => {$(
        pub(super) fn $name(given: Argument<'_, '_>) -> PyResult<usize> {
            count(stringify!($name), $least, given)
        }
    )*};
}

counts! {
    lanes from 1,
    length from 0,
    most from 1,
}

/// Makes a function for each argument that is a size, which knows the argument's name.
macro_rules! sizes {
    ($($name:ident,)*) => {$(
        pub(super) fn $name(given: Argument<'_, '_>) -> PyResult<usize> {
            crate::arguments::bytes(stringify!($name), given)
        }
    )*};
}

sizes! {
    first,
    limit,
    keep,
}

pub(super) fn maybe_first(given: Argument<'_, '_>) -> PyResult<Option<usize>> {
    maybe(given, first)
}

pub(super) fn maybe_limit(given: Argument<'_, '_>) -> PyResult<Option<usize>> {
    maybe(given, limit)
}

pub(super) fn maybe_length(given: Argument<'_, '_>) -> PyResult<Option<usize>> {
    maybe(given, length)
}

/// Seconds that a call waits for a place at a queue. None is no limit.
pub(super) fn wait(given: Argument<'_, '_>) -> PyResult<Option<Timeout>> {
    maybe(given, |given| limit_of("wait", given))
}

/// The names of the policies for a message that finds no room.
pub(super) const OVERFLOWS: [(&str, Overflow); 3] = [
    ("block", Overflow::Block),
    ("fail", Overflow::Fail),
    ("drop_newest", Overflow::DropNewest),
];

pub(super) fn overflow(given: Argument<'_, '_>) -> PyResult<Overflow> {
    choice("overflow", given, &OVERFLOWS)
}

/// The name of a queue.
pub(super) fn name(given: Argument<'_, '_>) -> PyResult<String> {
    let hint = "pass the name of a queue, such as \"jobs\"";
    string("name", given, hint)
}

/// An invitation to a queue.
pub(super) fn invitation<'a, 'py>(given: Argument<'a, 'py>) -> PyResult<Bound<'py, Invitation>> {
    let hint = "pass an Invitation, such as receiver.invite()";
    let invitation = given.cast::<Invitation>();
    invitation
        .cloned()
        .map_err(|_| bad_type("invitation", given, hint))
}

pub(super) fn maybe_overflow(given: Argument<'_, '_>) -> PyResult<Option<Overflow>> {
    maybe(given, overflow)
}
