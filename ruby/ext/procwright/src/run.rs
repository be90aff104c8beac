//! The one function.

use std::cell::RefCell;

use magnus::value::ReprValue;
use magnus::{Error, IntoValue, Object, RArray, RHash, RModule, Ruby, TryConvert, Value, function};
use procwright::{Collected, Command, Event, Failure, Ongoing};

use crate::errors::{guarded, made, not_started, panicked, system};
use crate::gvl;
use crate::options::Options;
use crate::patient::{Pauses, Ring, in_fork};
use crate::report;
use crate::string::adopted;
use crate::taps::Taps;
use crate::values::Cancel;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("run", function!(run, 1))
}

/// Runs a program. Ruby's lock is free all the while but for interrupts and the hook.
fn run(ruby: &Ruby, hash: RHash) -> Result<RHash, Error> {
    guarded(|| {
        let options = Options { ruby, hash };
        let mut spec = options.spec()?;
        options.complete(&mut spec)?;
        let cancel = options.get::<Option<&Cancel>>("cancel")?;
        let cancel = cancel.map(Cancel::handle);
        // In `hash` as well, which the caller holds: so the collector knows of it.
        let hook = options.get::<Option<Value>>("on_event")?;
        let taps = Taps::of(options)?;
        let ring = Ring::take()?;
        let events = RefCell::new(Vec::new());
        let mut ongoing = loop {
            let begun = ring.unlocked(|| {
                let mut command = Command::from_spec(spec.clone()).watch(Pauses(&ring));
                if let Some(cancel) = &cancel {
                    command = command.cancel_on(cancel);
                }
                if hook.is_some() {
                    // Told when the run has paused, for which it is asked.
                    command = command.on_event(|event| {
                        events.borrow_mut().push(event.clone());
                        ring.ring();
                        Ok(())
                    });
                }
                taps.put_to(command)
                    .map(|command| command.begin_into::<Vec<u8>>())
            })?;
            match begun {
                None => {}
                Some(Err(panic)) => return Err(panicked(&*panic)),
                Some(Ok(Err(error))) => {
                    return Err(system(&error, format!("tee: our own output: {error}")));
                }
                Some(Ok(Ok(Err(error)))) => return Err(not_started(&error)),
                Some(Ok(Ok(Ok(ongoing)))) => break Some(ongoing),
            }
        };
        let process = std::process::id();
        // In this frame, where the collector finds what was thrown.
        let mut raised = None;
        let collected = loop {
            let done = ring.unlocked_now(|| match ongoing.as_mut().is_some_and(Ongoing::proceed) {
                true => ongoing.take().map(Ongoing::finish),
                false => None,
            });
            match done {
                Some(Ok(Some(collected))) => break collected,
                Some(Err(panic)) => return Err(panicked(&*panic)),
                // It has paused, or there was an interrupt before it went on.
                Some(Ok(None)) | None => {}
            }
            ring.silence();
            // Who has raised is told nothing more.
            let handled = match &raised {
                None => gvl::check().and_then(|()| tell(ruby, hook, &events)),
                Some(_) => gvl::check_beside(raised.as_ref()),
            };
            if std::process::id() != process {
                // A handler or the hook has forked. The run is not here: to stop it would
                // stop it over there, and to drop it may wait for threads that are there.
                std::mem::forget(ongoing);
                return Err(in_fork(raised, handled));
            }
            match (handled, &mut ongoing, &raised) {
                (Err(error), Some(run), None) => {
                    run.stop();
                    raised = Some(error);
                }
                // Of several the first is the cause; the next is impatience.
                (Err(_), Some(run), Some(_)) => run.kill(),
                _ => {}
            }
        };
        match raised {
            // What has come in the last turn, after which there was no pause.
            None => {
                tell(ruby, hook, &events).and_then(|()| result(ruby, collected, taps.are_shown()))
            }
            Some(error) => Err(error),
        }
    })
}

fn result(ruby: &Ruby, collected: Collected<Vec<u8>>, shown: bool) -> Result<RHash, Error> {
    let Collected {
        report,
        stdout,
        stderr,
        merged,
        failure,
        ..
    } = collected;
    let hash = report::hash(ruby, &report)?;
    // What was shown already is not said again.
    let last_words = match report.is_of_a_terminal() {
        _ if shown => &None,
        true => &stdout,
        false => &stderr,
    };
    let last_words = last_words.as_deref().unwrap_or_default();
    hash.aset(ruby.to_symbol("explanation"), report.explain(last_words))?;
    for (name, data) in [("stdout", stdout), ("stderr", stderr)] {
        hash.aset(ruby.to_symbol(name), data.map(adopted).transpose()?)?;
    }
    let order = merged.map(|segments| -> Result<RArray, Error> {
        let order = ruby.ary_new();
        for one in segments {
            let parts: [Value; 2] = [
                one.stream.into_value_with(ruby),
                one.bytes.into_value_with(ruby),
            ];
            order.push(ruby.ary_new_from_values(&parts))?;
        }
        Ok(order)
    });
    hash.aset(ruby.to_symbol("merged"), order.transpose()?)?;
    match failure {
        None => {}
        Some(Failure::Io(error)) => {
            let command = report.command();
            let words = format!("reading the output of {command} failed: {error}");
            return Err(system(&error, words));
        }
        Some(Failure::Foreign(what, error)) => {
            let words = format!("{what} of {} failed: {error}", report.command());
            if let Some(error) = error.downcast_ref::<std::io::Error>() {
                return Err(system(error, words));
            }
            return Err(made("internal", (words,)));
        }
        Some(_) => return Err(made("internal", ("an unknown failure",))),
    }
    Ok(hash)
}

/// Hands the events to Ruby, on the thread of the run.
fn tell(ruby: &Ruby, hook: Option<Value>, events: &RefCell<Vec<Event>>) -> Result<(), Error> {
    let Some(hook) = hook else { return Ok(()) };
    for event in events.take() {
        let event = parts(ruby, &event)?;
        hook.funcall::<_, _, Value>("call", (event,))?;
    }
    Ok(())
}

/// An event as kind, text, command, stream, holders and whether these are all.
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
        _ => ("other", "", ""),
    };
    array.push(ruby.to_symbol(kind))?;
    array.push(event.to_string())?;
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
    RArray::try_convert(array.as_value())
}
