//! `procwright map`: a command for each of many items, so many at a time.
//!
//! Commands are run by threads of the library, and what became of them is taken on a thread of
//! its own, which a stdout that nobody reads may hold up. This one looks after signals.

mod code;
mod dry_run;
mod interpreters;
mod items;
mod live;
mod operators;
mod progress;
mod quoted;
mod report;
mod results;
mod screen;
mod shell_line;
mod signals;
mod tags;
mod template;
mod total;

use std::num::NonZero;
use std::sync::Arc;
use std::time::Instant;

use procwright::map::{Joblog, Journal, Map, Progress, StoppedBy};
use procwright::process::Signal;
use procwright::{BoxError, Event, Sink, Spec, Tap};
use procwright_os::thread::spawn_quiet;
use procwright_os::wake::Wake;

use crate::args::{Halt, MapArgs, ReportArg};
use crate::exit::Termination;
use crate::report_file::ReportFile;
use crate::{file_conflicts, inherited_signals, message, own_signals};
use items::{Items, Lists, Parted};
use live::LiveTap;
use results::{Showing, Tally};
use screen::Screen;
use signals::MapSignals;
use tags::Tags;
use template::{Syntax, Template};
use total::Total;

/// Runs the commands of the options.
///
/// # Errors
/// Nothing was run, or the report could not be written.
pub(crate) fn map(mut args: MapArgs) -> Result<Termination, Termination> {
    let ignored = inherited_signals::ignored();
    own_signals::survive_size_limits().map_err(Termination::trouble)?;
    let words = std::mem::take(&mut args.command);
    let Planned {
        template,
        items,
        tags,
    } = planned(words, &args).map_err(Termination::trouble)?;
    if args.dry_run {
        return dry_run::print(items, &template);
    }
    // Opened before anything runs: a map whose report cannot be written is not begun.
    let report_file = ReportFile::asked(&args.report)?;
    let journal = journal(&args).map_err(Termination::trouble)?;
    let descriptors =
        |error| Termination::trouble(format_args!("cannot have a descriptor: {error}"));
    let screen = Screen::new(args.progress).map_err(descriptors)?;
    let spec = common_spec(&args, &ignored, &screen);
    let stop = spec.stop;
    let is_done = Arc::new(Wake::new().map_err(descriptors)?);
    let mut signals = MapSignals::block(stop)
        .map_err(|error| Termination::trouble(format_args!("cannot catch signals: {error}")))?;
    let started = Instant::now();
    // Only for who sees it: a file is read once more for it.
    let total = screen.has_line().then(|| Total::of(&items));
    let total = total.unwrap_or_default();
    let commands = commands(items, template, spec, tags.clone());
    let mut map = with_rules(Map::fallible(commands), &args).on_event(print_event);
    if is_live(&args) {
        let (screen, tags) = (Arc::clone(&screen), tags.clone());
        map = map.tap_with(move |index, _| {
            let tag = tags.as_ref().and_then(|tags| tags.take(index));
            Some(Box::new(LiveTap::new(Arc::clone(&screen), tag.as_deref())) as Box<dyn Tap>)
        });
    }
    if let Some(journal) = journal {
        map = map.journal(journal);
    }
    let running = map.start().map_err(Termination::trouble)?;
    let remote = running.remote();
    let results = {
        let is_done = Arc::clone(&is_done);
        let showing = Showing {
            screen: Arc::clone(&screen),
            tags,
            is_quiet: args.quiet,
            keeps_runs: matches!(args.report.form(), Some(ReportArg::Json)),
        };
        spawn_quiet("procwright-results", move || {
            let tally = results::take(running, &showing);
            is_done.ring();
            tally
        })
    };
    let results = results.map_err(|error| {
        Termination::trouble(format_args!(
            "cannot have a thread for the results: {error}"
        ))
    })?;
    let attended = signals.attend(&remote, &is_done, &screen, || {
        screen.draw(progress::line(&remote, &total, started));
    });
    if let Err(error) = attended {
        remote.stop();
        return Err(Termination::trouble(format_args!("cannot wait: {error}")));
    }
    // Nothing is left that a signal could leave behind. There may be much to show, of which the
    // person has seen enough, or stdout may take nothing.
    let tally = signals.unblocked(|| results.join());
    let Ok(tally) = tally else {
        return Err(Termination::trouble(
            "the thread of the results has panicked",
        ));
    };
    screen.draw(String::new());
    let termination = termination(&tally, &signals, &screen);
    if signals.fatal().is_none() {
        report::print_trouble(&tally, screen.is_broken());
    }
    if let Some(form) = args.report.form() {
        report::write(&tally, started.elapsed(), form, report_file).map_err(|error| {
            Termination::trouble(format_args!("cannot write the report: {error}"))
        })?;
    }
    Ok(termination)
}

/// Checks that no two options name one file, a list of items among them.
fn check_files(args: &MapArgs, lists: &Lists) -> Result<(), String> {
    let report_to = args.report.report_to.as_ref();
    let files = [
        ("--journal", args.journal.as_ref()),
        ("--joblog", args.joblog.as_ref()),
        (
            "--report-to",
            report_to.filter(|path| !ReportFile::is_stdout(path)),
        ),
    ];
    let named = files
        .into_iter()
        .filter_map(|(option, path)| Some((option, path?.clone())));
    file_conflicts::check(named.collect(), lists.files(), true)
}

