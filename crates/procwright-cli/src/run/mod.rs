//! `procwright run`: one program, from its start to its end.

mod command;
mod files;
pub(crate) mod job;
mod live;
mod modes;
pub(crate) mod output;
mod pty;
mod retry;
mod spec;

use std::fs::File;

use procwright::process::{Exit, adopt_orphans, orphans, reap_orphans};
use procwright::{BoxError, Error, Event, Output, Reason, Spec};

use crate::args::{ReportArg, RunArgs};
use crate::exit::{self, End};
use crate::message::{say, say_in_run, say_the_rest};
use crate::report::{self, Own};
use crate::signals::Signals;
use job::Job;
use output::Outputs;
use pty::{Pty, Watched};
use retry::Attempts;

pub(crate) fn run(args: RunArgs) -> End {
    if args.shell && args.command.len() > 1 {
        say("--shell takes one line\n  hint: quote it, \
             as in: procwright run --shell 'make && make test'");
        return End::TROUBLE;
    }
    let spec = match command::spec(&args) {
        Ok(spec) => spec,
        Err(error) => {
            say(error);
            return End::TROUBLE;
        }
    };
    if let Err(error) = files::are_apart(&args, &spec) {
        say(error);
        return End::TROUBLE;
    }
    if args.dry_run {
        return spec::print(spec, &args);
    }
    // Made before the program starts: a report that cannot be written is no
    // reason to have run anything.
    let report_to = match args.report_to.as_ref().map(File::create).transpose() {
        Ok(file) => file,
        Err(error) => {
            let path = args.report_to.unwrap_or_default();
            say(format_args!(
                "cannot write the report to {:?}: {error}",
                path.display()
            ));
            return End::TROUBLE;
        }
    };
    // Before signals are held back: in the background it stops, for the terminal.
    let pty = match spec.pty.map(|_| Pty::enter(&spec)).transpose() {
        Ok(pty) => pty,
        Err(error) => {
            say(error);
            return End::TROUBLE;
        }
    };
    let outputs = match Outputs::open(&args, &spec) {
        Ok(outputs) => outputs,
        Err(error) => {
            say(error);
            return End::TROUBLE;
        }
    };
    let job = Job::of(&spec, pty.as_ref().and_then(Pty::before));
    let mut signals = match Signals::catch(job, pty.is_some()) {
        Ok(signals) => signals,
        Err(error) => {
            say(format_args!("cannot catch signals: {error}"));
            return End::TROUBLE;
        }
    };
    let adopts = adopt_orphans().is_ok();
    let form = args
        .report
        .or(args.report_to.is_some().then_some(ReportArg::Json));
    let mut attempts = Attempts::new(&args);
    let (result, end) = loop {
        attempts.begin();
        let result = once(spec.clone(), adopts, &outputs, pty.as_ref(), &mut signals);
        let failure = match &result {
            Ok(output) => attempts.failure(output, &signals),
            // What did not start will not the next time; nor do we run anything
            // again after trouble of our own.
            Err(_) => None,
        };
        // It may show much, and whoever has seen enough of it ends us; or nobody
        // takes what we say.
        let end = signals.open(|| {
            outputs.finish(&result, failure.is_some());
            say_the_rest();
            conclude(&result, &signals)
        });
        match failure {
            None => break (result, end),
            Some(failure) => {
                let mut pause = || attempts.pause(&failure, &mut signals);
                let end = match &pty {
                    Some(pty) => pty.rest(pause),
                    None => pause(),
                };
                if let Some(end) = end {
                    break (result, end);
                }
            }
        }
    };
    // Whoever the program left behind has come to us, until we end too.
    let left = match adopts && form.is_some() {
        true => orphans(),
        false => Vec::new(),
    };
    // What is said from here on is said on the person's own terminal. Before
    // signals act again: one of them is for changing modes in the background.
    drop(pty);
    // And nothing is done any more that a signal may not end.
    let signal = signals.fatal();
    drop(signals);
    let end = outputs.conclude(end);
    let output = output(&result);
    let own = Own {
        attempts: attempts.made(),
        total: attempts.elapsed(),
        signal,
        log: outputs.log_figures(),
        left,
    };
    if let (Some(output), Some(form)) = (output, form)
        && let Err(error) = report::write(&output.report, &own, form, report_to)
    {
        say(format_args!("cannot write the report: {error}"));
        // The program's own failure says more than ours.
        return if end == End::OK { End::TROUBLE } else { end };
    }
    end
}

/// One attempt, from the start of the program to its end.
fn once(
    spec: Spec,
    adopts: bool,
    outputs: &Outputs,
    pty: Option<&Pty>,
    signals: &mut Signals,
) -> Result<Output, Error> {
    let mut command = command::command(spec, adopts, outputs);
    if let Some(pty) = pty {
        command = pty.apply(command);
    }
    let result = command
        .watch(Watched {
            signals: &mut *signals,
            pty,
        })
        .on_event(tell)
        .run();
    if let Some(output) = output(&result) {
        // In a container nobody else might ever do it.
        reap_orphans(output.report.pid);
        let report = &output.report;
        let by_signal = matches!(report.status, Exit::Signal { .. });
        signals.conclude(by_signal || report.reason != Reason::Finished);
    }
    result
}

/// What a run had come to, if a program was started.
fn output(result: &Result<Output, Error>) -> Option<&Output> {
    match result {
        Ok(output) => Some(output),
        Err(error) => error.output(),
    }
}

/// Says what has to be said, and how to end.
fn conclude(result: &Result<Output, Error>, signals: &Signals) -> End {
    match result {
        Ok(output) => {
            let report = &output.report;
            let by_limit = !matches!(report.reason, Reason::Finished | Reason::Cancelled);
            if by_limit || !report.survivors.is_empty() {
                say(report.explain(&[]));
            }
            match (signals.fatal(), by_limit) {
                (Some(signal), _) => End::Signal(signal),
                (None, true) => End::STOPPED,
                (None, false) => exit::of_program(report.status),
            }
        }
        Err(error) => {
            say(error);
            match error {
                Error::Spawn { source, .. } => exit::of_spawn(source),
                _ => End::TROUBLE,
            }
        }
    }
}

fn tell(event: &Event) -> Result<(), BoxError> {
    say_in_run(format_args!(
        "{}\n  hint: --until exit does not wait for them",
        event.fact()
    ));
    Ok(())
}
