//! `procwright run`: one program, from its start to its end.

mod command;
mod dry_run;
mod explanation;
mod input_wanted;
mod outer_terminal;
mod output;
mod progress;
mod report;
mod retry;
mod saved_modes;
mod shell_job;
mod signals;
mod spec_file;
mod watch;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use procwright::process::{Exit, Signal, adopt_orphans, has_children, orphans, reap_orphans};
use procwright::{Error, Event, Output, Reason, Spec, Stdin};

use crate::args::RunArgs;
use crate::exit::Termination;
use crate::report_file::ReportFile;
use crate::{file_conflicts, inherited_signals, message};
use explanation::Explanations;
use input_wanted::InputWanted;
use outer_terminal::OuterTerminal;
use output::Outputs;
use report::CommandReport;
use retry::Attempts;
use shell_job::ShellJob;
use signals::RunSignals;
use watch::RunWatch;

/// Runs the program of the options.
///
/// # Errors
/// The program was not run, or the report could not be written.
pub(crate) fn run(args: &RunArgs) -> Result<Termination, Termination> {
    let ignored = inherited_signals::ignored();
    let mut spec = checked_spec(args).map_err(Termination::trouble)?;
    if args.dry_run {
        return dry_run::print(spec, args);
    }
    open_fifo(&mut spec.stdin)?;
    // The file is opened before the program starts: a program whose report cannot be
    // written is not run.
    let report_file = ReportFile::asked(&args.report)?;
    let explanations = Arc::new(Explanations::open(args, &spec)?);
    let input_wanted = args.input_wanted.map(InputWanted::new).transpose();
    let input_wanted = input_wanted.map_err(|error| {
        Termination::trouble(format_args!("cannot look for waits for input: {error}"))
    })?;
    let input_wanted = input_wanted.map(Arc::new);
    // The terminal is made raw before signals are blocked: in the background this
    // process has to stop by one.
    let outer = spec.pty.map(|_| OuterTerminal::enter(&spec)).transpose();
    let outer = outer.map_err(Termination::trouble)?;
    let is_subreaper = adopt_orphans().is_ok();
    // A shell that became this command by `exec` has left it its children. Who descends
    // from them comes to this process as the program's orphans do, and nothing tells the
    // two apart.
    let knows_orphans = is_subreaper && !has_children();
    let outputs = Outputs::open(args, &spec, knows_orphans).map_err(Termination::trouble)?;
    let job = ShellJob::new(&spec, outer.as_ref().and_then(OuterTerminal::modes_before));
    let mut signals = RunSignals::block(job, outer.is_some())
        .map_err(|error| Termination::trouble(format_args!("cannot catch signals: {error}")))?;
    let mut attempts = Attempts::new(args);
    let mut runner = Runner {
        spec,
        ignored,
        is_subreaper,
        explain_after: args.explain_after,
        explanations: &explanations,
        input_wanted: input_wanted.as_ref(),
        outputs: &outputs,
        outer: outer.as_ref(),
        signals: &mut signals,
    };
    let (result, termination) = runner.run_attempts(&mut attempts);
    let form = args.report.form();
    // Processes that the program has left behind are children of this one until it
    // exits.
    let left = (knows_orphans && form.is_some()).then(orphans).flatten();
    // Messages from here on go to the person's own terminal. Its modes are restored
    // while signals are blocked: in the background that would stop this process by
    // SIGTTOU.
    drop(outer);
    let signal = signals.fatal();
    // Nothing from here on has to be protected from a signal.
    drop(signals);
    let termination = outputs.finish(termination);
    let (Some(output), Some(form)) = (output(&result), form) else {
        return Ok(termination);
    };
    let input_wanted = input_wanted.as_deref();
    let own = CommandReport {
        attempts: attempts.made(),
        total: attempts.elapsed(),
        signal,
        asked: input_wanted.and_then(InputWanted::latest),
        stopped_for_input: input_wanted.is_some_and(|one| one.has_stopped(&output.report, signal)),
        log: outputs.log_figures(),
        left,
    };
    report::write(&output.report, &own, form, report_file).map_err(|error| {
        let trouble = Termination::trouble(format_args!("cannot write the report: {error}"));
        // The program's own failure says more than ours.
        match termination {
            Termination::OK => trouble,
            failure => failure,
        }
    })?;
    Ok(termination)
}

