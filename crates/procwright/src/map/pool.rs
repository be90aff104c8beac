//! The threads of a map, each of which runs one command after another.
//!
//! A thread comes with the command that needs it, so that three commands never take eight
//! threads.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::ended::Outcome;
use super::error::Error;
use super::state::{EndWatch, Ending, Shared, Taken};
use crate::command::Command;
use crate::error::Invalid;
use crate::quote::quote;
use crate::run;
use crate::spec::{Spec, Stdin};
use crate::spool::Memory;
use procwright_os::time::Timeout;
use procwright_os::wake::Wake;

/// Adds a thread.
///
/// # Errors
/// No thread or no descriptor can be had.
pub(super) fn add_thread<M: Memory>(shared: &Arc<Shared<M>>) -> io::Result<()> {
    let bell = Arc::new(Wake::new()?);
    // Known before it runs: the end of the map rings for whoever is about to start something.
    shared.add_thread(Arc::clone(&bell));
    let theirs = (Arc::clone(shared), Arc::clone(&bell));
    // Signals are not blocked: the thread asks the caller's iterator, and what that starts
    // would inherit the mask.
    let made = std::thread::Builder::new()
        .name("procwright-map".into())
        .spawn(move || work(&theirs.0, &theirs.1));
    match made {
        Ok(thread) => {
            shared.keep_handle(thread);
            Ok(())
        }
        Err(error) => {
            shared.remove_thread(&bell);
            Err(error)
        }
    }
}

fn work<M: Memory>(shared: &Arc<Shared<M>>, bell: &Arc<Wake>) {
    while let Some(Taken {
        index,
        start,
        spec,
        wants_thread,
    }) = shared.take_command()
    {
        if wants_thread {
            // Where none can be had, fewer run at a time.
            let _ = add_thread(shared);
        }
        let done = catch_unwind(AssertUnwindSafe(|| perform(shared, bell, index, &spec)));
        let outcome = done.unwrap_or_else(|_| {
            shared.fail(Error::Panicked("what makes the tap of a command"));
            not_started(&spec)
        });
        shared.put(index, start, spec, outcome);
    }
    shared.remove_thread(bell);
}

/// Does what is to be done about a command: runs it, unless the journal tells of it.
fn perform<M: Memory>(shared: &Shared<M>, bell: &Wake, index: u64, spec: &Arc<Spec>) -> Outcome<M> {
    if shared.ending() != Ending::None {
        return not_started(spec);
    }
    #[cfg(feature = "serde")]
    if let Some(journal) = &shared.journal {
        return perform_noted(shared, bell, index, spec, journal);
    }
    run_one(shared, bell, index, spec)
}

#[cfg(feature = "serde")]
fn perform_noted<M: Memory>(
    shared: &Shared<M>,
    bell: &Wake,
    index: u64,
    spec: &Arc<Spec>,
    journal: &super::journal::Journal,
) -> Outcome<M> {
    use super::journal::Admission;
    let entry = match journal.admit(index, spec) {
        Ok(Admission::Run(entry)) => entry,
        Ok(Admission::Before(past)) => return Outcome::Before(past),
        Ok(Admission::Unknown(past)) => return Outcome::Unknown(past),
        Err(error) => {
            shared.fail(Error::Journal(error));
            return not_started(spec);
        }
    };
    let outcome = run_one(shared, bell, index, spec);
    let was_stopped = was_stopped(shared, spec, &outcome);
    if let Err(error) = journal.ended(&entry, &outcome, was_stopped) {
        // The command has been run: its result is told, and the error behind it.
        shared.fail(Error::Journal(error));
    }
    outcome
}

/// Whether the end of the map has stopped it, or kept it from starting: its deadline, too.
#[cfg(feature = "serde")]
fn was_stopped<M: Memory>(shared: &Shared<M>, spec: &Spec, outcome: &Outcome<M>) -> bool {
    let Outcome::Ran(collected) = outcome else {
        return matches!(outcome, Outcome::NotStarted(run::Error::Cancelled { .. }));
    };
    let report = &collected.report;
    match report.reason {
        run::Reason::Cancelled => true,
        // A timeout of its own, that has come, is a failure of its own.
        run::Reason::Timeout => {
            let own = spec.timeout.duration();
            let has_come = own.is_some_and(|own| report.duration >= own);
            !has_come && shared.rules.deadline.reached(Instant::now())
        }
        _ => false,
    }
}

/// The outcome of a command for which the end of the map came first.
fn not_started<M>(spec: &Spec) -> Outcome<M> {
    Outcome::NotStarted(run::Error::Cancelled {
        command: quote(&spec.argv),
    })
}

fn run_one<M: Memory>(shared: &Shared<M>, bell: &Wake, index: u64, spec: &Arc<Spec>) -> Outcome<M> {
    let rules = &shared.rules;
    if let Some(invalid) = refused(spec) {
        return Outcome::NotStarted(run::Error::Invalid(invalid));
    }
    let mut own = Spec::clone(spec);
    if own.env.is_none() {
        own.env.clone_from(&rules.env);
    }
    if let Some(left) = rules.deadline.remaining(Instant::now()) {
        let timeout = own.timeout.duration().map_or(left, |own| own.min(left));
        own.timeout = Timeout::after(timeout);
    }
    let tap = rules.tap.as_ref().and_then(|make| make(index, spec));
    let relays = own.relays();
    let mut command = Command::from_spec(own).watch(EndWatch { shared, bell });
    if let Some(cancel) = &rules.cancel {
        command = command.cancel_on(cancel);
    }
    if let Some(hook) = &rules.on_event {
        let hook = Arc::clone(hook);
        command = command.on_event(move |event| hook(index, event));
    }
    if let Some(tap) = tap {
        command = match relays.stdout || relays.stderr {
            true => command.relay_with(tap),
            false => command.tap_both(tap),
        };
    }
    match command.run_into() {
        Ok(collected) => Outcome::Ran(Box::new(collected)),
        Err(error) => Outcome::NotStarted(error),
    }
}

/// What makes no sense for one of many.
fn refused(spec: &Spec) -> Option<Invalid> {
    if matches!(spec.stdin, Stdin::Inherit) {
        return Some(Invalid::new(
            "stdin",
            "is the caller's own, of which commands that run at a time would take parts",
            "give each command bytes or a file, or nothing",
        ));
    }
    if spec.foreground {
        return Some(Invalid::new(
            "foreground",
            "is for one program at a time",
            "leave it out: the commands of a map share the group of their caller",
        ));
    }
    None
}
