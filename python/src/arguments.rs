//! Values that a caller passes: one that will not do is refused in one shape of words, before
//! anything happens.

use std::os::fd::OwnedFd;

use procwright::process::Signal;
use procwright::spec::ShellWords;
use procwright::time::Timeout;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBool, PyInt, PyString};

use crate::errors::{INVALID, duplicate, invalid};
use crate::python::{self, exception};

pub(crate) type Argument<'a, 'py> = &'a Bound<'py, PyAny>;

/// The exception for the value of the parameter `name`. `hint` says what would do.
#[cold]
pub(crate) fn bad_value(name: &str, given: Argument<'_, '_>, hint: &str) -> PyErr {
    exception(given.py(), INVALID, "bad_value", (name, given, hint))
}

/// The exception for a value of a type that the parameter `name` does not take.
#[cold]
pub(crate) fn bad_type(name: &str, given: Argument<'_, '_>, hint: &str) -> PyErr {
    exception(given.py(), INVALID, "bad_type", (name, given, hint))
}

/// The exception for a value that could not be made into what the parameter takes. What code
/// of the value's own has raised stays as it is.
#[cold]
pub(crate) fn refusal(name: &str, given: Argument<'_, '_>, hint: &str, why: PyErr) -> PyErr {
    let py = given.py();
    if why.is_instance_of::<PyTypeError>(py) {
        bad_type(name, given, hint)
    } else if why.is_instance_of::<PyOverflowError>(py)
        || why.is_instance_of::<PyUnicodeEncodeError>(py)
    {
        bad_value(name, given, hint)
    } else {
        why
    }
}

/// The value, or None.
pub(crate) fn maybe<T>(
    given: Argument<'_, '_>,
    known: impl FnOnce(Argument<'_, '_>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    match given.is_none() {
        true => Ok(None),
        false => known(given).map(Some),
    }
}

/// A whole number from `least` on, of the range of its type. True is none.
pub(crate) fn count(
    name: &str,
    least: usize,
    given: Argument<'_, '_>,
    hint: &str,
) -> PyResult<usize> {
    if given.is_instance_of::<PyBool>() {
        return Err(bad_type(name, given, hint));
    }
    match given.extract() {
        Ok(number) if number >= least => Ok(number),
        Ok(_) => Err(bad_value(name, given, hint)),
        Err(why) => Err(refusal(name, given, hint, why)),
    }
}

/// A number of bytes, or text with a unit, such as "64KiB".
pub(crate) fn bytes(name: &str, given: Argument<'_, '_>) -> PyResult<usize> {
    python::call(given.py(), "procwright._arguments", "size", (name, given))?.extract()
}

/// The number of a descriptor.
pub(crate) fn descriptor(name: &str, given: Argument<'_, '_>) -> PyResult<i32> {
    let hint = "pass the number of an open descriptor, 0 or more";
    let number = count(name, 0, given, hint)?;
    i32::try_from(number).map_err(|_| bad_value(name, given, hint))
}

/// How much to read, as a file takes it: less than 0 is all.
pub(crate) fn size(given: Argument<'_, '_>) -> PyResult<i64> {
    if given.is_none() {
        return Ok(-1);
    }
    let hint = "pass how much to read, or -1 or None for all";
    given
        .extract()
        .map_err(|why| refusal("size", given, hint, why))
}

/// What a line for a shell does with the words behind it: "used", "unused" or "taken_for_one".
#[pyfunction]
#[pyo3(signature = (line, words, /))]
pub(crate) fn shell_words(line: &[u8], words: Vec<PyBackedBytes>) -> &'static str {
    ShellWords::behind(line, &words).name()
}

/// `size` for the Python half.
#[pyfunction]
#[pyo3(signature = (given, /))]
pub(crate) fn checked_size(given: Argument<'_, '_>) -> PyResult<i64> {
    size(given)
}

/// The hint of every timeout.
const SECONDS: &str = "pass seconds as a number or a timedelta, or None for no limit";

/// Seconds under the parameter's name, as the caller may want them back. An int that is too large
/// for a float is an infinity.
pub(crate) fn seconds(name: &str, given: Argument<'_, '_>) -> PyResult<Option<f64>> {
    if given.is_none() {
        return Ok(None);
    }
    if given.is_instance_of::<PyBool>() {
        return Err(bad_type(name, given, SECONDS));
    }
    match number_of_seconds(given) {
        Ok(seconds) if seconds.is_nan() => Err(bad_value(name, given, SECONDS)),
        Ok(seconds) => Ok(Some(seconds)),
        Err(why) if why.is_instance_of::<PyOverflowError>(given.py()) => {
            let is_long = given.gt(0)?;
            Ok(Some(if is_long { f64::INFINITY } else { 0.0 }))
        }
        Err(why) => Err(refusal(name, given, SECONDS, why)),
    }
}

