//! Arguments that the core checks: times, signals, stop policies.

use magnus::{Error, Object, RArray, RModule, RString, Ruby, Symbol, TryConvert, Value, function};
use procwright::error::Invalid;
use procwright::process::{self, Scope, Signal};
use procwright::spec::ShellWords;
use procwright::time::Timeout;

use crate::errors::{choice_error, guarded, invalid_error};
use crate::string::to_vec;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("check_stop", function!(check_stop, 3))?;
    native.define_singleton_method("signal_name", function!(signal_name, 1))?;
    native.define_singleton_method("shell_words", function!(shell_words, 2))
}

/// A timeout of so many seconds. `what` is its name in errors.
pub(crate) fn seconds(what: &str, secs: Option<f64>) -> Result<Timeout, Error> {
    let Some(secs) = secs else {
        return Ok(Timeout::NEVER);
    };
    Timeout::from_secs_f64(secs).map_err(|_| {
        invalid_error(&Invalid::new(
            what,
            "is not a number (NaN)",
            "pass seconds, Float::INFINITY or nil for no limit",
        ))
    })
}

/// A signal by its number or name.
pub(crate) fn signal(value: Value) -> Result<Signal, Error> {
    let signal = match RString::from_value(value) {
        Some(name) => name.to_string()?.parse(),
        None => Signal::new(i32::try_convert(value)?),
    };
    signal.map_err(|error: Invalid| invalid_error(&error))
}

/// Signal, grace in seconds and scope.
pub(crate) fn stop(parts: RArray) -> Result<process::Stop, Error> {
    let (signal_value, grace, scope): (Value, f64, String) =
        TryConvert::try_convert(magnus::value::ReprValue::as_value(parts))?;
    stop_from(signal(signal_value)?, grace, &scope)
}

fn stop_from(signal: Signal, grace: f64, scope: &str) -> Result<process::Stop, Error> {
    let grace = seconds("grace", Some(grace))?.duration();
    let scopes = [Scope::Process, Scope::Group, Scope::Tree];
    let Some(scope) = scopes.into_iter().find(|known| known.name() == scope) else {
        return Err(choice_error("scope", scope, ":process, :group or :tree"));
    };
    Ok(process::Stop::new()
        .with_signal(signal)
        .with_grace(grace.unwrap_or(std::time::Duration::MAX))
        .with_scope(scope))
}

/// What a line for a shell does with the words behind it: `:used`, `:unused` or `:taken_for_one`.
fn shell_words(ruby: &Ruby, line: RString, words: RArray) -> Result<Symbol, Error> {
    guarded(|| {
        let words = words
            .into_iter()
            .map(|word| Ok(to_vec(RString::try_convert(word)?)));
        let words = words.collect::<Result<Vec<_>, Error>>()?;
        let use_of_words = ShellWords::behind(&to_vec(line), &words);
        Ok(ruby.to_symbol(use_of_words.name()))
    })
}

/// The name of the signal, if all three are valid.
fn check_stop(value: Value, grace: f64, scope: String) -> Result<String, Error> {
    guarded(|| {
        let stop = stop_from(signal(value)?, grace, &scope)?;
        Ok(stop.signal().name().into_owned())
    })
}

fn signal_name(value: Value) -> Result<String, Error> {
    guarded(|| Ok(signal(value)?.name().into_owned()))
}