/// Spec of the program, if the options make sense together.
///
/// # Errors
/// What is wrong with them, in words for a person.
fn checked_spec(args: &RunArgs) -> Result<Spec, String> {
    if args.shell && args.command.len() > 1 {
        return Err("--shell takes one line\n  hint: quote it, \
             as in: procwright run --shell 'make && make test'"
            .to_owned());
    }
    let spec = command::spec(args)?;
    let has_limit = !spec.timeout.is_never() || !spec.idle_timeout.is_never();
    if args.explain_to.is_some() && args.explain_after.is_none() && !has_limit {
        return Err("--explain-to has nothing to explain\n  \
             hint: give --timeout, --idle-timeout or --explain-after as well"
            .to_owned());
    }
    check_files(args, &spec)?;
    Ok(spec)
}

/// Checks that no two options name one file.
fn check_files(args: &RunArgs, spec: &Spec) -> Result<(), String> {
    let mut written: Vec<(&str, PathBuf)> = Vec::new();
    if let Some(path) = &args.log {
        written.push(("--log", path.clone()));
    }
    if let Some(path) = &spec.keep_full {
        let mut errors = OsString::from(path);
        errors.push(".stderr");
        written.push(("--keep-full", path.clone()));
        written.push(("--keep-full", errors.into()));
    }
    let report_to = args.report.report_to.as_ref();
    if let Some(path) = report_to.filter(|path| !ReportFile::is_stdout(path)) {
        written.push(("--report-to", path.clone()));
    }
    if let Some(path) = args
        .explain_to
        .as_ref()
        .filter(|path| !ReportFile::is_stdout(path))
    {
        written.push(("--explain-to", path.clone()));
    }
    let read = match &spec.stdin {
        Stdin::File(path) => vec![("--stdin", path.to_path_buf())],
        _ => Vec::new(),
    };
    file_conflicts::check(written, read, matches!(spec.stdin, Stdin::Inherit))
}

/// Opens a FIFO that is to be the program's input. This waits for its writer, as long as that
/// takes, and is done here, where signals still end this process.
fn open_fifo(stdin: &mut Stdin) -> Result<(), Termination> {
    let Stdin::File(path) = stdin else {
        return Ok(());
    };
    if !path.metadata().is_ok_and(|meta| meta.file_type().is_fifo()) {
        return Ok(());
    }
    let fifo = File::open(&*path).map_err(|error| {
        Termination::trouble(format_args!("cannot read {:?}: {error}", path.display()))
    })?;
    *stdin = Stdin::Fd(Arc::new(fifo.into()));
    Ok(())
}

/// Runs the program, as often as it takes.
struct Runner<'a> {
    spec: Spec,
    /// Signals that the program ignores, as this command's caller wants.
    ignored: Vec<Signal>,
    /// True if orphans of the program come to this process.
    is_subreaper: bool,
    explain_after: Option<Duration>,
    explanations: &'a Arc<Explanations>,
    input_wanted: Option<&'a Arc<InputWanted>>,
    outputs: &'a Outputs,
    outer: Option<&'a OuterTerminal>,
    signals: &'a mut RunSignals,
}

