//! Values that are checked here: times, signals, how to stop; and `Cancel`.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use magnus::{
    Error, Module, Object, RArray, RModule, RString, Ruby, TryConvert, Value, function, method,
};
use procwright::error::Invalid;
use procwright::process::{self, Scope, Signal};
use procwright::time::Timeout;

use crate::errors::{choice, guarded, invalid, system};

pub(crate) fn define(_ruby: &Ruby, native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("check_stop", function!(check_stop, 3))?;
    native.define_singleton_method("signal_name", function!(signal_name, 1))?;
    let class = native.define_class("Cancel", magnus::Ruby::class_object(_ruby))?;
    class.define_singleton_method("new", function!(Cancel::new, 0))?;
    class.define_method("cancel", method!(Cancel::cancel, 0))?;
    class.define_method("cancelled?", method!(Cancel::is_cancelled, 0))?;
    class.define_method("readiness_fd", method!(Cancel::readiness_fd, 0))
}

/// A number of seconds under the name `what`.
pub(crate) fn seconds(what: &str, secs: Option<f64>) -> Result<Timeout, Error> {
    let Some(secs) = secs else {
        return Ok(Timeout::NEVER);
    };
    Timeout::from_secs_f64(secs).map_err(|_| {
        invalid(&Invalid::new(
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
    signal.map_err(|error: Invalid| invalid(&error))
}

/// Signal, grace in seconds and scope.
pub(crate) fn stop(parts: RArray) -> Result<process::Stop, Error> {
    let (signal_value, grace, scope): (Value, f64, String) =
        TryConvert::try_convert(magnus::value::ReprValue::as_value(parts))?;
    made_of(signal(signal_value)?, grace, &scope)
}

fn made_of(signal: Signal, grace: f64, scope: &str) -> Result<process::Stop, Error> {
    let grace = seconds("grace", Some(grace))?.duration();
    let scopes = [Scope::Process, Scope::Group, Scope::Tree];
    let Some(scope) = scopes.into_iter().find(|known| known.name() == scope) else {
        return Err(choice("scope", scope, ":process, :group or :tree"));
    };
    Ok(process::Stop::new()
        .with_signal(signal)
        .with_grace(grace.unwrap_or(std::time::Duration::MAX))
        .with_scope(scope))
}

/// The name of the signal, if all three can be used.
fn check_stop(value: Value, grace: f64, scope: String) -> Result<String, Error> {
    guarded(|| {
        let stop = made_of(signal(value)?, grace, &scope)?;
        Ok(stop.signal().name().into_owned())
    })
}

fn signal_name(value: Value) -> Result<String, Error> {
    guarded(|| Ok(signal(value)?.name().into_owned()))
}

/// Ends runs from another thread.
#[magnus::wrap(class = "Procwright::Native::Cancel", free_immediately)]
pub(crate) struct Cancel(procwright::Cancel);

impl Cancel {
    fn new() -> Result<Cancel, Error> {
        guarded(|| match procwright::Cancel::new() {
            Ok(cancel) => Ok(Cancel(cancel)),
            Err(error) => Err(system(&error, error.to_string())),
        })
    }

    fn cancel(&self) -> Result<(), Error> {
        guarded(|| {
            self.0.cancel();
            Ok(())
        })
    }

    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    fn readiness_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }

    pub(crate) fn handle(&self) -> procwright::Cancel {
        self.0.clone()
    }
}
