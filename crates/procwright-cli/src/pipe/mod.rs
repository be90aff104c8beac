//! `procwright pipe`: programs that are joined by pipes, and judged one by one.

mod progress;
mod report;
mod signals;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use procwright::pipeline::{Error, Judgement, PipelineOutput};
use procwright::process::{Exit, Signal};
use procwright::time::Timeout;
use procwright::{
    Beyond, BoxError, Command, Event, Limit, Overflow, Pipeline, Reason, Sink, Spec, Stdin,
};

use crate::args::{PipeArgs, Row, Stages};
use crate::exit::Termination;
use crate::progress::{PERIOD, ProgressLine};
use crate::report_file::ReportFile;
use crate::stdio::StandardStreams;
use crate::{file_conflicts, inherited_signals, message};
use progress::{AroundLine, PipeProgress};
use signals::PipeSignals;

/// How much is kept of the stderr of a stage, half of it from its end, to tell of a failure.
const KEPT: u64 = 64 * 1024;

/// The buffer between two stages whose bytes are counted, where no other is asked for: no more
/// than what a grown pipe holds, so that a slow stage holds up the one before it all the same.
const COUNTING: Overflow = Overflow::Block { memory: 1 << 20 };

/// What to type in the place of a line for a shell as a stage.
const LINE: &str = "each word stands alone, as in: procwright pipe sort -u --to head -1; a line is \
                    run by a shell: procwright pipe sh -c 'LINE'";

/// True of a stage that is a line for a shell in one word.
fn is_a_line(stage: &[OsString]) -> bool {
    matches!(stage, [word] if word.to_string_lossy().contains(' '))
}
/// Runs the stages of the options.
///
/// # Errors
/// Nothing was run, or the report could not be written.
pub(crate) fn pipe(args: &PipeArgs) -> Result<Termination, Termination> {
    let mut ignored = inherited_signals::ignored();
    // SIGPIPE is how a stage learns that enough was read. A caller who ignores it, as systemd
    // does for services, hardly means the stages; `--ignore-signal PIPE` does.
    ignored.retain(|signal| *signal != Signal::PIPE);
    let stages = args.stages().map_err(Termination::trouble)?;
    let words = &stages.words;
    check_stage_numbers(args, words.len()).map_err(Termination::trouble)?;
    let elastic = args.elastic_stages(stages.row());
    let elastic = elastic.map_err(Termination::trouble)?;
    check_files(args, stages.row()).map_err(Termination::trouble)?;
    warn_of_shell_words(words);
    let are_lines: Vec<bool> = words.iter().map(|stage| is_a_line(stage)).collect();
    let specs = specs(&stages, args, &ignored);
    // Opened before anything starts: a pipeline whose report cannot be written is not run.
    let report_file = ReportFile::asked(&args.report)?;
    let line = match args.progress {
        true => ProgressLine::on_terminal(StandardStreams::inspect()),
        false => None,
    };
    let stop = specs[0].stop;
    let mut signals = PipeSignals::block(stop)
        .map_err(|error| Termination::trouble(format_args!("cannot catch signals: {error}")))?;
    let pipeline = pipeline(specs, stages.row(), &elastic, line.as_ref(), args);
    let mut result = pipeline.watch(&mut signals).run();
    if let Some(line) = line {
        line.end();
    }
    if let Err(Error::Spawn { stage, source, .. }) = &mut result
        && are_lines[*stage]
    {
        source.hint = Some(LINE.to_owned());
    }
    let (fatal, was_interrupted) = (signals.fatal(), signals.was_interrupted());
    // Nothing from here on has to be protected from a signal.
    drop(signals);
    let termination = outcome(&result, stages.row(), fatal, was_interrupted);
    let (Some(output), Some(form)) = (output(&result), args.report.form()) else {
        return Ok(termination);
    };
    report::write(&output.report, form, report_file).map_err(|error| {
        let trouble = Termination::trouble(format_args!("cannot write the report: {error}"));
        match termination {
            Termination::OK => trouble,
            failure => failure,
        }
    })?;
    Ok(termination)
}

