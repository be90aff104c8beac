//! The spec of what is run: that of a file or of the command line, with the options
//! on top.

use procwright::process::{Scope, Signal};
use procwright::{Beyond, Command, Sink, Spec, Until};

use super::output::Outputs;
use super::spec_file;
use crate::args::RunArgs;
use crate::progress::ProgressLine;
use crate::{inherited_signals, message};

/// Spec of the program: what a file says, and what the options say on top of it.
///
/// # Errors
/// A file that cannot be read, or that is no spec, in words for a person.
pub(super) fn spec(args: &RunArgs) -> Result<Spec, String> {
    let argv = args.argv();
    let mut spec = match &args.spec {
        Some(path) => spec_file::read(path, argv)?,
        None => spec_file::defaults(argv.unwrap_or_default()),
    };
    args.apply_to(&mut spec);
    // A program with a process group of its own gets the terminal as well, if this
    // command has it. A scope on the command line undoes the `foreground` that came
    // with the scope of the file.
    let kept = spec.foreground && args.limits.scope.is_none();
    let asked = kept || spec.stop.scope() == Scope::Group;
    spec.foreground = asked && spec.pty.is_none();
    let piped = needs_pipes(args, &spec);
    for sink in [&mut spec.stdout, &mut spec.stderr] {
        // Output that the library would capture is passed on instead.
        if matches!(sink, Sink::Capture) || (piped && matches!(sink, Sink::Inherit)) {
            *sink = Sink::Relay;
        }
    }
    drop_capture_options(&mut spec);
    Ok(spec)
}

/// Returns whether an option has to see the output: only then pipes are put between.
fn needs_pipes(args: &RunArgs, spec: &Spec) -> bool {
    !spec.idle_timeout.is_never()
        || spec.limit.is_some()
        || spec.keep_full.is_some()
        || spec.until != Until::Eof
        || args.limits.until.is_some()
        || args.log.is_some()
        || args.tag.is_some()
        || args.quiet
        || args.input_wanted.is_some()
        || spec.pty.is_some()
        || (args.progress && ProgressLine::is_possible())
}

/// Drops what a file says about captured output, as this command captures none.
/// That is a message and no error, so that one file serves the library and the
/// command.
fn drop_capture_options(spec: &mut Spec) {
    if spec.merged {
        spec.merged = false;
        message::print("the spec's \"merged\" means nothing here: no output is kept");
    }
    if spec
        .limit
        .is_some_and(|limit| limit.beyond == Beyond::HeadAndTail)
    {
        spec.limit = None;
        message::print(
            "the spec's \"limit\" says what is kept, and nothing is kept here\n  \
             hint: \"beyond\": \"fail\" in it stops the program, as --limit does",
        );
    }
}

/// The spec as a command that can be run. Its program ignores the signals `ignored`
/// whatever this process does about them. `is_subreaper` says that orphans come to this
/// process.
pub(super) fn command<'a>(
    mut spec: Spec,
    ignored: &[Signal],
    is_subreaper: bool,
    outputs: &Outputs,
) -> Command<'a> {
    inherited_signals::pass_on(ignored, &mut spec);
    let command = Command::from_spec(spec).stopped_is_ok();
    let command = outputs.attach(command);
    match is_subreaper {
        true => command.adopts_orphans(),
        false => command,
    }
}