/// Finds once what would be wrong with each command.
fn check_options(words: Vec<std::ffi::OsString>, args: &MapArgs) -> Result<(), String> {
    let mut spec = Spec::new(words);
    args.apply_to(&mut spec);
    (spec.stdout, spec.stderr) = (Sink::Relay, Sink::Relay);
    let valid = procwright::Command::from_spec(spec).validate();
    valid.map_err(|error| error.to_string())
}

/// How this command ends.
fn termination(tally: &Tally, signals: &MapSignals, screen: &Screen) -> Termination {
    let Progress {
        failed,
        stopped,
        failed_before,
        unknown,
        ..
    } = tally.progress;
    let all_well = failed + stopped + failed_before + unknown == 0;
    match (signals.fatal(), &tally.error, tally.stopped_by) {
        (Some(signal), ..) => Termination::Signal(signal),
        (None, Some(_), _) => Termination::TROUBLE,
        _ if screen.is_broken() => Termination::BROKEN_PIPE,
        (None, None, Some(StoppedBy::Deadline)) => Termination::STOPPED,
        _ if all_well => Termination::OK,
        _ => Termination::FAILED,
    }
}

fn print_event(_index: u64, event: &Event) -> Result<(), BoxError> {
    message::post(format_args!(
        "{}\n  hint: --until exit does not wait for them",
        event.fact()
    ));
    Ok(())
}

/// What the command line comes to.
struct Planned {
    template: Template,
    items: Items,
    /// None without `--tag`.
    tags: Option<Arc<Tags>>,
}

/// # Errors
/// What is wrong with the words, for a person. Nothing has been read or started then, but for
/// several lists of items of which one cannot be read.
fn planned(words: Vec<std::ffi::OsString>, args: &MapArgs) -> Result<Planned, String> {
    let Parted { command, lists } = items::parted(words, &args.arg_file, args.null, args.link)?;
    let syntax = Syntax {
        mark: args.placeholder.as_deref(),
        lists: lists.count(),
    };
    if syntax.mark.is_some_and(|mark| mark.is_empty()) {
        return Err("-I has an empty text stand for the item: write one, such as -I @".into());
    }
    let template = Template::of_command(&command, syntax)?;
    code::check(&command, &template)?;
    operators::check(&command, &template)?;
    let tags = args.tag().map(|tag| Tags::new(tag, syntax)).transpose()?;
    check_files(args, &lists)?;
    check_options(command, args)?;
    Ok(Planned {
        template,
        items: lists.open()?,
        tags,
    })
}

/// Whether lines are shown while they come. Those of ordered outputs wait for their turn.
fn is_live(args: &MapArgs) -> bool {
    args.live || (args.tag().is_some() && !args.ordered)
}

/// The spec of every command, but for its words.
fn common_spec(args: &MapArgs, ignored: &[Signal], screen: &Screen) -> Spec {
    let mut spec = Spec::new([] as [&str; 0]);
    args.apply_to(&mut spec);
    match is_live(args) {
        true => (spec.stdout, spec.stderr) = (Sink::Relay, Sink::Relay),
        // Of two places each gets its own stream, and no order is asked for.
        false => spec.merged = screen.streams.is_shared(),
    }
    inherited_signals::pass_on(ignored, &mut spec);
    spec
}

/// The command of each item.
fn commands(
    items: Items,
    template: Template,
    spec: Spec,
    tags: Option<Arc<Tags>>,
) -> impl Iterator<Item = Result<Spec, BoxError>> + Send + 'static {
    (0..).zip(items).map(move |(index, items)| {
        let items = items?;
        if let Some(tags) = &tags {
            tags.put(index, &items);
        }
        let mut spec = spec.clone();
        spec.argv = template.words(&items, index + 1);
        Ok(spec)
    })
}

fn with_rules(mut map: Map, args: &MapArgs) -> Map {
    if let Some(parallel) = args.parallel {
        map = map.parallel(parallel.get());
    }
    if args.ordered {
        map = map.ordered();
    }
    let count = |failures| NonZero::<u64>::try_from(failures).unwrap_or(NonZero::<u64>::MAX);
    map = match args.halt() {
        Halt::Never => map,
        Halt::Soon(failures) => map.start_no_more_after_failures(count(failures)),
        Halt::Now(failures) => map.stop_after_failures(count(failures)),
    };
    if let Some(deadline) = args.deadline {
        map = map.deadline(deadline);
    }
    map
}

/// The journal, if one is asked for.
///
/// # Errors
/// Why it cannot be used, in words for a person.
fn journal(args: &MapArgs) -> Result<Option<Journal>, String> {
    let Some(path) = &args.journal else {
        return Ok(None);
    };
    let opened = match args.resume {
        true => Journal::resume(path),
        false => Journal::create(path),
    };
    let mut journal = opened.map_err(|error| match error {
        procwright::map::JournalError::Exists { path } => format!(
            "{:?} has a journal in it\n  hint: --resume goes on with it, so that nothing is done \
             twice",
            path.display()
        ),
        other => other.to_string(),
    })?;
    if args.rerun_failed {
        journal = journal.rerun_failed();
    }
    if args.rerun_unknown {
        journal = journal.rerun_unknown();
    }
    if args.sync {
        journal = journal.synced();
    }
    if let Some(path) = &args.joblog {
        let joblog = Joblog::open(path, args.resume).map_err(|error| error.to_string())?;
        journal = journal.joblog(joblog);
    }
    Ok(Some(journal))
}