/// Says of a single stage that has a shell's bar among its words that it is a word.
fn warn_of_shell_words(stages: &[Vec<OsString>]) {
    let [stage] = stages else {
        return;
    };
    if stage.iter().any(|word| word == "|") {
        message::print(
            "there is one stage, and | is a word of it\n  \
             hint: stages are joined by --to, as in: procwright pipe sort --to head -1",
        );
    } else if stage.iter().any(|word| word == "|&") {
        message::print(
            "there is one stage, and |& is a word of it\n  \
             hint: stages are joined by --to, and a shell sends stderr along, as in: procwright \
             pipe sh -c 'make test 2>&1' --to tee log",
        );
    }
}

/// Checks that `--ok` names stages that there are.
fn check_stage_numbers(args: &PipeArgs, of: usize) -> Result<(), String> {
    match args.ok.iter().find(|ok| ok.stage > of) {
        None => Ok(()),
        Some(ok) => Err(format!(
            "--ok names stage {}, and there {} {of}\n  hint: stages count from 1",
            ok.stage,
            if of == 1 { "is" } else { "are" },
        )),
    }
}

/// Checks that no two options name one file.
fn check_files(args: &PipeArgs, row: &Row) -> Result<(), String> {
    let mut written: Vec<(&str, PathBuf)> = Vec::new();
    let report_to = args.report.report_to.as_ref();
    if let Some(path) = report_to.filter(|path| !ReportFile::is_stdout(path)) {
        written.push(("--report-to", path.clone()));
    }
    let (read, inherits) = match args.first_stdin(row) {
        Stdin::File(path) => (vec![("--stdin", path)], false),
        Stdin::Inherit => (Vec::new(), true),
        _ => (Vec::new(), false),
    };
    file_conflicts::check(written, read, inherits)
}

/// The spec of each stage.
fn specs(stages: &Stages, args: &PipeArgs, ignored: &[Signal]) -> Vec<Spec> {
    let row = stages.row();
    let specs = stages.words.iter().enumerate().map(|(place, words)| {
        let mut spec = Spec::new(words);
        args.apply_to(&mut spec);
        // The whole has them.
        (spec.timeout, spec.idle_timeout) = (Timeout::NEVER, Timeout::NEVER);
        if place == 0 {
            spec.stdin = args.first_stdin(row);
        }
        // A pipe is put between only for what has to see the output.
        let sees = !args
            .limits
            .idle_timeout
            .unwrap_or(Timeout::NEVER)
            .is_never()
            || spec.limit.is_some()
            || args.limits.until.is_some()
            || (args.progress && ProgressLine::is_possible());
        let own = || match sees {
            true => Sink::Relay,
            false => Sink::Inherit,
        };
        if place >= row.first_of_last() {
            spec.stdout = own();
        }
        spec.stderr = match args.quiet {
            true => Sink::Capture,
            false => own(),
        };
        if args.quiet && spec.limit.is_none() {
            spec.limit = Some(Limit {
                bytes: KEPT,
                beyond: Beyond::HeadAndTail,
            });
        }
        inherited_signals::pass_on(ignored, &mut spec);
        spec
    });
    specs.collect()
}

