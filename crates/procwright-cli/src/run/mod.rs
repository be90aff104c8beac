//! `procwright run`: one program, from its start to its end.

mod command;
pub(crate) mod job;
mod modes;

use std::fs::File;

use procwright::process::{Exit, adopt_orphans, reap_orphans};
use procwright::{BoxError, Error, Event, Output, Reason};

use crate::args::{ReportArg, RunArgs, ScopeArg};
use crate::exit::{self, End};
use crate::message::say;
use crate::report;
use crate::signals::Signals;
use job::Job;

pub(crate) fn run(args: RunArgs) -> End {
    if args.shell && args.command.len() > 1 {
        say("--shell takes one line\n  hint: quote it, \
             as in: procwright run --shell 'make && make test'");
        return End::TROUBLE;
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
    let job = Job::new(
        args.command
            .first()
            .map_or_else(String::new, |word| word.to_string_lossy().into_owned()),
        args.pty || matches!(args.scope, ScopeArg::Group),
        args.timeout.is_some() || args.idle_timeout.is_some(),
    );
    let mut signals = match Signals::catch(job) {
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
    let result = command::command(args, adopts)
        .watch(&mut signals)
        .on_event(tell)
        .run();
    let output = match &result {
        Ok(output) => Some(output),
        Err(error) => error.output(),
    };
    if let Some(output) = output {
        // In a container nobody else might ever do it.
        reap_orphans(output.report.pid);
        let report = &output.report;
        let by_signal = matches!(report.status, Exit::Signal { .. });
        signals.conclude(by_signal || report.reason != Reason::Finished);
    }
    let end = conclude(&result, &signals);
    if let (Some(output), Some(form)) = (output, form)
        && let Err(error) = report::write(&output.report, form, report_to)
    {
        say(format_args!("cannot write the report: {error}"));
        // The program's own failure says more than ours.
        return if end == End::OK { End::TROUBLE } else { end };
    }
    end
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
    say(format_args!(
        "{}\n  hint: --until exit does not wait for them",
        event.fact()
    ));
    Ok(())
}
