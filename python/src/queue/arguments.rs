//! Numbers, times and words that a caller passes: an error in them is raised before anything
//! happens.

use procwright::error::Invalid;
use procwright::queue::Overflow;
use procwright::time::Timeout;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::invalid;
use crate::values::{choice, seconds};

type Argument<'a, 'py> = &'a Bound<'py, PyAny>;

/// A number called `what`, from `least` on.
fn count(what: &str, least: usize, given: Argument<'_, '_>) -> PyResult<usize> {
    match given.extract() {
        Ok(number) if number >= least => Ok(number),
        Err(error) if !error.is_instance_of::<PyOverflowError>(given.py()) => Err(error),
        // Numbers of Python's may be too large, or too small, for the type.
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
    first from 0,
    limit from 0,
    keep from 0,
    length from 0,
    most from 1,
}

/// The value, or None.
fn maybe<T>(
    given: Argument<'_, '_>,
    known: impl FnOnce(Argument<'_, '_>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    match given.is_none() {
        true => Ok(None),
        false => known(given).map(Some),
    }
}

pub(super) fn maybe_limit(given: Argument<'_, '_>) -> PyResult<Option<usize>> {
    maybe(given, limit)
}

pub(super) fn maybe_length(given: Argument<'_, '_>) -> PyResult<Option<usize>> {
    maybe(given, length)
}

/// A timeout. None is no limit to a call that waits.
pub(super) fn timeout(given: Argument<'_, '_>) -> PyResult<Option<Timeout>> {
    maybe(given, |given| {
        let timeout = seconds("timeout", Some(given.extract()?));
        timeout.map_err(|error| invalid(given.py(), &error))
    })
}

/// The names of the policies for a message that finds no room.
pub(super) const OVERFLOWS: [(&str, Overflow); 3] = [
    ("block", Overflow::Block),
    ("fail", Overflow::Fail),
    ("drop_newest", Overflow::DropNewest),
];

pub(super) fn overflow(given: Argument<'_, '_>) -> PyResult<Overflow> {
    let word: &str = &given.extract::<String>()?;
    let known = OVERFLOWS.into_iter().find(|(name, _)| *name == word);
    known.map(|(_, overflow)| overflow).ok_or_else(|| {
        let choices = "\"block\", \"fail\" or \"drop_newest\"";
        choice(given.py(), "overflow", word, choices)
    })
}

pub(super) fn maybe_overflow(given: Argument<'_, '_>) -> PyResult<Option<Overflow>> {
    maybe(given, overflow)
}
