//! `Procwright.run`.

use std::time::UNIX_EPOCH;

use magnus::{Error, IntoValue, Object, RArray, RHash, RModule, Ruby, Value, function};
use procwright::error::Step;
use procwright::{Collected, Command, Failure, StdStream};

use crate::arguments::seconds;
use crate::errors::{exception, guarded, spawn_error, start_refused, system_error};
use crate::event_handover::EventHandover;
use crate::interruptible::{Interrupts, PauseOnInterrupt};
use crate::options::Options;
use crate::output_tap::{OWN_OUTPUT, OutputTaps};
use crate::report;
use crate::string::string_from_vec;
use crate::turns;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("run", function!(run, 1))
}

/// Runs a program. This thread has Ruby's lock only for interrupts.
fn run(ruby: &Ruby, hash: RHash) -> Result<RHash, Error> {
    guarded(|| {
        let options = Options { ruby, hash };
        let spec = options.spec()?;
        let cancel = options.cancel()?;
        let events = options.get::<Option<&EventHandover>>("events")?;
        let explain_after = seconds("explain_after", options.get("explain_after")?)?.duration();
        let input_wanted: bool = options.get("input_wanted")?;
        let taps = OutputTaps::from_options(options)?;
        let refused = |step, object: &str, error| start_refused(&spec.argv, step, object, error);
        let interrupts = Interrupts::try_watch().map_err(|error| refused(Step::Pipe, "", error))?;
        let begun = turns::begin(&interrupts, || {
            let mut command = Command::from_spec(spec.clone())
                .watch(PauseOnInterrupt(&interrupts))
                .until_exit_written_as(report::UNTIL_EXIT);
            if let Some(cancel) = &cancel {
                command = command.cancel_on(cancel);
            }
            if let Some(after) = explain_after {
                command = command.explain_after(after);
            }
            if input_wanted {
                command = command.input_wanted();
            }
            if let Some(events) = events {
                command = command.on_event(events.hook());
            }
            taps.add_to(command)
                .map(|command| command.begin_into::<Vec<u8>>())
        })?;
        let begun = begun.map_err(|error| refused(Step::Dup, OWN_OUTPUT, error))?;
        let ongoing = begun.map_err(|error| spawn_error(&error))?;
        let collected = turns::drive(&interrupts, ongoing)?;
        let collected = collected.map_err(|error| spawn_error(&error))?;
        result(ruby, collected, taps.shown())
    })
}

fn result(ruby: &Ruby, collected: Collected<Vec<u8>>, shown: &[StdStream]) -> Result<RHash, Error> {
    let (hash, failure) = parts(ruby, collected, shown)?;
    failure.map_or(Ok(hash), Err)
}

/// The parts of a result, and what has broken the run off.
pub(crate) fn parts(
    ruby: &Ruby,
    collected: Collected<Vec<u8>>,
    shown: &[StdStream],
) -> Result<(RHash, Option<Error>), Error> {
    let Collected {
        report,
        stdout,
        stderr,
        merged,
        failure,
        ..
    } = collected;
    let hash = report::hash(ruby, &report)?;
    // Output that was shown already is not repeated.
    let (of, last_words) = match report.last_words_of {
        StdStream::Stdout => (StdStream::Stdout, &stdout),
        StdStream::Stderr => (StdStream::Stderr, &stderr),
    };
    let untold = last_words.as_deref().filter(|_| !shown.contains(&of));
    let last_words = untold.unwrap_or_default();
    let explanation = report.explain_to(last_words, report::UNTIL_EXIT);
    hash.aset(ruby.to_symbol("explanation"), explanation)?;
    for (name, data) in [("stdout", stdout), ("stderr", stderr)] {
        hash.aset(ruby.to_symbol(name), data.map(string_from_vec).transpose()?)?;
    }
    let order = merged.map(|segments| -> Result<RArray, Error> {
        let order = ruby.ary_new();
        for one in segments {
            let at = one.at.duration_since(UNIX_EPOCH).unwrap_or_default();
            let parts: [Value; 4] = [
                one.stream.fd().into_value_with(ruby),
                one.bytes.into_value_with(ruby),
                one.ambiguous.into_value_with(ruby),
                at.as_secs_f64().into_value_with(ruby),
            ];
            order.push(ruby.ary_new_from_values(&parts))?;
        }
        Ok(order)
    });
    hash.aset(ruby.to_symbol("merged"), order.transpose()?)?;
    let failure = failure.map(|failure| failure_error(failure, &report.command()));
    Ok((hash, failure))
}

/// The exception for what has broken `command` off.
pub(crate) fn failure_error(failure: Failure, command: &str) -> Error {
    match failure {
        Failure::Io(error) => {
            let words = format!("reading the output of {command} failed: {error}");
            system_error(&error, words)
        }
        Failure::Foreign(what, error) => {
            let words = format!("{what} of {command} failed: {error}");
            match error.downcast_ref::<std::io::Error>() {
                Some(error) => system_error(error, words),
                None => exception("internal_error", (words,)),
            }
        }
        _ => exception("internal_error", ("an unknown failure",)),
    }
}
