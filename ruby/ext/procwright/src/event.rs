//! Events of runs and children, as plain values of Ruby's.

use magnus::value::ReprValue;
use magnus::{Error, RArray, Ruby, TryConvert};
use procwright::Event;

use crate::explained;
use crate::report;

/// An event as kind, text, command, stream, holders and whether these are all; of some a diagnosis,
/// or none, what the program waits for, and its prompt.
pub(crate) fn parts(ruby: &Ruby, event: &Event) -> Result<RArray, Error> {
    let array = ruby.ary_new();
    let (kind, command, stream) = match event {
        Event::Held {
            command, streams, ..
        } => ("held", &**command, &**streams),
        Event::Spilling {
            command, stream, ..
        } => ("spilling", &**command, *stream),
        Event::Degraded {
            command, stream, ..
        } => ("degraded", &**command, *stream),
        Event::Dropping {
            command, stream, ..
        } => ("dropping", &**command, *stream),
        Event::Overflowed {
            command, stream, ..
        } => ("overflowed", &**command, *stream),
        Event::Missed { command, .. } => ("missed", &**command, ""),
        Event::Explained { command, .. } => ("explained", &**command, ""),
        Event::InputWanted { command, .. } => ("input_wanted", &**command, ""),
        _ => ("other", "", ""),
    };
    array.push(ruby.to_symbol(kind))?;
    array.push(event.explain_to(report::UNTIL_EXIT))?;
    array.push(command)?;
    array.push(stream)?;
    let (holders, complete) = match event {
        Event::Held {
            holders, complete, ..
        } => (report::holders(ruby, holders)?, *complete),
        _ => (ruby.ary_new(), true),
    };
    array.push(holders)?;
    array.push(complete)?;
    match event {
        Event::Explained {
            diagnosis: Ok(diagnosis),
            ..
        } => array.push(explained::diagnosis(ruby, diagnosis)?)?,
        Event::InputWanted {
            waiting, prompt, ..
        } => {
            array.push(ruby.qnil())?;
            array.push(explained::waiting(ruby, waiting)?)?;
            array.push(prompt.as_deref())?;
        }
        _ => {}
    }
    RArray::try_convert(array.as_value())
}