/// The pipeline of the stages, with an elastic buffer behind those of `elastic`. `line` says how
/// far it is.
fn pipeline<'a>(
    specs: Vec<Spec>,
    row: &Row,
    elastic: &[usize],
    line: Option<&Arc<ProgressLine>>,
    args: &PipeArgs,
) -> Pipeline<'a> {
    let mut stages = specs.into_iter().map(|spec| {
        let relays = |sink: &Sink| matches!(sink, Sink::Relay);
        let passes_on = relays(&spec.stdout) || relays(&spec.stderr);
        let stage = Command::from_spec(spec).on_event(print_event);
        match line.filter(|_| passes_on) {
            Some(line) => stage.relay_with(Box::new(AroundLine(Arc::clone(line)))),
            None => stage,
        }
    });
    let joined = row.sizes().fold(Pipeline::new([]), |joined, size| {
        let programs = stages.by_ref().take(size);
        match size {
            1 => programs.fold(joined, Pipeline::pipe),
            _ => joined.fan(programs),
        }
    });
    let mut pipeline = joined
        .success_rule(args.success.into())
        .timeout(args.limits.timeout.unwrap_or(Timeout::NEVER))
        .idle_timeout(args.limits.idle_timeout.unwrap_or(Timeout::NEVER))
        .stopped_is_ok();
    for ok in &args.ok {
        pipeline = pipeline.ok_codes(ok.stage - 1, ok.codes.iter().copied());
    }
    if let Some(line) = line {
        for place in row.alone_and_read() {
            pipeline = pipeline.elastic(place, COUNTING);
        }
        let mut progress = PipeProgress::new(line);
        pipeline = pipeline.every(PERIOD, move |stages| progress.update(stages));
    }
    for place in elastic {
        pipeline = pipeline.elastic(*place, Overflow::default());
    }
    pipeline
}

/// Result of a pipeline, if programs were started.
fn output(result: &Result<PipelineOutput, Error>) -> Option<&PipelineOutput> {
    match result {
        Ok(output) => Some(output),
        Err(error) => error.output(),
    }
}

/// Prints what a person has to know, and returns the termination that follows from it.
/// `fatal` is a signal to this command for which all were stopped; `was_interrupted` says that
/// Ctrl-C was left to the stages.
fn outcome(
    result: &Result<PipelineOutput, Error>,
    row: &Row,
    fatal: Option<i32>,
    was_interrupted: bool,
) -> Termination {
    let output = match result {
        Ok(output) => output,
        Err(error) => {
            message::print(error);
            return match error {
                Error::Spawn { source, .. } => Termination::after_spawn_error(source),
                _ => Termination::TROUBLE,
            };
        }
    };
    let report = &output.report;
    let by_limit = !matches!(report.reason, Reason::Finished | Reason::Cancelled);
    if let Some(signal) = fatal {
        return Termination::Signal(signal);
    }
    if report.success() {
        return Termination::OK;
    }
    // That nobody reads our stdout is no news: the last stage has found out as in a shell.
    let is_unread = report.failed().all(|(place, stage)| {
        place >= row.first_of_last() && stage.report.status.signal() == Some(Signal::PIPE)
    });
    // Neither is Ctrl-C to whom has pressed it.
    let is_interrupt = was_interrupted
        && report
            .failed()
            .all(|(_, stage)| stage.report.status.signal() == Some(Signal::INT));
    if by_limit || !(is_unread || is_interrupt) {
        let text = output.report.explain_to(&stderr(output), "--until exit");
        message::print(format_args!("{text}{}", forgiving_hint(output)));
    }
    match by_limit {
        true => Termination::STOPPED,
        false => {
            let failed = report.stages.iter().rev();
            let failed = failed
                .filter(|stage| stage.judgement == Judgement::Failed)
                .find(|stage| stage.report.status != Exit::Code(0));
            failed.map_or(Termination::FAILED, |stage| {
                Termination::after_program(stage.report.status)
            })
        }
    }
}

/// What to type where a failure may be none: 1 is what grep, diff and cmp exit with that have found
/// nothing, or a difference.
fn forgiving_hint(output: &PipelineOutput) -> String {
    let mut failed = output.report.failed();
    let found = failed.find(|(_, stage)| stage.report.status == Exit::Code(1));
    found.map_or(String::new(), |(place, _)| {
        let stage = place + 1;
        format!("\n  hint: --ok {stage}=1 if a code of 1 is no failure of stage {stage}")
    })
}

fn stderr(output: &PipelineOutput) -> Vec<&[u8]> {
    output.stderr.iter().map(Vec::as_slice).collect()
}

fn print_event(event: &Event) -> Result<(), BoxError> {
    message::post(format_args!(
        "{}\n  hint: --until exit does not wait for them",
        event.fact()
    ));
    Ok(())
}