impl Runner<'_> {
    /// Runs the program until it succeeds or may not be run again. Returns the
    /// result of the last attempt.
    fn run_attempts(&mut self, attempts: &mut Attempts) -> (Result<Output, Error>, Termination) {
        loop {
            attempts.begin();
            let result = self.run_once();
            let has_asked = self.input_wanted.is_some_and(|one| one.stops());
            let failure = match &result {
                // The next attempt would ask for the same.
                Ok(_) if has_asked => None,
                Ok(output) => attempts.failure(output, self.signals),
                // A program that did not start will not start the next time, and after
                // trouble of this command itself nothing is run again.
                Err(_) => None,
            };
            // Signals end this process here: there may be much to show, of which the
            // person has seen enough, or stderr may take nothing.
            let termination = self.signals.unblocked(|| {
                // Before the status line goes: a thread that writes a message has it locked.
                message::flush();
                self.outputs.finish_run(&result, failure.is_some());
                print_outcome(&result, self.signals, self.input_wanted)
            });
            let Some(failure) = failure else {
                return (result, termination);
            };
            let mut pause = || attempts.pause(&failure, self.signals);
            let paused = match self.outer {
                Some(outer) => outer.with_modes_before(pause),
                None => pause(),
            };
            if let Err(termination) = paused {
                return (result, termination);
            }
        }
    }

    /// Runs the program once, from its start to its end.
    fn run_once(&mut self) -> Result<Output, Error> {
        let (spec, outputs) = (self.spec.clone(), self.outputs);
        let mut command = command::command(spec, &self.ignored, self.is_subreaper, outputs);
        if let Some(outer) = self.outer {
            command = outer.apply(command);
        }
        if let Some(after) = self.explain_after {
            command = command.explain_after(after);
        }
        if let Some(input_wanted) = self.input_wanted {
            command = input_wanted.attach(command);
        }
        let explanations = Arc::clone(self.explanations);
        let input_wanted = self.input_wanted.cloned();
        let result = command
            .watch(RunWatch {
                signals: &mut *self.signals,
                outer: self.outer,
            })
            .on_event(move |event| {
                print_event(event, &explanations, input_wanted.as_deref());
                Ok(())
            })
            .run();
        if let Some(output) = output(&result) {
            self.explanations.tell_limit(&output.report);
            // A container may have no other process that reaps them.
            reap_orphans(output.report.pid);
            let report = &output.report;
            let by_signal = matches!(report.status, Exit::Signal { .. });
            self.signals
                .finish_run(by_signal || report.reason != Reason::Finished);
        }
        result
    }
}

/// Output of a run, if a program was started.
fn output(result: &Result<Output, Error>) -> Option<&Output> {
    match result {
        Ok(output) => Some(output),
        Err(error) => error.output(),
    }
}

/// Prints what a person has to know about a run, and returns the termination that
/// follows from it.
fn print_outcome(
    result: &Result<Output, Error>,
    signals: &RunSignals,
    input_wanted: Option<&Arc<InputWanted>>,
) -> Termination {
    match result {
        Ok(output) => {
            let report = &output.report;
            let by_limit = !matches!(report.reason, Reason::Finished | Reason::Cancelled);
            let is_unknown = matches!(report.status, Exit::Unknown(_));
            if by_limit || is_unknown || !report.survivors.is_empty() {
                message::print(report.explain_to(&[], "--until exit"));
            }
            let for_input =
                input_wanted.is_some_and(|one| one.has_stopped(report, signals.fatal()));
            match (signals.fatal(), by_limit || for_input) {
                (Some(signal), _) => Termination::Signal(signal),
                (None, true) => Termination::STOPPED,
                // With a code that is allowed, too.
                (None, false) if report.success() => Termination::OK,
                (None, false) => Termination::after_program(report.status),
            }
        }
        Err(error) => {
            message::print(error);
            match error {
                Error::Spawn { source, .. } => Termination::after_spawn_error(source),
                _ => Termination::TROUBLE,
            }
        }
    }
}

fn print_event(event: &Event, explanations: &Explanations, input_wanted: Option<&InputWanted>) {
    match (event, input_wanted) {
        (Event::Explained { diagnosis, .. }, _) => {
            explanations.tell(event, diagnosis.is_ok());
        }
        (
            Event::InputWanted {
                waiting, prompt, ..
            },
            Some(input_wanted),
        ) => {
            input_wanted.tell(event, waiting, prompt.as_ref());
        }
        _ => message::post(format_args!(
            "{}\n  hint: --until exit does not wait for them",
            event.fact()
        )),
    }
}
