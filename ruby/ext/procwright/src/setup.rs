//! What is set up before a program's first instruction: from the core's table, for
//! `lib/procwright/setup.rb`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use magnus::{Error, Object, RArray, RModule, RString, Ruby, Symbol, TryConvert, Value, function};
use procwright::Spec;
use procwright::error::Invalid;
use procwright::spec::{SETUP, SetupKind, SetupOption, SetupValue};

use crate::arguments::signal;
use crate::errors::{guarded, invalid_error};
use crate::string::to_vec;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("setup_options", function!(setup_options, 0))?;
    native.define_singleton_method("check_setup", function!(check_setup, 2))
}

/// The options: name, kind of value, and what would do for a value that would not.
fn setup_options(ruby: &Ruby) -> Result<RArray, Error> {
    let options = ruby.ary_new();
    for option in SETUP {
        let kind = match option.kind {
            SetupKind::Flag => "flag",
            SetupKind::Number => "number",
            SetupKind::Numbers => "numbers",
            SetupKind::Text => "text",
            SetupKind::Signals => "signals",
            SetupKind::Path => "path",
        };
        options.push((
            ruby.to_symbol(option.name),
            ruby.to_symbol(kind),
            option.hint,
        ))?;
    }
    Ok(options)
}

/// Raises what is wrong with a value of the right kind.
fn check_setup(name: Symbol, value: Value) -> Result<(), Error> {
    guarded(|| set(&mut Spec::new([] as [&str; 0]), &name.name()?, value))
}

/// Sets those that were given, by their names.
pub(crate) fn apply(spec: &mut Spec, given: RArray) -> Result<(), Error> {
    for pair in given {
        let (name, value): (Symbol, Value) = TryConvert::try_convert(pair)?;
        set(spec, &name.name()?, value)?;
    }
    Ok(())
}

fn set(spec: &mut Spec, name: &str, value: Value) -> Result<(), Error> {
    let Some(option) = SetupOption::named(name) else {
        let error = Invalid::new(name, "is no option", "see SETUP");
        return Err(invalid_error(&error));
    };
    let value = match option.kind {
        SetupKind::Flag => SetupValue::Flag(bool::try_convert(value)?),
        SetupKind::Number => SetupValue::Number(i64::try_convert(value)?),
        SetupKind::Numbers => SetupValue::Numbers(RArray::try_convert(value)?.to_vec()?),
        SetupKind::Text => SetupValue::Text(String::try_convert(value)?),
        SetupKind::Path => {
            let bytes = to_vec(RString::try_convert(value)?);
            SetupValue::Path(OsString::from_vec(bytes).into())
        }
        SetupKind::Signals => {
            let signals = RArray::try_convert(value)?.into_iter().map(signal);
            SetupValue::Signals(signals.collect::<Result<_, _>>()?)
        }
    };
    option
        .set(spec, value)
        .map_err(|error| invalid_error(&error))
}
