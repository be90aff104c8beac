//! What a program waits for, and why it does not end, as plain values of Ruby's.

use std::io;

use magnus::value::ReprValue;
use magnus::{Error, IntoValue, RArray, Ruby, Value};
use procwright::explain::{Diagnosis, Waiting};

use crate::errors::{exception, system_error};

/// The parts of a `Waiting`.
pub(crate) fn waiting(ruby: &Ruby, waiting: &Waiting) -> Result<RArray, Error> {
    let holders = ruby.ary_new();
    for one in &waiting.holders {
        let identity = (one.start_ticks, None::<u64>);
        holders.push((one.pid, one.name.as_str(), identity))?;
    }
    let parts: [Value; 7] = [
        ruby.to_symbol(waiting.kind.name()).as_value(),
        waiting.pid.into_value_with(ruby),
        waiting.name.as_str().into_value_with(ruby),
        waiting.fd.into_value_with(ruby),
        waiting.terminal.into_value_with(ruby),
        holders.as_value(),
        waiting.text.as_str().into_value_with(ruby),
    ];
    Ok(ruby.ary_new_from_values(&parts))
}

/// The parts of a `Diagnosis`.
pub(crate) fn diagnosis(ruby: &Ruby, diagnosis: &Diagnosis) -> Result<RArray, Error> {
    let waits = diagnosis.waiting.as_ref();
    let waits = waits.map(|one| waiting(ruby, one)).transpose()?;
    let parts: [Value; 6] = [
        ruby.to_symbol(diagnosis.verdict.name()).as_value(),
        diagnosis.sentence.as_str().into_value_with(ruby),
        diagnosis.why().into_value_with(ruby),
        waits.into_value_with(ruby),
        diagnosis.text(false).into_value_with(ruby),
        diagnosis.json().unwrap_or_default().into_value_with(ruby),
    ];
    Ok(ruby.ary_new_from_values(&parts))
}

/// The exception of a look at a child.
pub(crate) fn refused(pid: i32, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => exception("no_such_process", (pid, error.to_string())),
        _ => system_error(error, error.to_string()),
    }
}