/// A number, or that of a timedelta.
fn number_of_seconds(given: Argument<'_, '_>) -> PyResult<f64> {
    match given.extract::<f64>() {
        Err(why) if why.is_instance_of::<PyTypeError>(given.py()) => {
            let total = given.getattr_opt("total_seconds")?.ok_or(why)?;
            total.call0()?.extract()
        }
        found => found,
    }
}

/// The seconds of a parameter `timeout`.
pub(crate) fn timeout_seconds(given: Argument<'_, '_>) -> PyResult<Option<f64>> {
    seconds("timeout", given)
}

/// A timeout, None if none was given.
pub(crate) fn timeout(given: Argument<'_, '_>) -> PyResult<Option<Timeout>> {
    maybe(given, |given| limit_of("timeout", given))
}

/// Seconds as a timeout; one that never comes if there are none.
pub(crate) fn limit_of(name: &str, given: Argument<'_, '_>) -> PyResult<Timeout> {
    let Some(seconds) = seconds(name, given)? else {
        return Ok(Timeout::NEVER);
    };
    Timeout::from_secs_f64(seconds).map_err(|error| invalid(given.py(), &error))
}

/// A string.
pub(crate) fn string(name: &str, given: Argument<'_, '_>, hint: &str) -> PyResult<String> {
    given
        .extract()
        .map_err(|why| refusal(name, given, hint, why))
}

/// The value that one of these words means.
pub(crate) fn choice<T: Copy>(
    name: &str,
    given: Argument<'_, '_>,
    known: &[(&str, T)],
) -> PyResult<T> {
    let chosen = given.cast::<PyString>().ok().and_then(|word| {
        let word = word.to_str().ok()?;
        known.iter().find(|(known, _)| *known == word)
    });
    if let Some((_, chosen)) = chosen {
        return Ok(*chosen);
    }
    let words: Vec<String> = known.iter().map(|(word, _)| format!("{word:?}")).collect();
    let hint = match &*words {
        [first @ .., last] if !first.is_empty() => format!("use {} or {last}", first.join(", ")),
        words => format!("use {}", words.concat()),
    };
    match given.is_instance_of::<PyString>() {
        true => Err(bad_value(name, given, &hint)),
        false => Err(bad_type(name, given, &hint)),
    }
}

/// A signal by its name or number.
pub(crate) fn signal_called(name: &str, given: Argument<'_, '_>) -> PyResult<Signal> {
    let hint = "pass the name of a signal, such as \"TERM\" or \"SIGTERM\", or its number";
    let is_number = given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>();
    let signal = if is_number {
        given.extract().ok().map(Signal::new)
    } else if let Ok(word) = given.cast::<PyString>() {
        word.to_str().ok().map(str::parse)
    } else {
        return Err(bad_type(name, given, hint));
    };
    match signal {
        Some(Ok(signal)) => Ok(signal),
        _ => Err(bad_value(name, given, hint)),
    }
}

/// The value of a parameter for a signal, if it is one, for the Python half.
#[pyfunction]
#[pyo3(signature = (name, given, /))]
pub(crate) fn checked_signal<'py>(
    name: &str,
    given: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    signal_called(name, &given).map(|_| given)
}

/// The items of an iterable that is no text.
pub(crate) fn items<'py>(
    name: &str,
    given: Argument<'_, 'py>,
    hint: &str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_text = given.is_instance_of::<PyString>();
    let items = match given.try_iter() {
        Ok(items) if !is_text => items,
        Ok(_) => return Err(bad_type(name, given, hint)),
        Err(why) => return Err(refusal(name, given, hint, why)),
    };
    items.collect()
}

/// What would do for the descriptors of an invitation.
pub(crate) const FDS_OF_INVITATION: &str =
    "pass the descriptors that the `fds` of an invitation gave, in that order";

/// Duplicates of the descriptors of an invitation, which stay the caller's.
pub(crate) fn duplicates(fds: Argument<'_, '_>) -> PyResult<Vec<OwnedFd>> {
    let numbers = items("fds", fds, FDS_OF_INVITATION)?;
    let numbers = numbers.iter().enumerate().map(|(place, number)| {
        let number = descriptor(&format!("fds[{place}]"), number)?;
        duplicate(fds.py(), number, &format!("descriptor {number}"))
    });
    numbers.collect()
}

/// The text of an invitation.
pub(crate) fn ticket_of(given: Argument<'_, '_>) -> PyResult<String> {
    string(
        "ticket",
        given,
        "pass the text that the `ticket` of an invitation gave",
    )
}
