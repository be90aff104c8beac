//! From the command line to what is run.

use std::ffi::OsString;

use procwright::process::{Scope, Stop};
use procwright::{Beyond, Command, Limit, Sink, Spec, Stdin, Until};

use super::live::Live;
use super::output::Outputs;
use super::spec;
use crate::args::RunArgs;
use crate::message::say;

/// What is to be run: what a file says, and what the options say on top of it.
///
/// # Errors
/// A file that cannot be read, or says what cannot be meant.
pub(super) fn spec(args: &RunArgs) -> Result<Spec, String> {
    let argv = argv(args);
    let mut spec = match &args.spec {
        Some(path) => spec::read(path, argv.clone())?,
        None => spec::defaults(argv.clone().unwrap_or_default()),
    };
    if let Some(argv) = argv {
        spec.argv = argv;
    }
    if let Some(path) = &args.stdin {
        spec.stdin = match path.as_os_str() == "null" {
            true => Stdin::Null,
            false => Stdin::File(path.clone()),
        };
    }
    if let Some(timeout) = args.timeout {
        spec.timeout = timeout;
    }
    if let Some(timeout) = args.idle_timeout {
        spec.idle_timeout = timeout;
    }
    if let Some(bytes) = args.limit {
        let beyond = Beyond::Fail;
        spec.limit = Some(Limit { bytes, beyond });
    }
    if let Some(until) = args.until {
        spec.until = until.into();
    }
    spec.stop = stop(args, spec.stop);
    if args.pty {
        spec.pty.get_or_insert_default();
    }
    // With a group of its own it gets the terminal as well, if we have it.
    // A scope on the command line undoes what came with that of the file.
    let kept = spec.foreground && args.scope.is_none();
    let asked = kept || spec.stop.scope() == Scope::Group;
    spec.foreground = asked && spec.pty.is_none();
    if let Some(cwd) = &args.cwd {
        spec.cwd = Some(cwd.clone());
    }
    for (name, value) in &args.env {
        // Once each, as it will be: the last one holds.
        spec.extra_env.retain(|(other, _)| other != name);
        spec.extra_env.push((name.clone(), Some(value.clone())));
    }
    if let Some(path) = &args.keep_full {
        spec.keep_full = Some(path.clone());
    }
    let piped = needs_pipes(args, &spec);
    for sink in [&mut spec.stdout, &mut spec.stderr] {
        // What the library would keep passes through us, and nobody keeps it.
        if matches!(sink, Sink::Capture) || (piped && matches!(sink, Sink::Inherit)) {
            *sink = Sink::Relay;
        }
    }
    leave_out_what_is_kept(&mut spec);
    Ok(spec)
}

/// The program, where the command line has one.
fn argv(args: &RunArgs) -> Option<Vec<OsString>> {
    let line = args.command.first()?;
    Some(match args.shell {
        true => Spec::shell(line).argv,
        false => args.command.clone(),
    })
}

fn stop(args: &RunArgs, mut stop: Stop) -> Stop {
    if let Some(signal) = args.stop {
        stop = stop.with_signal(signal);
    }
    if let Some(grace) = args.grace {
        stop = stop.with_grace(grace);
    }
    if let Some(scope) = args.scope {
        stop = stop.with_scope(scope.into());
    }
    stop
}

/// Whether somebody has to see what goes through: only then pipes come between.
fn needs_pipes(args: &RunArgs, spec: &Spec) -> bool {
    !spec.idle_timeout.is_never()
        || spec.limit.is_some()
        || spec.keep_full.is_some()
        || spec.until == Until::Exit
        || args.until.is_some()
        || args.log.is_some()
        || args.tag
        || args.quiet
        || spec.pty.is_some()
        || (args.progress && Live::is_possible())
}

/// What a file may say for the library, in which output is kept. It is told and
/// not refused, so that one file does for both.
fn leave_out_what_is_kept(spec: &mut Spec) {
    if spec.merged {
        spec.merged = false;
        say("the spec's \"merged\" means nothing here: no output is kept");
    }
    if spec
        .limit
        .is_some_and(|limit| limit.beyond == Beyond::HeadAndTail)
    {
        spec.limit = None;
        say(
            "the spec's \"limit\" says what is kept, and nothing is kept here\n  \
             hint: \"beyond\": \"fail\" in it stops the program, as --limit does",
        );
    }
}

/// The spec, ready to be run.
pub(super) fn command<'a>(spec: Spec, adopts: bool, outputs: &Outputs) -> Command<'a> {
    let command = outputs.attach(Command::from_spec(spec).stopped_is_ok());
    match adopts {
        true => command.adopts_orphans(),
        false => command,
    }
}
