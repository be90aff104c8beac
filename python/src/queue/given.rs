//! Numbers, times and words of a caller's: all that is wrong with them is told before
//! anything happens.

use procwright::error::Invalid;
use procwright::queue::Overflow;
use procwright::time::Timeout;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::invalid;
use crate::values::{choice, seconds};

type Given<'a, 'py> = &'a Bound<'py, PyAny>;

/// A number of something under the name `what`, from `least` on.
fn count(what: &str, least: usize, given: Given<'_, '_>) -> PyResult<usize> {
    match given.extract() {
        Ok(number) if number >= least => Ok(number),
        Err(error) if !error.is_instance_of::<PyOverflowError>(given.py()) => Err(error),
        // Python's own numbers have no end on either side.
        Ok(_) | Err(_) => {
            let right = match least {
                0 => "pass how many bytes, 0 or more".to_owned(),
                _ => format!("pass {least} or more"),
            };
            Err(invalid(
                given.py(),
                &Invalid::new(what, format!("is {given}"), right),
            ))
        }
    }
}

/// For each argument one, which knows its name.
macro_rules! counts {
    ($($name:ident from $least:literal,)*) => {$(
        pub(super) fn $name(given: Given<'_, '_>) -> PyResult<usize> {
            count(stringify!($name), $least, given)
        }
    )*};
}

counts! {
    lanes from 1,
    first from 0,
    limit from 0,
    keep from 0,
    length from 0,
    most from 1,
}

/// None is as usual.
fn maybe<T>(
    given: Given<'_, '_>,
    known: impl FnOnce(Given<'_, '_>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    match given.is_none() {
        true => Ok(None),
        false => known(given).map(Some),
    }
}

pub(super) fn maybe_limit(given: Given<'_, '_>) -> PyResult<Option<usize>> {
    maybe(given, limit)
}

pub(super) fn maybe_length(given: Given<'_, '_>) -> PyResult<Option<usize>> {
    maybe(given, length)
}

/// None waits for as long as it takes, if it waits at all.
pub(super) fn timeout(given: Given<'_, '_>) -> PyResult<Option<Timeout>> {
    maybe(given, |given| {
        let timeout = seconds("timeout", Some(given.extract()?));
        timeout.map_err(|error| invalid(given.py(), &error))
    })
}

/// The names of what can happen when there is no room.
pub(super) const OVERFLOWS: [(&str, Overflow); 3] = [
    ("block", Overflow::Block),
    ("fail", Overflow::Fail),
    ("drop_newest", Overflow::DropNewest),
];

pub(super) fn overflow(given: Given<'_, '_>) -> PyResult<Overflow> {
    let word: &str = &given.extract::<String>()?;
    let known = OVERFLOWS.into_iter().find(|(name, _)| *name == word);
    known.map(|(_, overflow)| overflow).ok_or_else(|| {
        let choices = "\"block\", \"fail\" or \"drop_newest\"";
        choice(given.py(), "overflow", word, choices)
    })
}

pub(super) fn maybe_overflow(given: Given<'_, '_>) -> PyResult<Option<Overflow>> {
    maybe(given, overflow)
}
